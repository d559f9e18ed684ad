import init, { LiveTab } from "../wasm/namecast_web.js";
import wasm from "../wasm/namecast_web_bg.wasm?url";
import type { CorePort } from "./core-port.ts";

/** A stream of the catalogue, as docs/stream-format.md has it. */
export interface StreamDescription {
  name: string;
  kind: "video" | "audio";
  codec: string;
  rungs: RungDescription[];
  segment_size: number;
  parity_percent: number;
}

/** A rung of the catalogue. */
export interface RungDescription {
  name: string;
  bitrate: number;
  width?: number;
  height?: number;
  rate: { num: number; den: number };
  key_interval: number;
  codec_string: string;
  sample_rate?: number;
  channels?: number;
  across?: { samples: number; parity: number };
}

/** How the core is set up. */
export interface LiveConfig {
  name: string;
  secret: string;
  ticket?: string;
  streams: StreamDescription[];
  /** Wall clock at time zero, in microseconds since 1970. */
  wall_at_zero_us: number;
  seed: number;
}

/** What is said of an encoded frame. */
export interface LiveFrame {
  stream: string;
  rung: string;
  position: number;
  key: boolean;
  captured_at: number;
}

/** What the core counts. */
export interface LiveCounters {
  interests: number;
  /** Of these, answered when they came; others wait for what they request. */
  answered_at_once: number;
  bytes_out: number;
}

/** The core of a tab that goes live: a node with a publisher on it. `crates/web` has the same methods. */
export interface LivePort extends CorePort {
  /** Publishes a frame that a `LiveFrame` describes as JSON, encoded until now. */
  publishFrame(frame: string, payload: Uint8Array, now: number): void;
  /**
   * Measures the path to the node, to be called a few times a second. Returns how long what is sent now waits for what was sent before
   * it, in milliseconds; less than 0: unknown.
   */
  probe(now: number): number;
  keyDigest(): string;
  /** `LiveCounters` as JSON. */
  stats(): string;
  /** Gives its memory back; nothing may be called any more. */
  free(): void;
}

/** Octets of a segment, and parity in percent, as the commands have them. */
export const SEGMENT_SIZE = 1_000;
export const PARITY_PERCENT = 20;

/** Loads the core, and gives what makes one. */
export async function loadLive(): Promise<(config: LiveConfig, now: number) => LivePort> {
  await init({ module_or_path: wasm });
  return (config, now) => new LiveTab(JSON.stringify(config), now);
}
