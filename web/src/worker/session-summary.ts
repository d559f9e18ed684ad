import type { Evidence } from "../shared/facts.ts";
import type { Position, Summary, Transport } from "../shared/summary.ts";
import type { Audio } from "./audio.ts";
import { clockAhead, corrected, failuresOf, meanStages, pathOf, rungsOf, sharesOf, signerOf, type CoreFigures } from "./figures.ts";
import type { Overload } from "./overload.ts";
import type { Catalogue, Stream } from "./records.ts";
import type { Timing } from "./timing.ts";
import type { Travel } from "./travel.ts";
import type { VideoSink } from "./video-sink.ts";

/** What a summary is made of. */
export interface SummaryParts {
  now: number;
  /** The core's figures now, and those that shares are counted from. */
  figures: CoreFigures;
  before: CoreFigures;
  evidence: Evidence;
  video: VideoSink;
  audio: Audio;
  timing: Timing;
  overload: Overload;
  travel: Travel;
  catalogue: Catalogue | undefined;
  transport: Transport | null;
  firstFrame: number | null;
  packaged: boolean;
  coreMemory: number;
}

/** Makes the figures that a page gets. */
export function summaryOf(parts: SummaryParts): Summary {
  const { now, figures, evidence, timing, overload, catalogue } = parts;
  const ahead = clockAhead(figures);
  const shares = sharesOf(figures, parts.before);
  const { presented } = parts.video;
  const streams = catalogue?.streams ?? [];
  const has = (kind: Stream): boolean => streams.some((stream) => stream.kind === kind);
  const rungs = streams.find(({ kind }) => kind === "video")?.rungs ?? [];
  const { live } = parts.travel;
  const { playout } = timing;
  return {
    evidence,
    kinds: { video: has("video"), audio: has("audio"), data: has("data") },
    position: positionOf(parts),
    transport: parts.transport,
    latency: live ? corrected(presented.latency.spread(), ahead) : null,
    stages: live ? meanStages(presented.stages) : null,
    firstFrame: parts.firstFrame,
    join: figures.join_ms ?? null,
    // What the core holds back comes after what it gave already.
    buffer: figures.video ? Math.max(figures.video.buffer_ms ?? 0, parts.video.buffered) : null,
    target: timing.target,
    playout: { target: playout.current, needed: playout.needed, isCapped: playout.isCapped },
    overload: { level: overload.level, delay: overload.meanDelay(now) },
    reorder: figures.reorder_ms ?? 0,
    rtt: figures.rtt_ms ?? null,
    rttMin: figures.rtt_min_ms ?? null,
    lossShare: shares.loss,
    parityShare: shares.parity,
    retransmissionShare: shares.retransmission,
    cacheHitShare: figures.cache_hit_share ?? 0,
    bitrate: figures.goodput_bps ?? 0,
    rung: presented.rung,
    requestedRung: figures.rung ?? null,
    rungs: rungsOf(rungs),
    controller: figures.controller ?? null,
    path: pathOf(figures),
    picture: figures.picture ?? null,
    signer: signerOf(figures),
    liveness: figures.liveness ?? "unconfirmed",
    packaged: parts.packaged,
    recordedFrom: figures.recorded_from_ms ?? null,
    verificationFailures: failuresOf(figures),
    interests: figures.interests_sent ?? 0,
    interestsPending: figures.interests_pending ?? 0,
    clockOffset: figures.clock_offset_ms ?? null,
    coreMemory: parts.coreMemory,
    video: parts.video.summary(),
    audio: parts.audio.summary(presented.lateness.mean(), has("audio")),
    consumer: figures as Record<string, unknown>,
  };
}

function positionOf({ now, figures, travel, video }: SummaryParts): Position {
  return {
    live: travel.live,
    shown: video.presented.capturedAt,
    now: performance.timeOrigin + now + clockAhead(figures),
    since: figures.kept_since_ms ?? null,
    seeking: travel.seeking,
    answers: travel.answers,
  };
}
