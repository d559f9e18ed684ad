import type { Evidence } from "../shared/facts.ts";

/** What else `Proofs` reports. */
export interface Measured {
  /** When a picture was last shown. */
  shownAt: number | undefined;
  /** Time since which the node has answered nothing. */
  unanswered: number;
  /** Interests that nodes have refused so far. */
  nacked: number;
  /** Time between two pictures. */
  interval: number;
  /** Age of the oldest picture in the decoder. */
  decoding: number;
}

/** Frames that came within this time show that the stream is there, in milliseconds. */
const RECENT = 250;

/** What was proved of a stream, and when. Times are the worker's, in milliseconds. */
export class Proofs {
  /** When a frame of any stream arrived, and when sound was heard. */
  #arrivedAt: number | undefined;
  #heardAt: number | undefined;
  /** Since when a picture is due: the connection is up, or the picture was requested again. */
  #soughtAt = performance.now();
  /** Interests that nodes had refused while frames came. */
  #nacked = 0;

  /** A frame or an object arrived. */
  handleArrival(): void {
    this.#arrivedAt = performance.now();
  }

  /** The device played sound. */
  handleSound(): void {
    this.#heardAt = performance.now();
  }

  /** A picture is due from now on. */
  seek(): void {
    this.#soughtAt = performance.now();
  }

  /** Refusals up to now are no proof that nobody publishes: `nacked` Interests. */
  forgive(nacked: number): void {
    this.#nacked = nacked;
  }

  /** Refusals do not count while frames arrive. */
  tick(now: number, nacked: number): void {
    if (this.#arrivedAt !== undefined && now - this.#arrivedAt < RECENT) {
      this.#nacked = nacked;
    }
  }

  /** What was proved, and how long ago. */
  evidence(now: number, { shownAt, unanswered, nacked, interval, decoding }: Measured): Evidence {
    const age = (at: number | undefined): number | null => (at === undefined ? null : now - at);
    return {
      shown: age(shownAt),
      heard: age(this.#heardAt),
      arrived: age(this.#arrivedAt),
      unanswered,
      settled: now - this.#soughtAt,
      refused: nacked - this.#nacked,
      interval,
      decoding,
    };
  }
}
