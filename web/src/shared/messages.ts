import type { Facts } from "./facts.ts";
import type { KnownKey, KnownKeys } from "./known-keys.ts";
import type { FetchReport, PackageInfo } from "./package.ts";
import type { NodeInfo } from "./node.ts";
import type { RoomConfig } from "./room.ts";
import type { Summary, Transport } from "./summary.ts";

/** What the page may choose; all of it may come from the address. */
export interface Options {
  /** Name of the stream; absent: what the server offers. */
  name?: string;
  /** Digest of the key that must have signed it, in hexadecimal. */
  key?: string;
  rung?: string;
  /** Names of streams to watch where there are several of a kind; absent: the first of each. */
  streams?: string[];
  /** Playout target in milliseconds. */
  target?: number;
  /** Where playback begins: the time of capture by the publisher's clock, in milliseconds since 1970; absent: live. */
  at?: number;
  /** What bounds requests for segments, by a name that `--controller` of commands takes; absent: what suits them. */
  controller?: string;
  /** The only transport to use; absent: whichever works. */
  transport?: Transport;
  /** What shows the picture; absent: a `<video>` where the browser can. */
  screen?: "canvas";
  /** Name under which this page offers to publish notes. */
  publish?: string;
}

/** A data stream of this page. */
export interface Publishes {
  name: string;
  /** Secret of the key that signs it, 64 hexadecimal digits. */
  secret: string;
}

/** From the page to the worker. */
export type Command =
  | {
      type: "start";
      /** Where pictures go. */
      screen: OffscreenCanvas | WritableStream<VideoFrame>;
      /** Whether the page compiles the core, and sends it. */
      compiles: boolean;
      /** What the server said of itself, if the page has it already. */
      node: NodeInfo | undefined;
      options: Options;
      /** Keys that were remembered when streams were first met. */
      known: KnownKeys;
      /** What this page publishes; undefined: nothing. */
      publishes: Publishes | undefined;
      /** The room that the page is in; undefined: none. */
      room: RoomConfig | undefined;
      /** Address of the node's web server. */
      base: string;
      /** Where the page itself is from. */
      origin: string;
      /** When the picture was wished for: milliseconds since 1970, as all times between threads are. */
      openedAt: number;
      visible: boolean;
      /** Whether the last half minute is kept, for a clip. */
      keepsClip: boolean;
      /** Whether the page has a `<video>` that may play segments. */
      takesSegments: boolean;
    }
  /** What was compiled; undefined if that failed, and the worker tries. */
  | { type: "core"; core: WebAssembly.Module | undefined }
  /** Ends all traffic; the last picture stays. */
  | { type: "pause" }
  /** Joins again. `openedAt` and `known` as in `start`. */
  | { type: "play"; openedAt: number; known: KnownKeys }
  | { type: "target"; target: number }
  | { type: "rung"; rung: string }
  /** To a time of capture by the publisher's clock, in milliseconds since 1970; null: to what is live. */
  | { type: "seek"; number: number; to: number | null }
  | { type: "visible"; visible: boolean }
  /** Sound was asked for: PCM goes to the port from now on, until `soundOff`. */
  | { type: "sound"; port: MessagePort }
  | { type: "soundOff" }
  /** Publishes a data stream of this page from now on: somebody wished so, no address alone. */
  | { type: "publish"; publishes: Publishes }
  /** Publishes a sample of it. */
  | { type: "send"; sample: Uint8Array<ArrayBuffer> }
  /** Fetches an object by name, for `FetchReport`s of this number. */
  | { type: "fetch"; number: number; name: string }
  | { type: "giveUp"; number: number }
  /** The `<video>` that plays segments has presented a picture. */
  | { type: "presented"; presentation: Presentation }
  /** Makes a clip of what is kept. */
  | { type: "clip" }
  | { type: "fault"; fault: Fault };

/** Faults that tests (and the curious) cause on purpose. */
export type Fault =
  /** Flips one bit in packets that arrive, until `count` were found out. */
  | { kind: "corrupt"; count: number }
  /** Loses everything in both directions for a while, without closing the transport. */
  | { kind: "blackhole"; milliseconds: number }
  /** Closes the transport, and keeps it closed for a while. */
  | { kind: "disconnect"; milliseconds: number }
  /** Feeds the video decoder what it cannot decode. */
  | { kind: "decoder" };

/** From the worker to the page. */
export type Report =
  | { type: "summary"; summary: Summary }
  /** Something that a person wants to know happened, such as a step of joining. */
  | { type: "step"; at: number; text: string }
  /** Facts that changed. */
  | { type: "facts"; facts: Partial<Facts> }
  /** The key of the stream `name` was met for the first time, and has signed what plays. */
  | { type: "remember"; name: string; key: KnownKey }
  /** The page is a member of its room by this certificate, to be kept. */
  | { type: "joined"; certificate: string }
  /** The stream that plays. */
  | { type: "name"; name: string }
  /** Its title; null: it has none. */
  | { type: "title"; title: string | null }
  /** A sample of a data stream. */
  | { type: "sample"; sample: ReceivedSample }
  /** The captions from now on, with line feeds between rows; empty: none. */
  | { type: "caption"; text: string }
  | { type: "size"; width: number; height: number }
  /** The stream is published as playlists and segments, which the page has to play. */
  | { type: "package"; info: PackageInfo }
  /** The clip that was requested, an MP4 file; or why there is none. */
  | { type: "clip"; file: ArrayBuffer }
  | { type: "noClip"; why: string }
  /** The `<video>` plays this from now on, as it is steered. */
  | { type: "source"; handle: Transferable }
  /** It plays segments no more: pictures go where `start` said. */
  | { type: "screen" }
  | { type: "steer"; steer: Steer }
  | FetchReport
  | { type: "shown"; shown: Shown[] };

/** Where a `<video>` that plays segments is to be, and how fast. */
export interface Steer {
  number: number;
  /** Place in the media to go to, in seconds; absent: it stays where it is. */
  to?: number;
  /** When playback continues from there, in milliseconds since 1970; the picture stands still until then. */
  at: number;
  /** Speed from then on; 1: that of the publisher. */
  rate: number;
}

/** A picture that such a `<video>` has presented. */
export interface Presentation {
  /** Number of the newest `Steer`. */
  number: number;
  /** When, in milliseconds since 1970. */
  at: number;
  /** Which, by its place in the media, in seconds. */
  time: number;
  /** Whether the picture stands still until the time of that `Steer`. */
  isHeld: boolean;
}

/** A sample of a data stream, verified. */
export interface ReceivedSample {
  position: number;
  /** When it was captured, by this machine's wall clock, in milliseconds since 1970. */
  capturedAt: number;
  octets: Uint8Array<ArrayBuffer>;
}

/** One frame that was shown. */
export interface Shown {
  position: number;
  /** The rung that it is of. */
  rung: string;
  capturedAt: number;
  /** When it was to be shown. */
  dueAt: number;
  shownAt: number;
}
