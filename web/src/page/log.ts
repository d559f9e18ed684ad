import type { NoticeTopic } from "../shared/messages.ts";
import { element } from "./elements.ts";

/** Steps that stay on the page. */
const MAX_STEPS = 60;

/** What happened, for people: the steps of joining and the incidents after. */
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

/** What a notice offers to do about it. */
export interface NoticeAction {
  label: string;
  run: () => void;
}

/** Shows, replaces or removes the notice of a topic. */
export function showNotice(topic: NoticeTopic, text: string, action?: NoticeAction): void {
  const host = element("notices");
  let notice = host.querySelector<HTMLElement>(`[data-topic="${topic}"]`);
  if (text === "") {
    notice?.remove();
    return;
  }
  if (notice === null) {
    notice = document.createElement("p");
    notice.className = "notice";
    notice.dataset["topic"] = topic;
    host.append(notice);
  }
  notice.textContent = text;
  if (action !== undefined) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = action.label;
    button.addEventListener("click", action.run);
    notice.append(" ", button);
  }
}
