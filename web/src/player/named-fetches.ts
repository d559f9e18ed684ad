import type { Command } from "../shared/messages.ts";
import { SCHEME, type FetchReport } from "../shared/package.ts";

/** The same address is not fetched again before so many milliseconds have passed: a playlist may want to be read all the time. */
const MIN_INTERVAL = 500;
/** Addresses whose last fetch is remembered. */
const MAX_REMEMBERED = 32;

/** Hears of one object. */
export interface FetchListener {
  /** So many octets are here, of so many. */
  progress(octets: number, total: number): void;
  /** The time in which Data flowed, in milliseconds: what it was waited for before it existed is no part. */
  done(octets: Uint8Array<ArrayBuffer>, flowed: number): void;
  failed(why: string): void;
}

/** What was fetched. */
export interface FetchCounters {
  fetched: number;
  octets: number;
  failed: number;
  /** Addresses that lead elsewhere than to a name. */
  refused: number;
}

/** Fetches objects by name through the worker's node. */
export class NamedFetches {
  readonly #send: (command: Command) => void;
  readonly #listeners = new Map<number, FetchListener>();
  readonly #delayed = new Map<number, ReturnType<typeof setTimeout>>();
  /** When each address was fetched last. */
  readonly #fetchedAt = new Map<string, number>();
  #next = 1;
  readonly counters: FetchCounters = { fetched: 0, octets: 0, failed: 0, refused: 0 };

  constructor(send: (command: Command) => void) {
    this.#send = send;
  }

  /** Fetches what is at an address of the form `ndn:/name`. Returns its number, for `giveUp`. */
  fetch(address: string, listener: FetchListener): number {
    const number = this.#next;
    this.#next += 1;
    this.#listeners.set(number, listener);
    if (!address.startsWith(`${SCHEME}/`) || address.startsWith(`${SCHEME}//`)) {
      this.counters.refused += 1;
      this.#later(number, 0, () => this.#fail(number, `${address} is no name, so it is not fetched`));
      return number;
    }
    const now = performance.now();
    const free = (this.#fetchedAt.get(address) ?? -Infinity) + MIN_INTERVAL;
    this.#later(number, Math.max(0, free - now), () => {
      this.#remember(address);
      this.#send({ type: "fetch", number, name: address.slice(SCHEME.length) });
    });
    return number;
  }

  /** Fetches it no more; its listener hears nothing more. */
  giveUp(number: number): void {
    clearTimeout(this.#delayed.get(number));
    this.#delayed.delete(number);
    if (this.#listeners.delete(number)) {
      this.#send({ type: "giveUp", number });
    }
  }

  handle(report: FetchReport): void {
    const listener = this.#listeners.get(report.number);
    switch (report.type) {
      case "fetching":
        listener?.progress(report.octets, Math.round(report.octets / Math.max(report.share, Number.EPSILON)));
        break;
      case "fetched":
        this.#listeners.delete(report.number);
        this.counters.fetched += 1;
        this.counters.octets += report.octets.length;
        listener?.done(report.octets, report.flowed);
        break;
      case "unfetched":
        this.#fail(report.number, report.why);
        break;
    }
  }

  #fail(number: number, why: string): void {
    const listener = this.#listeners.get(number);
    this.#listeners.delete(number);
    this.counters.failed += 1;
    listener?.failed(why);
  }

  #later(number: number, milliseconds: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#delayed.delete(number);
      run();
    }, milliseconds);
    this.#delayed.set(number, timer);
  }

  #remember(address: string): void {
    this.#fetchedAt.delete(address);
    this.#fetchedAt.set(address, performance.now());
    const [oldest] = this.#fetchedAt.keys();
    if (this.#fetchedAt.size > MAX_REMEMBERED && oldest !== undefined) {
      this.#fetchedAt.delete(oldest);
    }
  }
}
