import { element } from "./elements.ts";

/** Steps that stay on the page. */
const MAX_STEPS = 60;

/** The steps of joining and the incidents after, for people. */
export class StepLog {
  readonly #openedAt: number;
  readonly steps: { at: number; text: string }[] = [];

  constructor(openedAt: number) {
    this.#openedAt = openedAt;
  }

  push(at: number, text: string): void {
    this.steps.push({ at, text });
    const item = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = `${((at - this.#openedAt) / 1_000).toFixed(2)} s`;
    const words = document.createElement("span");
    words.textContent = text;
    item.append(time, words);
    const list = element("steps");
    list.prepend(item);
    if (this.steps.length > MAX_STEPS) {
      this.steps.shift();
      list.lastElementChild?.remove();
    }
  }
}
