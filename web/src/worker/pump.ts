import type { CorePort } from "./core-port.ts";
import { readRecords, type TabRecord } from "./records.ts";

/** Longest sleep: the core is polled for what it needs at least this often, in milliseconds. */
const LONGEST_SLEEP = 1_000;

/** Calls a core when something is due, and takes what it wants done. */
export class Pump {
  readonly #core: CorePort;
  readonly #take: (record: TabRecord) => void;
  #isWanted = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(core: CorePort, take: (record: TabRecord) => void) {
    this.#core = core;
    this.#take = take;
  }

  /** Runs once what calls the core now has ended. */
  soon(): void {
    if (!this.#isWanted) {
      this.#isWanted = true;
      queueMicrotask(() => this.run());
    }
  }

  /** Takes what the core wants done, and sleeps until it wants something again. */
  run(): void {
    this.#isWanted = false;
    if (this.#isClosed) {
      return;
    }
    const now = performance.now();
    if (this.#core.pollTimeout() <= now) {
      this.#core.handleTimeout(now);
    }
    for (const record of readRecords(this.#core.drain() as Uint8Array<ArrayBuffer>)) {
      this.#take(record);
    }
    clearTimeout(this.#timer);
    const sleep = Math.min(LONGEST_SLEEP, this.#core.pollTimeout() - performance.now());
    this.#timer = setTimeout(() => this.run(), Math.max(0, sleep));
  }

  /** The core is called no more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
