import type { SealedWhy } from "../shared/facts.ts";
import type { RoomEvent } from "../shared/room.ts";

/** A frame for a transport. */
export interface TransmitRecord {
  kind: "transmit";
  face: number;
  octets: Uint8Array<ArrayBuffer>;
}

/** Milliseconds that an encoded frame spent before it came here. */
export interface FrameStages {
  encode: number;
  publish: number;
  network: number;
  reassembly: number;
}

/** One encoded video frame or audio packet, whole and verified. */
export interface FrameRecord {
  kind: "frame";
  watch: number;
  stream: Stream;
  rung: string;
  position: number;
  /** Whether it stands alone. */
  key: boolean;
  /** Whether it is only needed to decode the frames after it, and must not be shown. */
  decodeOnly: boolean;
  /** Whether its latency says nothing: it was old already when it was asked for. */
  catchingUp: boolean;
  /**
   * When it was captured, by the publisher's wall clock, in milliseconds since 1970: frames are shown in this order. Where pictures
   * are reordered, it is later by the rung's `reorder_delay`.
   */
  capturedAt: number;
  /** When to show it, in the time that all of `Tab` is given. */
  dueAt: number;
  stages: FrameStages;
  payload: Uint8Array<ArrayBuffer>;
}

/** The next frame of the stream does not follow the one before. */
export interface DiscontinuityRecord {
  kind: "discontinuity";
  watch: number;
  stream: Stream;
  /** Whether playback is somewhere else from now on: what was given before and not shown yet must not be shown any more. */
  jump: boolean;
}

/** Something rare, as JSON, with the number of its watch, publication or room. */
export interface EventRecord {
  kind: "event";
  event: TabEvent & { watch?: number; publication?: number; room?: number };
}

/** An object that was fetched by name, verified. */
export interface FetchedRecord {
  kind: "fetched";
  watch: number;
  number: number;
  /** How long it was waited for, and how long its Data flowed, in milliseconds. */
  waited: number;
  flowed: number;
  octets: Uint8Array<ArrayBuffer>;
}

export type Stream = "video" | "audio" | "data";

/** What the consumer tells besides frames. */
export type TabEvent =
  | { type: "step"; text: string }
  | { type: "catalogue"; catalogue: Catalogue }
  | SignerEvent
  | RegistrationEvent
  | { type: "fetching"; number: number; octets: number; share: number }
  | { type: "unfetched"; number: number; why: string }
  | RoomEvent
  /** Sealed samples are not opened, for this reason; null: they are. */
  | { type: "sealed"; why: SealedWhy | null }
  | SeekEvent;

/** Whether the node sends those here who want what this page publishes. */
export interface RegistrationEvent {
  type: "registration";
  name: string;
  state: "registered" | "refused" | "unanswered";
  /** What the node said when it refused. */
  why: string | null;
}

/** Who signs the stream, and whether it counts. */
export interface SignerEvent {
  type: "signer";
  /** Name of the key. */
  name: string;
  /** SHA-256 of the key, in hexadecimal. */
  digest: string;
  verdict: string;
  trusted: boolean;
  /** What the key is to what the page remembers: met for the first time, the remembered one, another one, or none of it. */
  memory: "new" | "known" | "changed" | "none";
}

/** What became of a wish to go to another time. Times are the publisher's clock in milliseconds since 1970. */
export type SeekEvent =
  /** It is looked for; what plays goes on until then. */
  | { type: "seeking"; to: number }
  /** It plays: the first frame to show was captured at this time. */
  | { type: "playing"; captured_at: number }
  /** What is published now plays. */
  | { type: "live" }
  /** It cannot be had, so nothing changes. `since`: what is kept begins there; `answered`: whether anybody said so. */
  | { type: "nothing"; to: number; since: number | null; answered: boolean };

/** What a stream consists of, as its publisher says (see docs/stream-format.md). */
export interface Catalogue {
  version: number;
  /** Title for people, if it has one. */
  title?: string;
  streams: StreamInfo[];
}

export interface StreamInfo {
  name: string;
  /** `other`: what it is only its codec says. */
  kind: Stream | "other";
  codec: string;
  rungs: Rung[];
}

export interface Rung {
  name: string;
  bitrate: number;
  width?: number;
  height?: number;
  codec_string?: string;
  /** By how much a picture is shown after it could be decoded, at most, in microseconds; absent where pictures are not reordered. */
  reorder_delay?: number;
  sample_rate?: number;
  channels?: number;
  /** What a decoder needs before the first sample, in hexadecimal. */
  description?: string;
  rate: { num: number; den: number };
}

export type TabRecord = TransmitRecord | FrameRecord | DiscontinuityRecord | EventRecord | FetchedRecord;

/** Numbers of the kinds of record; `crates/web/src/outbox.rs` has the same. */
const TRANSMIT = 1;
const FRAME = 2;
const DISCONTINUITY = 3;
const EVENT = 4;
const FETCHED = 5;

/** Flags of a frame. */
const KEY = 1;
const DECODE_ONLY = 2;
const CATCHING_UP = 4;

const TEXT = new TextDecoder();

/**
 * Reads a batch of records as `Tab.drain` gives it: for each its length (u32), its kind (u8) and its fields, all
 * little-endian. Octets in the records are views of `batch`.
 *
 * @throws RangeError if the batch is cut short or holds an unknown kind: a mismatch of the page's two halves.
 */
export function* readRecords(batch: Uint8Array<ArrayBuffer>): Generator<TabRecord> {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength);
  let at = 0;
  while (at < batch.length) {
    const length = view.getUint32(at, true);
    const end = at + 4 + length;
    if (length === 0 || end > batch.length) {
      throw new RangeError(`record at ${at} ends at ${end} of ${batch.length}`);
    }
    yield readRecord(new Cursor(view, batch, at + 4, end));
    at = end;
  }
}

function readRecord(cursor: Cursor): TabRecord {
  const kind = cursor.u8();
  switch (kind) {
    case TRANSMIT:
      return { kind: "transmit", face: cursor.u32(), octets: cursor.rest() };
    case FRAME:
      return readFrame(cursor);
    case DISCONTINUITY:
      return { kind: "discontinuity", watch: cursor.u32(), stream: streamOf(cursor.u8()), jump: cursor.u8() === 1 };
    case EVENT:
      return { kind: "event", event: JSON.parse(TEXT.decode(cursor.rest())) as EventRecord["event"] };
    case FETCHED:
      return { kind: "fetched", watch: cursor.u32(), number: cursor.f64(), waited: cursor.f32(), flowed: cursor.f32(), octets: cursor.rest() };
    default:
      throw new RangeError(`record of unknown kind ${kind}`);
  }
}

function readFrame(cursor: Cursor): FrameRecord {
  const watch = cursor.u32();
  const stream = streamOf(cursor.u8());
  const flags = cursor.u8();
  const rung = TEXT.decode(cursor.take(cursor.u8()));
  const position = cursor.f64();
  const capturedAt = cursor.f64();
  const dueAt = cursor.f64();
  const stages = {
    encode: cursor.f32(),
    publish: cursor.f32(),
    network: cursor.f32(),
    reassembly: cursor.f32(),
  };
  const [key, decodeOnly, catchingUp] = [KEY, DECODE_ONLY, CATCHING_UP].map((flag) => (flags & flag) !== 0) as [boolean, boolean, boolean];
  return { kind: "frame", watch, stream, key, decodeOnly, catchingUp, rung, position, capturedAt, dueAt, stages, payload: cursor.rest() };
}

function streamOf(number: number): Stream {
  return (["video", "audio"] as const)[number] ?? "data";
}

class Cursor {
  readonly #view: DataView;
  readonly #batch: Uint8Array<ArrayBuffer>;
  #at: number;
  readonly #end: number;

  constructor(view: DataView, batch: Uint8Array<ArrayBuffer>, at: number, end: number) {
    this.#view = view;
    this.#batch = batch;
    this.#at = at;
    this.#end = end;
  }

  u8(): number {
    return this.#view.getUint8(this.#advance(1));
  }

  u32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }

  f32(): number {
    return this.#view.getFloat32(this.#advance(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#advance(8), true);
  }

  take(length: number): Uint8Array<ArrayBuffer> {
    const start = this.#advance(length);
    return this.#batch.subarray(start, start + length);
  }

  rest(): Uint8Array<ArrayBuffer> {
    return this.take(this.#end - this.#at);
  }

  #advance(length: number): number {
    const start = this.#at;
    if (start + length > this.#end) {
      throw new RangeError(`field at ${start} ends after its record, at ${this.#end}`);
    }
    this.#at = start + length;
    return start;
  }
}
