import type { Shown } from "../shared/messages.ts";
import type { StageTimes } from "../shared/summary.ts";
import { Meter } from "./meter.ts";
import type { FrameRecord } from "./records.ts";
import { FrameQueue, type Timed } from "./schedule.ts";
import type { Screen } from "./screen.ts";

/** Decoded frames that may wait: 720p in I420 is 1.4 MB each. */
const MAX_DECODED = 16;
/** A frame this much before its time is shown at once: timers are no finer. */
const EARLY = 2;
/** Gap between two frames that a person notices as a freeze, in milliseconds. */
const FREEZE = 200;
/** Frames that the mean of each stage is taken of: four seconds at 30 fps. */
const MAX_MEASURED = 120;
/** Frames whose showing is remembered until the page asks. */
const MAX_SHOWN = 600;

/** What `Display` reports. Times are the worker's, in milliseconds. */
export interface DisplayHost {
  rendered(position: number): void;
  resized(width: number, height: number): void;
  /** Frames were taken from the queue. */
  taken(): void;
  /** Whether a newer frame is being decoded. */
  expectsMore(): boolean;
  /** By how much a picture of the rung is shown after it could be decoded, at most, in milliseconds. */
  reorderDelay(rung: string): number;
}

/** A decoded frame that waits for its time. */
export interface DecodedFrame extends Timed {
  image: VideoFrame;
  record: FrameRecord;
  /** Its time was over before it was decoded, as when a stream is joined at its newest key frame. */
  cameLate: boolean;
  took: number;
  decodedAt: number;
}

/** Shows decoded frames, each at its time, and measures how late they are. */
export class Display {
  readonly #host: DisplayHost;
  readonly #screen: Screen;
  readonly #queue = new FrameQueue<DecodedFrame>(MAX_DECODED);
  #size = { width: 0, height: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Infinity;
  #shownAt: number | undefined;
  /** When the frame before the next one was shown, if a pause between them is a freeze. */
  #lastShownAt: number | undefined;
  #lastShown = -1;
  #capturedAt: number | null = null;
  #rung: string | null = null;
  #shown: Shown[] = [];

  readonly latency = new Meter(300);
  readonly lateness = new Meter(MAX_MEASURED);
  readonly stages: StageTimes[] = [];
  readonly counts = { shown: 0, late: 0, skipped: 0, freezes: 0, longestGap: 0 };
  /** Least time between two pictures, in milliseconds. */
  minInterval = 0;

  constructor(screen: Screen, host: DisplayHost) {
    this.#screen = screen;
    this.#host = host;
  }

  /** Capture of the newest frame shown, in milliseconds since 1970. */
  get capturedAt(): number | null {
    return this.#capturedAt;
  }

  /** When a frame was last shown, in the worker's milliseconds. */
  get shownAt(): number | undefined {
    return this.#shownAt;
  }

  /** The rung of the newest frame shown. */
  get rung(): string | null {
    return this.#rung;
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
      if (frame.image.timestamp <= this.#lastShown || this.#isCatchingUp(frame)) {
        // What was old already when it came was only needed to decode the next.
        this.counts.late += frame.cameLate ? 0 : 1;
        frame.close();
      } else if (this.#shownAt !== undefined && performance.now() - this.#shownAt < this.minInterval - EARLY) {
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
    this.#lastShownAt = undefined;
  }

  /** Moves all that waits. */
  shift(milliseconds: number): void {
    this.#queue.shift(milliseconds);
    this.#schedule();
  }

  /** Frames shown since the last call. */
  takeShown(): Shown[] {
    const shown = this.#shown;
    this.#shown = [];
    return shown;
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
    const isFrozen = this.#lastShownAt === undefined || now - this.#lastShownAt > FREEZE;
    return frame.cameLate && now - frame.dueAt > FREEZE && !isFrozen && this.#host.expectsMore();
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
    const now = performance.now();
    this.counts.shown += 1;
    if (this.#lastShownAt !== undefined) {
      const gap = now - this.#lastShownAt;
      this.counts.longestGap = Math.max(this.counts.longestGap, gap);
      this.counts.freezes += gap > FREEZE ? 1 : 0;
    }
    this.#shownAt = now;
    this.#lastShownAt = now;
    this.#lastShown = timestamp;
    this.#capturedAt = record.capturedAt;
    this.#rung = record.rung;
    this.#host.rendered(record.position);
    this.#measure(frame, now);
  }

  #measure(frame: DecodedFrame, now: number): void {
    const { record } = frame;
    const wall = performance.timeOrigin + now;
    this.#remember(frame, wall);
    if (frame.cameLate || record.catchingUp) {
      // An old picture, shown while joining or from an archive, says nothing about the latency of live ones.
      return;
    }
    this.lateness.push(now - frame.dueAt);
    const capturedAt = record.capturedAt - this.#host.reorderDelay(record.rung);
    this.latency.push(wall - capturedAt);
    const { encode, publish, network, reassembly } = record.stages;
    const display = Math.max(0, now - Math.max(frame.dueAt, frame.decodedAt));
    const known = encode + publish + network + reassembly + frame.took + display;
    const buffer = Math.max(0, wall - capturedAt - known);
    this.stages.push({ capture: 0, encode, publish, network, reassembly, buffer, decode: frame.took, display });
    if (this.stages.length > MAX_MEASURED) {
      this.stages.shift();
    }
  }

  #remember({ record, dueAt }: DecodedFrame, wall: number): void {
    this.#shown.push({
      position: record.position,
      rung: record.rung,
      capturedAt: record.capturedAt,
      dueAt: performance.timeOrigin + dueAt,
      shownAt: wall,
    });
    if (this.#shown.length > MAX_SHOWN) {
      this.#shown.shift();
    }
  }
}
