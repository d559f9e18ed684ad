import { readRecords, type TabRecord } from "./records.ts";
import type { Tab } from "./tab.ts";

/** Longest sleep: the core is polled for what it needs at least this often, in milliseconds. */
const LONGEST_SLEEP = 1_000;
/** Browsers let timers that timers set sleep at least this long, in milliseconds. */
const SHORTEST_SLEEP = 4;

/** Calls a core when something is due, and takes what it wants done. */
export class Pump {
  readonly #core: Tab;
  readonly #take: (record: TabRecord) => void;
  readonly #woke: (late: number) => void;
  #isWanted = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Infinity;

  /** @param woke is called when the timer fires, with the time by which it was late, in milliseconds */
  constructor(core: Tab, take: (record: TabRecord) => void, woke: (late: number) => void = () => undefined) {
    this.#core = core;
    this.#take = take;
    this.#woke = woke;
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
    this.#timerAt = performance.now() + Math.max(SHORTEST_SLEEP, sleep);
    this.#timer = setTimeout(() => this.#wake(), Math.max(0, sleep));
  }

  /** By how much the timer is late that has not fired yet, in milliseconds; negative: it is not due. */
  get overdue(): number {
    return performance.now() - this.#timerAt;
  }

  #wake(): void {
    this.#woke(this.overdue);
    this.run();
  }

  /** The core is called no more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
