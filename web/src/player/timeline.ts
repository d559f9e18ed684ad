import type { Position } from "../shared/summary.ts";

/** Nearer to live than this, live is meant, in milliseconds: the core thinks so too. */
const LIVE_EDGE = 1_000;
/** The same as a share of the whole bar: a finger is no finer. */
const LIVE_SHARE = 0.01;
/** Less than this is not worth a bar, in milliseconds. */
const MIN_SPAN = 2_000;

/** Seconds by which keys move playback. */
export const KEY_STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -5,
  ArrowRight: 5,
  ArrowDown: -10,
  ArrowUp: 10,
  PageDown: -60,
  PageUp: 60,
};

/** How far the bar reaches back from now, in milliseconds; 0 if there is nothing to go back to. */
export function reach({ now, since }: Position): number {
  const span = since === null ? 0 : now - since;
  return span < MIN_SPAN ? 0 : span;
}

/** Where playback is, or is going to, in milliseconds before now. */
export function behind(position: Position): number {
  const { live, shown, now, seeking } = position;
  if (seeking !== null) {
    return Math.max(0, now - seeking);
  }
  return live || shown === null ? 0 : Math.max(0, now - shown);
}

/** What is meant by a place `before` milliseconds before now: a time, within what is kept, or null for live. */
export function meant(before: number, position: Position): number | null {
  const span = reach(position);
  if (before < Math.max(LIVE_EDGE, span * LIVE_SHARE)) {
    return null;
  }
  return Math.max(position.now - before, position.now - span);
}

/** What is meant by a step of `seconds` from where playback is, or is going to. */
export function stepped(seconds: number, position: Position): number | null {
  const before = behind(position) - seconds * 1_000;
  // One step back from live is meant however short it is in proportion.
  return before < LIVE_EDGE ? null : Math.max(position.now - before, position.now - reach(position));
}
