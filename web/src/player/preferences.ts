import type { Store } from "./known-keys.ts";
import { clampTarget } from "./options.ts";

/** Name of the store's entry. */
const ENTRY = "namecast-player";
/** Qualities that mean something for each stream. */
const QUALITIES = ["auto", "highest", "lowest"];

/** What a person chose for all streams; absent: nothing. */
export interface Preferences {
  /** Loudness, 0 to 1. */
  volume?: number;
  muted?: boolean;
  /** `auto`, `highest` or `lowest`. */
  quality?: string;
  /** Playout target in milliseconds. */
  target?: number;
}

/** Returns the choices that the browser keeps for this site; those that make no sense are left out. */
export function readPreferences(store: Store | undefined): Preferences {
  let kept: Record<string, unknown>;
  try {
    kept = (JSON.parse(store?.getItem(ENTRY) ?? "{}") ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
  const { volume, muted, quality, target } = kept;
  const clamped = typeof target === "number" ? clampTarget(target) : undefined;
  return {
    ...(typeof volume === "number" && volume >= 0 && volume <= 1 ? { volume } : {}),
    ...(typeof muted === "boolean" ? { muted } : {}),
    ...(typeof quality === "string" && QUALITIES.includes(quality) ? { quality } : {}),
    ...(clamped === undefined ? {} : { target: clamped }),
  };
}

/** Keeps choices beside those that are kept already. */
export function keepPreferences(store: Store | undefined, choices: Preferences): void {
  try {
    store?.setItem(ENTRY, JSON.stringify({ ...readPreferences(store), ...choices }));
  } catch {
    // Full, or not allowed: the choice lasts as long as the page.
  }
}

/** Returns what to keep of a quality, which is one of `names`, the highest first; undefined: nothing that other streams have, too. */
export function lastingQuality(quality: string, names: readonly string[]): string | undefined {
  if (QUALITIES.includes(quality)) {
    return quality;
  }
  if (names.length < 2) {
    return undefined;
  }
  return { [names[0] ?? ""]: "highest", [names.at(-1) ?? ""]: "lowest" }[quality];
}
