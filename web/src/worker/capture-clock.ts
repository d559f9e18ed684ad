/** How long the quickest arrival counts, in milliseconds: device clocks drift less than a picture in that time. */
const WINDOW = 5_000;

/**
 * When something was captured, by the tab's clock. Captured media tell times of a clock of their own, and arrive later by what
 * passes in the browser; the quickest arrival of the last seconds shows how the two clocks stand.
 */
export class CaptureClock {
  #since = -Infinity;
  #quickest = Infinity;
  #quickestBefore = Infinity;

  /** For a timestamp in microseconds that arrived `now`, in milliseconds. */
  capturedAt(timestamp: number, now: number): number {
    if (now - this.#since >= WINDOW) {
      this.#since = now;
      this.#quickestBefore = this.#quickest;
      this.#quickest = Infinity;
    }
    const ahead = now - timestamp / 1_000;
    this.#quickest = Math.min(this.#quickest, ahead);
    return timestamp / 1_000 + Math.min(this.#quickest, this.#quickestBefore);
  }
}
