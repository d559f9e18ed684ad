import type { CorePort } from "./core-port.ts";

/** Number of a stream towards the core. */
export const STREAM_NUMBER = { video: 0, audio: 1, data: 2 } as const;

/** How the core is set up. */
export interface TabConfig {
  /** Name of the stream. */
  root: string;
  /** Digest of the key that must have signed it, in hexadecimal. */
  key?: string;
  /** Digest of the key that is remembered for it, in hexadecimal; counts if there is no `key`. */
  remembered?: string;
  rung?: string;
  /** Names of streams that go before others of their kind. */
  streams?: string[];
  target_ms: number;
  /** Wall clock at time zero, in microseconds since 1970. */
  wall_at_zero_us: number;
  audio: boolean;
  /** What bounds requests for objects, by its name. */
  controller?: string;
  seed: number;
}

/** A data stream that is published. */
export interface PublicationConfig {
  name: string;
  /** Secret of its key, 64 hexadecimal digits. */
  secret: string;
  stream: string;
  /** Most samples of a second, and octets of a usual one: both help those who watch to request in time. */
  samples_per_second: number;
  sample_size: number;
}

/** The core of a tab that plays: a node with a consumer and publishers on it. `crates/web` has the same methods. */
export interface TabPort extends CorePort {
  /** Publishes a data stream, described by a `PublicationConfig` as JSON. Returns its number, for `send`. */
  publish(config: string, now: number): number;
  /** Publishes a sample of a data stream, captured now. */
  send(publication: number, sample: Uint8Array, now: number): void;
  /** Fetches the object of this name, which must be under the stream's; throws where that cannot be. */
  fetch(number: number, name: string, now: number): void;
  giveUp(number: number): void;
  setTarget(milliseconds: number, now: number): void;
  setRung(name: string, now: number): void;
  /** Chooses whether video and audio are requested. */
  setWanted(video: boolean, audio: boolean, now: number): void;
  /** By how many milliseconds packets are handled after they arrive, as this machine is busy. */
  setWakeDelay(milliseconds: number): void;
  /** Goes to what was captured at `time` (publisher's clock, milliseconds since 1970); infinite: to what is live. */
  seek(time: number, now: number): void;
  decoded(stream: number, position: number, took: number, now: number): void;
  rendered(stream: number, position: number, now: number): void;
  decoderError(stream: number, now: number): void;
  /** JSON. */
  stats(now: number): string;
  /** Flips a bit in packets that arrive, until `count` were found out. */
  corrupt(count: number): void;
  /** Gives its memory back; nothing may be called any more. */
  free(): void;
}

/** The core once it is loaded. */
export interface Core {
  make(config: TabConfig): TabPort;
  /** Octets of memory that it has taken. */
  memory(): number;
}
