import type { Liveness, PathSummary, RungInfo, SignerInfo, Spread, StageTimes } from "../shared/summary.ts";
import { STAGES } from "../shared/summary.ts";

/** The core's figures as it writes them: `Stats` of `crates/apps`. What is missing is left out, so all is optional. */
export interface CoreFigures {
  state?: string;
  liveness?: Liveness;
  recorded_from_ms?: number | null;
  /** The earliest time that archives keep, in milliseconds since 1970 by the publisher's clock. */
  kept_since_ms?: number | null;
  join_ms?: number | null;
  rtt_ms?: number | null;
  rtt_min_ms?: number | null;
  interests_sent?: number;
  interests_retransmitted?: number;
  interests_nacked?: number;
  interests_pending?: number;
  cache_hit_share?: number;
  goodput_bps?: number;
  throughput_bps?: number;
  controller?: string;
  controller_rate_bps?: number | null;
  path?: { queueing_ms?: number; capacity_bps?: number; loss?: number; jitter_ms?: number; probes?: number; holding?: boolean };
  rung?: string | null;
  picture?: string | null;
  target_ms?: number;
  reorder_ms?: number;
  signer?: { key_name: string; key_digest: string; verdict: string; trusted: boolean } | null;
  clock_offset_ms?: number | null;
  clock_offset_rtt_ms?: number | null;
  packets_unexpected?: number;
  verification_failures?: number;
  video?: StreamFigures | null;
  audio?: StreamFigures | null;
  tab?: { octets_in: number; corrupted: number; outbox_full: number };
}

/** Counters of one stream. */
export interface StreamFigures {
  published?: number;
  received?: number;
  lost?: number;
  late?: number;
  recovered_fec?: number;
  recovered_retransmission?: number;
  buffer_ms?: number;
}

/** Shares of what was published, over all streams. */
export interface Shares {
  loss: number;
  parity: number;
  retransmission: number;
}

/** How much was lost since `before`, and how much of it came back by which way. */
export function sharesOf(figures: CoreFigures, before: CoreFigures = {}): Shares {
  const total = ({ video, audio }: CoreFigures, field: keyof StreamFigures): number => (video?.[field] ?? 0) + (audio?.[field] ?? 0);
  // A publisher that was started again begins to count anew.
  const sum = (field: keyof StreamFigures): number => Math.max(0, total(figures, field) - total(before, field));
  const all = Math.max(1, sum("received") + sum("lost"));
  return {
    loss: sum("lost") / all,
    parity: sum("recovered_fec") / all,
    retransmission: sum("recovered_retransmission") / all,
  };
}

/** What the path carries, and what of it is used. */
export function pathOf(figures: CoreFigures): PathSummary {
  const { path = {} } = figures;
  return {
    received: figures.throughput_bps ?? 0,
    allowed: figures.controller_rate_bps ?? null,
    // The core says 0 until it has measured.
    carried: path.capacity_bps || null,
    queueing: path.queueing_ms ?? 0,
    jitter: path.jitter_ms ?? 0,
    probes: path.probes ?? 0,
    holding: path.holding ?? false,
    loss: path.loss ?? 0,
  };
}

/** Packets that were not what their signer had signed. */
export function failuresOf(figures: CoreFigures): number {
  return figures.verification_failures ?? 0;
}

/** The signer, for people. */
export function signerOf(figures: CoreFigures): SignerInfo | null {
  const signer = figures.signer;
  if (signer === null || signer === undefined) {
    return null;
  }
  return { name: signer.key_name, digest: signer.key_digest, verdict: signer.verdict, trusted: signer.trusted };
}

/**
 * By how much the publisher's clock is ahead of ours, in milliseconds.
 *
 * Zero unless the difference is larger than what the measurement cannot tell: on one machine both are the same clock, and
 * an estimate would only add noise.
 */
export function clockAhead(figures: CoreFigures): number {
  const offset = figures.clock_offset_ms ?? 0;
  const uncertain = Math.max(5, (figures.clock_offset_rtt_ms ?? 0) / 2);
  return Math.abs(offset) > uncertain ? offset : 0;
}

/** A spread with the difference of the clocks taken out. */
export function corrected(spread: Spread | null, ahead: number): Spread | null {
  return spread && { p50: spread.p50 + ahead, p95: spread.p95 + ahead, p99: spread.p99 + ahead };
}

/** Mean of each stage. */
export function meanStages(frames: readonly StageTimes[]): StageTimes | null {
  if (frames.length === 0) {
    return null;
  }
  const mean = (stage: keyof StageTimes): number => frames.reduce((sum, frame) => sum + frame[stage], 0) / frames.length;
  return Object.fromEntries(STAGES.map((stage) => [stage, mean(stage)])) as StageTimes;
}

/** The rungs of a catalogue's stream, highest first. */
export function rungsOf(rungs: readonly { name: string; bitrate: number; width?: number; height?: number }[]): RungInfo[] {
  return rungs
    .map(({ name, bitrate, width = 0, height = 0 }) => ({ name, bitrate, width, height }))
    .sort((a, b) => b.bitrate - a.bitrate);
}
