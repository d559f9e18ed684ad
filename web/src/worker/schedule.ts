/** Something decoded that is to be shown at a time, and holds memory until closed. */
export interface Timed {
  /** When to show it, in milliseconds. */
  dueAt: number;
  close(): void;
}

/**
 * Decoded frames that wait for their time, in order of it.
 *
 * Bounded, since each holds megabytes outside the heap: what does not fit pushes out the oldest. Every frame that comes
 * in is delivered by `take` or closed.
 */
export class FrameQueue<F extends Timed> {
  readonly #bound: number;
  #frames: F[] = [];
  /** Frames closed because a newer one was due at the same moment. */
  overtaken = 0;

  constructor(bound: number) {
    this.#bound = Math.max(1, bound);
  }

  get length(): number {
    return this.#frames.length;
  }

  /** Puts a frame in its place. */
  push(frame: F): void {
    let place = this.#frames.length;
    while (place > 0 && (this.#frames[place - 1]?.dueAt ?? 0) > frame.dueAt) {
      place -= 1;
    }
    this.#frames.splice(place, 0, frame);
    if (this.#frames.length > this.#bound) {
      this.#frames.shift()?.close();
      this.overtaken += 1;
    }
  }

  /** The newest frame that is due at `now`, if any; older ones are closed. */
  take(now: number): F | undefined {
    let newest: F | undefined;
    for (let next = this.#frames[0]; next !== undefined && next.dueAt <= now; next = this.#frames[0]) {
      if (newest !== undefined) {
        newest.close();
        this.overtaken += 1;
      }
      newest = this.#frames.shift();
    }
    return newest;
  }

  /** When the next frame is due. */
  nextAt(): number | undefined {
    return this.#frames[0]?.dueAt;
  }

  /** Moves all that waits by `milliseconds`, as the playout target moved. */
  shift(milliseconds: number): void {
    for (const frame of this.#frames) {
      frame.dueAt += milliseconds;
    }
  }

  /** Closes all that waits. */
  clear(): void {
    for (const frame of this.#frames) {
      frame.close();
    }
    this.#frames = [];
  }
}
