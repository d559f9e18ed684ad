import type { RoomFact } from "./room.ts";

/** Why a sealed sample is not opened: the publisher has no key for this reader, it was sealed before, its box is missing, or it was changed. */
export type SealedWhy = "notareader" | "beforejoining" | "boxmissing" | "damaged";

/** Why a stream is not shown although it is signed. */
export interface SignerRefusal {
  /**
   * `changed`: another key than the remembered one, which was first seen on the day `since`; `pinned`: another key than the link
   * names; `untrusted`: the verdict says why.
   */
  why: "changed" | "pinned" | "untrusted";
  signer: string;
  verdict: string;
  since: string;
}

/** What happened to a request for another time. Times are the publisher's clock, in milliseconds since 1970. */
export interface MissedTime {
  to: number;
  /** Start of the archive; null: unknown. */
  since: number | null;
  /** Whether an archive answered. */
  answered: boolean;
}

/** Facts that the worker reports when they change; measured values are in `Summary`. */
export interface Facts {
  /** Whether the node's web server answers. */
  server: "unknown" | "answers" | "silent";
  /** Whether a transport is up, and why the last one ended; null: none ended since. */
  link: { isUp: boolean; lost: string | null };
  refusal: SignerRefusal | null;
  /** Codecs that this browser cannot decode. */
  videoCodec: string | null;
  audioCodec: string | null;
  /** What ended the worker. */
  failure: string | null;
  missed: MissedTime | null;
  /** How the tab stands in its room; null: it is in none. */
  room: RoomFact | null;
  /** Why sealed samples are not opened; null: they are, or none are sealed. */
  sealed: SealedWhy | null;
  /** Why this page's own stream is not published; null: it is, or nobody wants it. */
  publishing: string | null;
}

export const NO_FACTS: Facts = {
  server: "unknown",
  link: { isUp: false, lost: null },
  refusal: null,
  videoCodec: null,
  audioCodec: null,
  failure: null,
  missed: null,
  room: null,
  sealed: null,
  publishing: null,
};

/** Times since something was last proved, in milliseconds; null: never. */
export interface Evidence {
  /** A picture was shown. */
  shown: number | null;
  /** Sound was heard. */
  heard: number | null;
  /** A picture, sound or data of the stream arrived whole. */
  arrived: number | null;
  /** Since when the node has not answered any request; 0: it answers. */
  unanswered: number;
  /** Time since the connection was made, the stream was sought, or the picture was requested again. */
  settled: number;
  /** Interests that nodes refused since the last frame arrived. */
  refused: number;
  /** Time between two pictures, in milliseconds. */
  interval: number;
  /** Age of the oldest frame in the decoder. */
  decoding: number;
}
