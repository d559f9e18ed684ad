/** Keeps the screen on while something plays. */
export class WakeLock {
  #wanted = false;
  #lock: Promise<WakeLockSentinel | undefined> | undefined;

  constructor() {
    // The browser takes it back while the page is hidden.
    document.addEventListener("visibilitychange", () => this.#apply());
  }

  /** Whether it is wanted from now on. */
  want(wanted: boolean): void {
    if (wanted !== this.#wanted) {
      this.#wanted = wanted;
      this.#apply();
    }
  }

  #apply(): void {
    const held = this.#lock;
    this.#lock = undefined;
    void held?.then((lock) => lock?.release());
    if (this.#wanted && !document.hidden) {
      // Some browsers have none, and none gives it while the battery is low.
      this.#lock = navigator.wakeLock?.request("screen").catch(() => undefined);
    }
  }
}
