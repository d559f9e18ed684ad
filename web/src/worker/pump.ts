import { readRecords, type TabRecord } from "./records.ts";
import type { Tab } from "./tab.ts";

/** What is called of a core. */
export type Pumped = Pick<Tab, "pollTimeout" | "handleTimeout" | "drain">;

/** Longest sleep: the core is polled for what it needs at least this often, in milliseconds. */
const LONGEST_SLEEP = 1_000;
/** Shortest sleep: one wake-up serves all that is due within it, in milliseconds. Browsers let timers that timers set sleep as long. */
const SHORTEST_SLEEP = 4;

/**
 * Calls a core when something is due, and takes what it wants done.
 *
 * One run serves all packets that have arrived by then, and one timer all deadlines: a deadline that moves away leaves the timer
 * as it is, which then finds nothing due and is set again.
 */
export class Pump {
  readonly #core: Pumped;
  readonly #take: (record: TabRecord) => void;
  readonly #woke: (late: number) => void;
  /** Delivers its own message after all tasks that are queued already, those of packets among them. */
  readonly #queue = new MessageChannel();
  #isWanted = false;
  #isClosed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Infinity;

  /** @param woke is called when the timer fires, with the time by which it was late, in milliseconds */
  constructor(core: Pumped, take: (record: TabRecord) => void, woke: (late: number) => void = () => undefined) {
    this.#core = core;
    this.#take = take;
    this.#woke = woke;
    this.#queue.port1.onmessage = () => this.run();
  }

  /** Runs once the packets that wait for this thread have been handed to the core. */
  soon(): void {
    if (!this.#isWanted && !this.#isClosed) {
      this.#isWanted = true;
      this.#queue.port2.postMessage(null);
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
    this.#sleep();
  }

  /** By how much the timer is late that has not fired yet, in milliseconds; negative: it is not due. */
  get overdue(): number {
    return performance.now() - this.#timerAt;
  }

  #sleep(): void {
    const now = performance.now();
    const sleep = Math.max(SHORTEST_SLEEP, Math.min(LONGEST_SLEEP, this.#core.pollTimeout() - now));
    const at = now + sleep;
    if (at >= this.#timerAt) {
      return;
    }
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#wake(), sleep);
  }

  #wake(): void {
    this.#woke(this.overdue);
    this.#timerAt = Infinity;
    if (this.#core.pollTimeout() <= performance.now()) {
      this.run();
    } else {
      this.#sleep();
    }
  }

  /** The core is called no more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#queue.port1.close();
  }
}
