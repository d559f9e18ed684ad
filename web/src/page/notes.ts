import { timeOfDay } from "../player/format.ts";
import type { ReceivedSample } from "../shared/messages.ts";
import { element } from "./elements.ts";
import { t } from "../shared/language.ts";

/** Notes that stay on the page. */
const MAX_NOTES = 100;

/** The data stream that plays, as lines of text; and a line to write, if the page publishes one itself. */
export class Notes {
  readonly received: ReceivedSample[] = [];
  readonly #text = new TextDecoder();

  /** `name`: under which the page offers to publish notes; `publish` begins to, `send` takes each. Nothing is published by a link alone. */
  constructor(name: string | undefined, publish: (name: string) => void, send: (note: Uint8Array<ArrayBuffer>) => void) {
    if (name === undefined) {
      return;
    }
    element("notes").hidden = false;
    const begin = element<HTMLButtonElement>("notes-publish");
    const form = element<HTMLFormElement>("notes-form");
    const line = element<HTMLInputElement>("note");
    begin.textContent = t("Publish notes as {name}", { name });
    begin.hidden = false;
    begin.addEventListener("click", () => {
      publish(name);
      begin.hidden = true;
      form.hidden = false;
      element("notes-title").textContent = t("Notes, published as {name}", { name });
      line.focus();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (line.value !== "") {
        send(new TextEncoder().encode(line.value));
        line.value = "";
      }
    });
  }

  /** Shows why notes are not published; null: they are. */
  showFailure(failure: string | null): void {
    const place = element("notes-failure");
    place.textContent = failure ?? "";
    place.hidden = failure === null;
  }

  /** Shows a sample that came. */
  push(sample: ReceivedSample): void {
    element("notes").hidden = false;
    this.received.push(sample);
    const item = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = timeOfDay(sample.capturedAt);
    const words = document.createElement("span");
    words.textContent = this.#text.decode(sample.octets);
    item.append(time, words);
    const list = element("notes-list");
    list.prepend(item);
    if (this.received.length > MAX_NOTES) {
      this.received.shift();
      list.lastElementChild?.remove();
    }
  }
}
