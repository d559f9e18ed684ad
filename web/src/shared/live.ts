import type { RoomConfig, RoomState } from "./room.ts";

/** What a page that goes live tells its worker. */
export interface LiveStart {
  name: string;
  /** Secret of the key that signs, 64 hexadecimal digits. */
  secret: string;
  /** Token of the link and this tab's own secret, 64 hexadecimal digits together; absent: the link had none. */
  ticket?: string;
  /** The room whose members alone can open what is sent, under the member's name in place of `name`; absent: none. */
  room?: RoomConfig;
  /** Title for people; absent: none. */
  title?: string;
  /** Address of the page: what is relative is relative to it. */
  base: string;
  video?: LivePictures;
  audio?: Captured<AudioData>;
}

/** Captured pictures, and how many a second at most. */
export interface LivePictures {
  frames: Captured<VideoFrame>;
  rate: number;
}

/** What a tab that is live sends instead from now on; absent: what it sent before; null: nothing. */
export interface LiveChange {
  video?: LivePictures | null;
  audio?: Captured<AudioData> | null;
}

/** Captured pictures or sound: a stream, or, where the browser makes none, a port that sends one after the other. */
export type Captured<T> = ReadableStream<T> | MessagePort;

/** From the worker to the page. */
export type LiveReport =
  /** The stream is described and signed: this is the digest of its key, which the link to watch carries. */
  | { type: "key"; digest: string }
  /** This tab is a member of the room under this name, by a certificate to be kept. */
  | { type: "joined"; name: string; certificate: string }
  /** How this tab stands in its room. */
  | { type: "room"; root: string; state: RoomState }
  /** The node sends here who wants to watch, or for the moment does not. */
  | { type: "connection"; live: boolean; text: string }
  /** It is over, for a reason that a person must know. */
  | { type: "failed"; text: string }
  | { type: "figures"; figures: LiveFigures };

/** What is being sent. */
export interface LiveFigures {
  qualities: QualityFigures[];
  /** Sound, in bits a second; null: none. */
  sound: number | null;
  /** What goes to the node, to all who watch together, in bits a second: nothing while nobody does. */
  sent: number;
  /** Pictures left out before encoding, as the encoder or the network was behind. */
  dropped: { encoder: number; network: number };
  /** How long what goes to the node waits before it leaves, in milliseconds; less than 0: unknown. */
  waits: number;
  /** Whether less is sent than could be, as the connection does not carry all. */
  isNarrow: boolean;
}

/** One quality of the picture. */
export interface QualityFigures {
  name: string;
  codec: string;
  width: number;
  height: number;
  /** Bits and pictures a second. */
  bitrate: number;
  rate: number;
}
