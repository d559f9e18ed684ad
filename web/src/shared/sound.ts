/** From the worker to the audio worklet: decoded sound. */
export interface PcmMessage {
  type: "pcm";
  /** When the first sample is to be heard, in milliseconds since 1970. */
  at: number;
  /** Samples per second. */
  rate: number;
  channels: Float32Array<ArrayBuffer>[];
}

/** From the worker to the audio worklet: what is queued is moved in time, or thrown away. */
export type PlayerCommand = PcmMessage | { type: "shift"; milliseconds: number } | { type: "clear" };

/** From the page to the audio worklet: when the samples of a context time are heard. */
export interface OutputClock {
  type: "clock";
  /** Seconds in the context's time. */
  context: number;
  /** Milliseconds since 1970. */
  wall: number;
}

/** From the audio worklet to the worker, a few times a second. */
export interface PlayerReport {
  /** Mean time by which sound was heard after it was due, in milliseconds; null if there was none. */
  lateness: number | null;
  /** By how much sound is due later than it was sent for, since it comes too late otherwise, in milliseconds. */
  delay: number;
  underruns: number;
  jumps: number;
  /** Milliseconds of sound queued. */
  queued: number;
  /** Least time by which sound came before it was needed, in milliseconds; null if none came. */
  slack: number | null;
}

/** Captured sound, as it comes by a port. */
export interface CapturedSound {
  /** Microseconds since the first. */
  timestamp: number;
  sampleRate: number;
  channels: Float32Array<ArrayBuffer>[];
}
