import init, { Tab } from "../wasm/namecast_web.js";
import wasm from "../wasm/namecast_web_bg.wasm?url";

export type { Tab };

/** Number of a stream towards the core. */
export const STREAM_NUMBER = { video: 0, audio: 1, data: 2 } as const;

/** What is watched; `WatchConfig` in `crates/web`. */
export interface WatchConfig {
  /** Name of the stream. */
  root: string;
  /** Digest of the key that must have signed it, in hexadecimal. */
  key?: string;
  /** Digest of the key that is remembered for it, in hexadecimal; counts if there is no `key`. */
  remembered?: string;
  /** Whether the rules of the tab's room say who may have signed it. */
  in_room?: boolean;
  rung?: string;
  /** Names of streams that go before others of their kind. */
  streams?: string[];
  target_ms: number;
  audio: boolean;
  /** What bounds requests for objects, by its name. */
  controller?: string;
}

/** What is published under a name; `PublicationConfig` in `crates/web`. */
export interface PublicationConfig {
  name: string;
  /** Secret of its key, 64 hexadecimal digits. */
  secret: string;
  /** What allows to publish it at the node. */
  ticket?: string;
  /** Random octets, 64 hexadecimal digits: it is sealed for the members of the tab's room. */
  sealed?: string;
  /** Title for people, 1 to 200 octets. */
  title?: string;
  streams?: StreamDescription[];
  data?: DataStream[];
}

/** A data stream that is published. Most samples of a second, and octets of a usual one, help those who watch to request in time. */
export interface DataStream {
  name: string;
  samples_per_second: number;
  sample_size: number;
}

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

/** Octets of a segment, and parity in percent, as the commands have them. */
export const SEGMENT_SIZE = 1_000;
export const PARITY_PERCENT = 20;

/** What is said of an encoded frame. */
export interface LiveFrame {
  stream: string;
  rung: string;
  position: number;
  key: boolean;
  captured_at: number;
}

/** What a publication counts. */
export interface PublicationCounters {
  interests: number;
  /** Of these, answered when they came; others wait for what they request. */
  answered_at_once: number;
  /** Octets of the tab for transports. */
  bytes_out: number;
}

/** The core once it is loaded. */
export interface Core {
  /** Makes a node that watches and publishes nothing yet. */
  make(): Tab;
  /** Octets of memory that it has taken. */
  memory(): number;
}

/** Loads the core, unless it is compiled already. */
export async function loadTab(compiled?: WebAssembly.Module): Promise<Core> {
  const { memory } = await init({ module_or_path: compiled ?? wasm });
  return {
    make: () => new Tab(performance.timeOrigin, crypto.getRandomValues(new Uint32Array(1))[0] ?? 0),
    memory: () => memory.buffer.byteLength,
  };
}
