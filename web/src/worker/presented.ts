import type { Shown } from "../shared/messages.ts";
import type { StageTimes } from "../shared/summary.ts";
import { Meter } from "./meter.ts";
import type { FrameRecord } from "./records.ts";

/** Gap between two frames that a person notices as a freeze, in milliseconds. */
export const FREEZE = 200;
/** Frames that the mean of each stage is taken of: four seconds at 30 fps. */
const MAX_MEASURED = 120;
/** Frames whose showing is remembered until the page asks. */
const MAX_SHOWN = 600;

/** A frame that was shown. Times are the worker's, in milliseconds. */
export interface PresentedFrame {
  record: FrameRecord;
  dueAt: number;
  /** Its time was over before it was decoded, as when a stream is joined at its newest key frame. */
  cameLate: boolean;
  /** What decoding took, and when it ended. */
  took: number;
  decodedAt: number;
}

/** The frames that were shown, and how late they were. */
export class Presented {
  readonly #reorderDelay: (rung: string) => number;
  #shownAt: number | undefined;
  /** When the frame before the next one was shown, if a pause between them is a freeze. */
  #lastShownAt: number | undefined;
  #capturedAt: number | null = null;
  #rung: string | null = null;
  #shown: Shown[] = [];

  readonly latency = new Meter(300);
  readonly lateness = new Meter(MAX_MEASURED);
  readonly stages: StageTimes[] = [];
  readonly counts = { shown: 0, freezes: 0, longestGap: 0 };

  /** @param reorderDelay by how much a picture of a rung is shown after it could be decoded, at most, in milliseconds */
  constructor(reorderDelay: (rung: string) => number) {
    this.#reorderDelay = reorderDelay;
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

  /** Whether the last picture was shown so long ago that a person noticed, or the next one is the first. */
  isFrozen(now: number): boolean {
    return this.#lastShownAt === undefined || now - this.#lastShownAt > FREEZE;
  }

  /** Frames shown since the last call. */
  takeShown(): Shown[] {
    const shown = this.#shown;
    this.#shown = [];
    return shown;
  }

  /** The pause before the next frame is no freeze, and how late those before it were tells nothing of those after. */
  interrupt(): void {
    this.#lastShownAt = undefined;
    this.lateness.clear();
  }

  /** Records that a frame was shown at `now`. */
  handleShown(frame: PresentedFrame, now: number): void {
    this.counts.shown += 1;
    if (this.#lastShownAt !== undefined) {
      const gap = now - this.#lastShownAt;
      this.counts.longestGap = Math.max(this.counts.longestGap, gap);
      this.counts.freezes += gap > FREEZE ? 1 : 0;
    }
    this.#shownAt = now;
    this.#lastShownAt = now;
    this.#capturedAt = frame.record.capturedAt;
    this.#rung = frame.record.rung;
    this.#measure(frame, now);
  }

  #measure(frame: PresentedFrame, now: number): void {
    const { record } = frame;
    const wall = performance.timeOrigin + now;
    this.#remember(frame, wall);
    if (!frame.cameLate) {
      // Sound is kept in step with it, in the past as well.
      this.lateness.push(now - frame.dueAt);
    }
    if (frame.cameLate || record.catchingUp) {
      // An old picture, shown while joining or from an archive, says nothing about the latency of live ones.
      return;
    }
    const capturedAt = record.capturedAt - this.#reorderDelay(record.rung);
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

  #remember({ record, dueAt }: PresentedFrame, wall: number): void {
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
