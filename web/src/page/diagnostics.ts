import type { PlayerState } from "../player/state.ts";
import type { Summary } from "../shared/summary.ts";

/** Fields of the page's address that hold no secret. */
const FIELDS = ["name", "rung", "target", "transport", "screen", "controller", "stream", "view"];
/** Keys, digests and tokens: 16 hexadecimal digits, or 20 of the characters that tokens have. */
const SECRET = /\b[0-9a-f]{16,}\b|[A-Za-z0-9_-]{20,}=*/g;
/** Names of keys end with an identifier. */
const KEY_NAME = /(\/KEY\/)[^\s":]+/g;

/** What a report is made of. */
export interface Diagnosis {
  state: PlayerState;
  summary: Summary | undefined;
  /** Steps, with times in milliseconds since 1970, as `openedAt`. */
  steps: readonly { at: number; text: string }[];
  openedAt: number;
  address: string;
  browser: string;
}

/** Returns state, figures and log as text for a bug report, without keys and tokens. */
export function diagnostics({ state, summary, steps, openedAt, address, browser }: Diagnosis): string {
  const log = steps.map(({ at, text }) => `${((at - openedAt) / 1_000).toFixed(2)} s  ${hide(text)}`);
  const figures = summary === undefined ? "none" : JSON.stringify({ ...summary, signer: summary.signer && { trusted: summary.signer.trusted }, consumer: undefined }, null, 1);
  return [
    `Namecast player: ${state.kind}, "${state.badge}"`,
    hide(state.sentence),
    `Page: ${publicAddress(address)}`,
    `Browser: ${browser}`,
    "",
    "Log",
    ...log,
    "",
    "Figures",
    figures,
  ].join("\n");
}

function publicAddress(address: string): string {
  const { origin, pathname, searchParams } = new URL(address);
  const fields = [...searchParams].filter(([field]) => FIELDS.includes(field)).map(([field, value]) => `${field}=${hide(value)}`);
  return `${origin}${pathname}${fields.length === 0 ? "" : `?${fields.join("&")}`}`;
}

function hide(text: string): string {
  return text.replace(KEY_NAME, "$1…").replace(SECRET, "…");
}
