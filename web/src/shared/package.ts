/** Kind of package of a stream, as its codec in the catalogue says. */
export const HLS = "hls";
/** What addresses of named objects begin with. */
export const SCHEME = "ndn:";

/** A stream that is published as playlists and segments. */
export interface PackageInfo {
  /** Name of the stream. */
  name: string;
  /** The catalogue's version: another one when the publisher was started again. */
  version: number;
  /** Address of the playlist over HTTP, which the node makes; absent: it is fetched by name. */
  address?: string;
}

/** Address of the playlist that a player begins with. */
export function playlistOf(name: string): string {
  return `${SCHEME}${name}/${HLS}/index.m3u8`;
}

/** What becomes of an object that is fetched by name. */
export type FetchReport =
  /** So many octets are here, `share` of all. */
  | { type: "fetching"; number: number; octets: number; share: number }
  /** It is here. It was waited for, then its Data flowed: milliseconds. */
  | { type: "fetched"; number: number; waited: number; flowed: number; octets: Uint8Array<ArrayBuffer> }
  | { type: "unfetched"; number: number; why: string };
