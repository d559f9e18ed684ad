/** Whether a person can see an element: its page is shown, and a part of it is on the screen. */
export class Sight {
  readonly #element: HTMLElement;
  readonly #isAlways: () => boolean;
  readonly #changed: (isSeen: boolean) => void;
  #isOnScreen = true;
  #isReported: boolean | undefined;
  readonly #refresh = (): void => this.refresh();
  readonly #scrolling = new IntersectionObserver((entries) => {
    this.#isOnScreen = entries.at(-1)?.isIntersecting ?? true;
    this.refresh();
  });

  /**
   * @param isAlways whether the picture counts as seen wherever the element is
   * @param changed takes each change
   */
  constructor(element: HTMLElement, isAlways: () => boolean, changed: (isSeen: boolean) => void) {
    this.#element = element;
    this.#isAlways = isAlways;
    this.#changed = changed;
  }

  /** Whether a person can see it now, as far as it is known. */
  get isSeen(): boolean {
    return this.#isAlways() || (!document.hidden && this.#isOnScreen);
  }

  /** The element is in a page. */
  connect(): void {
    this.#isReported = this.isSeen;
    document.addEventListener("visibilitychange", this.#refresh);
    this.#scrolling.observe(this.#element);
  }

  /** The element is in no page any more. */
  disconnect(): void {
    document.removeEventListener("visibilitychange", this.#refresh);
    this.#scrolling.disconnect();
    this.#isOnScreen = true;
  }

  /** Reports a change, if there is one. */
  refresh(): void {
    const { isSeen } = this;
    if (isSeen !== this.#isReported) {
      this.#isReported = isSeen;
      this.#changed(isSeen);
    }
  }
}
