/** Weight of one frame's delay in the mean: a second of frames, so that one that was encoded slowly moves it little. */
const WEIGHT = 0.03;
/** A delay that differs by more is a new beginning, in milliseconds. */
const JUMP = 100;
/** Difference between sound and picture beyond which their capture times are not of one clock, in milliseconds. */
const MOST = 300;

/**
 * Brings sound in step with the picture by the times of their capture.
 *
 * The core times each stream by its publication. Sound is published a packet's length and its encoder's delay after it was
 * captured, which is more than for a picture, and would be heard that much after it.
 */
export class LipSync {
  /** From capture to showing, of the picture; includes whatever the clocks differ by. */
  #delay: number | undefined;

  /** Records a video frame, both times in milliseconds. */
  handleVideo(capturedAt: number, dueAt: number): void {
    const delay = dueAt - capturedAt;
    const known = this.#delay;
    this.#delay = known === undefined || Math.abs(delay - known) > JUMP ? delay : known + WEIGHT * (delay - known);
  }

  /** When sound that was captured at `capturedAt`, and is due at `dueAt` by itself, is to be heard. */
  soundDueAt(capturedAt: number, dueAt: number): number {
    const matched = this.#delay === undefined ? dueAt : capturedAt + this.#delay;
    return Math.abs(matched - dueAt) > MOST ? dueAt : matched;
  }

  /** Playback is somewhere else in time. */
  reset(): void {
    this.#delay = undefined;
  }

  /** The playout target moved. */
  shift(milliseconds: number): void {
    if (this.#delay !== undefined) {
      this.#delay += milliseconds;
    }
  }
}
