import type { Options } from "../shared/messages.ts";

/** Ends of the latency knob, in milliseconds. */
export const TARGET_MIN = 20;
export const TARGET_MAX = 1_000;

/** What the page's address says; what makes no sense is left out. */
export function readOptions(query: URLSearchParams): Options {
  const text = (field: string): string | undefined => query.get(field) || undefined;
  const [name, key, rung, transport, publish] = [text("name"), text("key"), text("rung"), text("transport"), text("publish")];
  const controller = text("controller");
  const streams = query.getAll("stream").filter((stream) => stream !== "");
  const at = Date.parse(text("t") ?? "");
  const target = clampTarget(Number.parseFloat(text("target") ?? ""));
  return {
    ...(name === undefined ? {} : { name }),
    ...(key === undefined ? {} : { key }),
    ...(rung === undefined ? {} : { rung }),
    ...(streams.length === 0 ? {} : { streams }),
    ...(target === undefined ? {} : { target }),
    ...(Number.isFinite(at) ? { at } : {}),
    ...(controller === undefined ? {} : { controller }),
    ...(publish === undefined ? {} : { publish }),
    ...(text("screen") === "canvas" ? { screen: "canvas" as const } : {}),
    ...(transport === "ws" ? { transport: "websocket" as const } : {}),
    ...(transport === "wt" ? { transport: "webtransport" as const } : {}),
  };
}

/** A target within the knob's reach; undefined for what is no number. */
export function clampTarget(target: number): number | undefined {
  return Number.isFinite(target) ? Math.min(TARGET_MAX, Math.max(TARGET_MIN, Math.round(target))) : undefined;
}

/** The same address with another value of one field, so that a reload or a copied link keeps what was chosen. */
export function withOption(address: string, field: string, value: string): string {
  const url = new URL(address);
  url.searchParams.set(field, value);
  return url.href;
}
