import type { Evidence } from "./facts.ts";

/** Where a frame's time goes, in the order in which it passes. */
export const STAGES = ["capture", "encode", "publish", "network", "reassembly", "buffer", "decode", "display"] as const;

/** One part of the way from lens to glass. */
export type Stage = (typeof STAGES)[number];

/** Milliseconds in each stage. */
export type StageTimes = Record<Stage, number>;

/** Whether what is shown is live, as far as the publisher itself confirms it. */
export type Liveness = "live" | "recorded" | "unconfirmed";

/** How packets travel. */
export type Transport = "webtransport" | "websocket";

/** Median and tail of a quantity, in milliseconds. */
export interface Spread {
  p50: number;
  p95: number;
  p99: number;
}

/** Where in time playback is, and where it can go. Times are the publisher's clock, in milliseconds since 1970. */
export interface Position {
  live: boolean;
  /** Capture of the frame that is shown; null: none yet. */
  shown: number | null;
  /** The publisher's clock now. */
  now: number;
  /** The earliest time that can be gone to; null: none, or nobody keeps the past. */
  since: number | null;
  /** What is being gone to. */
  seeking: number | null;
  /** Number of the last `seek` that this takes into account. */
  answers: number;
}

/** Everything the panel shows, four times a second. Times are milliseconds, shares are 0 to 1; null: not known yet. */
export interface Summary {
  evidence: Evidence;
  /** Kinds of streams that are published. */
  kinds: { video: boolean; audio: boolean; data: boolean };
  position: Position;
  transport: Transport | null;
  /** From capture to the canvas, over the last seconds. */
  latency: Spread | null;
  /** Mean share of each stage in that latency. */
  stages: StageTimes | null;
  /** From opening the page to the first frame on the canvas. */
  firstFrame: number | null;
  /** From the first Interest to the first complete key frame. */
  join: number | null;
  buffer: number | null;
  /** The playout target that was chosen. */
  target: number;
  playout: PlayoutSummary;
  overload: OverloadSummary;
  /** What the reordering of pictures adds to the target: 0 without B-frames. */
  reorder: number;
  rtt: number | null;
  rttMin: number | null;
  /** Of the frames and sound packets of the last 10 s: those that did not come whole in time, and how others were completed. */
  lossShare: number;
  parityShare: number;
  retransmissionShare: number;
  cacheHitShare: number;
  /** Payload that arrives, in bit/s. */
  bitrate: number;
  /** Of the picture that is seen. */
  rung: string | null;
  /** Of the frames that are requested; the picture follows when those requested before it have been shown. */
  requestedRung: string | null;
  rungs: RungInfo[];
  controller: string | null;
  path: PathSummary;
  /** Why the picture has the quality that it has, in words; null where somebody chose it. */
  picture: string | null;
  signer: SignerInfo | null;
  liveness: Liveness;
  /** Whether the stream is published as segments, which are not played frame by frame. */
  packaged: boolean;
  /** Capture of the frame that is shown, where that is recorded: the publisher's clock, in milliseconds since 1970. */
  recordedFrom: number | null;
  verificationFailures: number;
  /** Interests that left, and those that left again. */
  interests: number;
  /** Interests that wait for their Data now. */
  interestsPending: number;
  clockOffset: number | null;
  /** Octets of memory that the core has taken. */
  coreMemory: number;
  video: VideoCounts;
  audio: AudioCounts;
  /** The numbers of the consumer as it gives them, for those who want all. */
  consumer: Record<string, unknown>;
}

/** The playout target in use, in milliseconds. */
export interface PlayoutSummary {
  /** The chosen one, or more where this machine needs more. */
  target: number;
  /** What 95 % of the pictures and sound of the last 10 s needed. */
  needed: number;
  /** Whether that is more than the player waits for. */
  isCapped: boolean;
}

/** Whether this machine has time for what is played. */
export interface OverloadSummary {
  /** What is given up: the rate of figures, quality, the rate of pictures, all but key frames. */
  level: "none" | "instruments" | "quality" | "rate" | "picture";
  /** Mean time by which the worker woke up late in the last second, in milliseconds. */
  delay: number;
}

/** What the path carries, and what of it is used. Rates are in bit/s. */
export interface PathSummary {
  /** All that arrives. */
  received: number;
  /** The most that the rate controller allows, which may be far above what the stream needs; null: it sets no limit. */
  allowed: number | null;
  /** What the link carries; null: not measured yet. */
  carried: number | null;
  /** Time that packets wait in queues, and how unevenly they come. */
  queueing: number;
  jitter: number;
  /** Times that more was requested than needed to find out what the link carries, and whether the quality is kept from rising. */
  probes: number;
  holding: boolean;
  /** Share of packets lost lately. */
  loss: number;
}

/** One way to get the picture. */
export interface RungInfo {
  name: string;
  bitrate: number;
  width: number;
  height: number;
}

/** Who signed the stream, and what to think of it. */
export interface SignerInfo {
  name: string;
  /** Of its public key, in hexadecimal. */
  digest: string;
  verdict: string;
  trusted: boolean;
}

/** What became of the frames. */
export interface VideoCounts {
  received: number;
  shown: number;
  /** Decoded so late that a newer one was shown already. */
  late: number;
  /** Due at the same moment as a newer one. */
  overtaken: number;
  /** Left out, as this machine has no time for them. */
  skipped: number;
  /** Not given to the decoder, as what they need is missing. */
  undecodable: number;
  decoderErrors: number;
  /** Gaps of more than 200 ms between two frames shown. */
  freezes: number;
  longestGap: number;
  /** Decoded frames that wait for their time. */
  queued: number;
}

/** What became of the sound. */
export interface AudioCounts {
  state: "off" | "none" | "unsupported" | "starting" | "playing" | "silent";
  received: number;
  /** By how much sound is heard after the picture that belongs to it (negative: before). */
  offset: number | null;
  /** By how much picture and sound are held back, as the audio device needs it. */
  delay: number;
  underruns: number;
  /** Least time by which sound came before the device wanted it, lately. */
  slack: number | null;
  /** Jumps that brought sound back in step. */
  jumps: number;
}
