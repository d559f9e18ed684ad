import type { ReceivedSample } from "../shared/messages.ts";
import { element } from "./elements.ts";

/** Notes that stay on the page. */
const MAX_NOTES = 100;

/** The data stream that plays, as lines of text; and a line to write, if the page publishes one itself. */
export class Notes {
  readonly received: ReceivedSample[] = [];
  readonly #text = new TextDecoder();

  /** `publishes`: the name under which the page publishes notes, if it does; `send` takes each. */
  constructor(publishes: string | undefined, send: (note: Uint8Array<ArrayBuffer>) => void) {
    if (publishes === undefined) {
      return;
    }
    element("notes").hidden = false;
    element("notes-title").textContent = `Notes, published as ${publishes}`;
    const form = element<HTMLFormElement>("notes-form");
    const line = element<HTMLInputElement>("note");
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (line.value !== "") {
        send(new TextEncoder().encode(line.value));
        line.value = "";
      }
    });
  }

  /** Shows a sample that came. */
  push(sample: ReceivedSample): void {
    element("notes").hidden = false;
    this.received.push(sample);
    const item = document.createElement("li");
    const time = document.createElement("time");
    time.textContent = new Date(sample.capturedAt).toLocaleTimeString();
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
