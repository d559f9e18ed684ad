import { FREEZE, type Presented, type PresentedFrame } from "./presented.ts";
import { FrameQueue, type Timed } from "./schedule.ts";
import type { Screen } from "./screen.ts";

/** Decoded frames that may wait: 720p in I420 is 1.4 MB each. */
const MAX_DECODED = 16;
/** A frame this much before its time is shown at once: timers are no finer. */
const EARLY = 2;

/** What `Display` reports. Times are the worker's, in milliseconds. */
export interface DisplayHost {
  rendered(position: number): void;
  resized(width: number, height: number): void;
  /** Frames were taken from the queue. */
  taken(): void;
  /** Whether a newer frame is being decoded. */
  expectsMore(): boolean;
}

/** A decoded frame that waits for its time. */
export interface DecodedFrame extends Timed, PresentedFrame {
  image: VideoFrame;
}

/** Shows decoded frames, each at its time. */
export class Display {
  readonly #host: DisplayHost;
  readonly #screen: Screen;
  readonly #queue = new FrameQueue<DecodedFrame>(MAX_DECODED);
  #size = { width: 0, height: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Infinity;
  #lastShown = -1;

  readonly presented: Presented;
  readonly counts = { late: 0, skipped: 0 };
  /** Least time between two pictures, in milliseconds. */
  minInterval = 0;

  constructor(screen: Screen, presented: Presented, host: DisplayHost) {
    this.#screen = screen;
    this.#host = host;
    this.presented = presented;
  }

  /** Decoded frames that wait. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Frames closed because a newer one was due at the same moment. */
  get overtaken(): number {
    return this.#queue.overtaken;
  }

  /** Takes a frame; `show` is to be called next. */
  add(frame: DecodedFrame): void {
    this.#queue.push(frame);
  }

  /** Shows the newest frame that is due, and sets the timer for the next. */
  show(): void {
    const frame = this.#queue.take(performance.now() + EARLY);
    if (frame !== undefined) {
      const { shownAt } = this.presented;
      if (frame.image.timestamp <= this.#lastShown || this.#isCatchingUp(frame)) {
        // What was old already when it came was only needed to decode the next.
        this.counts.late += frame.cameLate ? 0 : 1;
        frame.close();
      } else if (shownAt !== undefined && performance.now() - shownAt < this.minInterval - EARLY) {
        this.counts.skipped += 1;
        frame.close();
      } else {
        this.#draw(frame);
      }
      this.#host.taken();
    }
    this.#schedule();
  }

  /** Closes the frames that wait. The pause before the next one is no freeze. */
  interrupt(): void {
    this.#queue.clear();
    this.presented.interrupt();
  }

  /** Moves all that waits. */
  shift(milliseconds: number): void {
    this.#queue.shift(milliseconds);
    this.#schedule();
  }

  /** Stops; the picture on the screen stays. */
  close(): void {
    clearTimeout(this.#timer);
    this.#queue.clear();
    this.#screen.clear();
  }

  /**
   * Whether a newer picture follows within moments. Such frames came late already, and there was a picture lately: the newest one is
   * shown however late it is.
   */
  #isCatchingUp(frame: DecodedFrame): boolean {
    const now = performance.now();
    return frame.cameLate && now - frame.dueAt > FREEZE && !this.presented.isFrozen(now) && this.#host.expectsMore();
  }

  #schedule(): void {
    const next = this.#queue.nextAt();
    if (next === undefined || (this.#timer !== undefined && this.#timerAt === next)) {
      return;
    }
    clearTimeout(this.#timer);
    this.#timerAt = next;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.show();
      },
      Math.max(0, next - performance.now()),
    );
  }

  #draw(frame: DecodedFrame): void {
    const { image, record } = frame;
    const { displayWidth: width, displayHeight: height, timestamp } = image;
    if (this.#size.width !== width || this.#size.height !== height) {
      this.#size = { width, height };
      this.#host.resized(width, height);
    }
    this.#screen.show(image);
    this.#lastShown = timestamp;
    this.#host.rendered(record.position);
    this.presented.handleShown(frame, performance.now());
  }
}
