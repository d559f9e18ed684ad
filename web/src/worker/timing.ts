import { LipSync } from "./lip-sync.ts";
import { PlayoutTarget, type Timed } from "./playout-target.ts";
import type { FrameRecord } from "./records.ts";

/** Most that playback from the past waits for its first frame to be decoded: what comes meanwhile is kept decoded. */
const MAX_LAG = 300;

/** What waits for its time, and moves with it, in milliseconds. */
export interface Waiting {
  shiftVideo(milliseconds: number): void;
  shiftSound(milliseconds: number): void;
}

/** When pictures, sound and data are due: the core's times, and what this machine needs beyond them. Times are the worker's, in milliseconds. */
export class Timing {
  readonly #waiting: Waiting;
  readonly #lipSync = new LipSync();
  /** The chosen target, which the path keeps. */
  #target: number;
  /** The target in use. */
  readonly playout: PlayoutTarget;
  /** What the picture waits for the sound. */
  #held = 0;
  /** What the past is played later than the core thinks. */
  #lag = 0;

  constructor(target: number, waiting: Waiting) {
    this.#target = target;
    this.#waiting = waiting;
    this.playout = new PlayoutTarget(target);
    this.playout.restart(performance.now());
  }

  /** The chosen target. */
  get target(): number {
    return this.#target;
  }

  /** When to show a picture. */
  videoDueAt(record: FrameRecord): number {
    const dueAt = this.#ownDueAt(record);
    if (!record.decodeOnly) {
      this.#lipSync.handleVideo(record.capturedAt, dueAt);
    }
    return dueAt + this.#held;
  }

  /** When sound is to be heard. */
  soundDueAt(record: FrameRecord): number {
    return this.#lipSync.soundDueAt(record.capturedAt, this.#ownDueAt(record));
  }

  /** When a sample of data, a caption perhaps, is due. */
  dataDueAt(record: FrameRecord): number {
    return this.#ownDueAt(record) + this.#held;
  }

  #ownDueAt({ dueAt }: FrameRecord): number {
    return dueAt + this.#lag + this.playout.margin;
  }

  /** Sets the chosen target. */
  choose(target: number): void {
    this.#target = target;
    const before = this.playout.current;
    this.playout.choose(target);
    this.#shift(this.playout.current - before);
  }

  /** Something could be presented `late` milliseconds after its time. Returns by how much all of it is due later from now on. */
  handleReady(stream: Timed, late: number): number {
    const now = performance.now();
    return this.playout.push(stream, now, this.playout.current + late) ? this.adapt(now) : 0;
  }

  /** Moves picture and sound to the target that is needed now. Returns by how much. */
  adapt(now: number): number {
    const moved = this.playout.update(now);
    if (moved !== 0) {
      this.#shift(moved);
    }
    return moved;
  }

  /** Decoding up to the first frame took longer than thought: what follows it waits as well, so that it is seen in peace. */
  handleJumpedLate(late: number): void {
    const lag = Math.min(late, MAX_LAG);
    this.#lag += lag;
    this.#shift(lag);
  }

  /** Playback jumped to another time. */
  handleJump(now: number): void {
    this.#lag = 0;
    this.#lipSync.reset();
    this.playout.restart(now);
  }

  /** Another path shows the picture, which needs another target. */
  handlePathChange(now: number): void {
    this.#shift(this.playout.reset(now));
  }

  /** The audio device needs all sound to be so much later, and the picture waits for it. */
  hold(delay: number): void {
    if (delay !== this.#held) {
      this.#waiting.shiftVideo(delay - this.#held);
      this.#held = delay;
    }
  }

  /** Moves all that is not presented yet. */
  #shift(milliseconds: number): void {
    this.#waiting.shiftVideo(milliseconds);
    this.#waiting.shiftSound(milliseconds);
    this.#lipSync.shift(milliseconds);
  }
}
