/** Captions over the picture. */
export class Captions {
  readonly #line: HTMLElement;
  readonly #changed: () => void;
  #isThere = false;
  #isShown = true;

  constructor(line: HTMLElement, changed: () => void) {
    this.#line = line;
    this.#changed = changed;
  }

  /** Whether any have come. */
  get isThere(): boolean {
    return this.#isThere;
  }

  /** Whether they are shown. */
  get isShown(): boolean {
    return this.#isShown;
  }

  set isShown(isShown: boolean) {
    this.#isShown = isShown;
    this.#show(this.#line.textContent ?? "");
    this.#changed();
  }

  /** Shows this text from now on. */
  handle(text: string): void {
    this.#show(text);
    if (!this.#isThere) {
      this.#isThere = true;
      this.#changed();
    }
  }

  /** There are none any more. */
  forget(): void {
    this.#isThere = false;
    this.#show("");
    this.#changed();
  }

  #show(text: string): void {
    this.#line.textContent = text;
    this.#line.hidden = text === "" || !this.#isShown;
  }
}
