import type { Publishes } from "../shared/messages.ts";
import { message } from "./link.ts";
import type { RegistrationEvent } from "./records.ts";
import type { PublicationConfig, Tab } from "./tab.ts";

/** Name of the data stream that the page publishes, most samples of a second, and octets of a usual one. */
const NOTES = "notes";
const NOTES_PER_SECOND = 10;
const NOTE_SIZE = 100;

/** What `NotesPublication` reports. */
export interface NotesHost {
  step(text: string): void;
  /** Why notes are not published; null: they are. */
  failed(why: string | null): void;
}

/** The data stream that a page publishes beside what it watches. */
export class NotesPublication {
  readonly #tab: Tab;
  readonly #host: NotesHost;
  /** Number of the publication. */
  #number: number | undefined;

  constructor(tab: Tab, host: NotesHost) {
    this.#tab = tab;
    this.#host = host;
  }

  /** Begins, unless it has begun or nothing is to be published. */
  begin(publishes: Publishes | undefined): void {
    if (publishes === undefined || this.#number !== undefined) {
      return;
    }
    const config: PublicationConfig = { ...publishes, data: [{ name: NOTES, samples_per_second: NOTES_PER_SECOND, sample_size: NOTE_SIZE }] };
    try {
      this.#number = this.#tab.publish(JSON.stringify(config), performance.now());
    } catch (error) {
      this.#host.failed(`The page cannot publish ${publishes.name}: ${message(error)}`);
    }
  }

  /** Publishes a sample, once it has begun. */
  send(sample: Uint8Array<ArrayBuffer>): void {
    if (this.#number === undefined) {
      return;
    }
    try {
      this.#tab.send(this.#number, sample, performance.now());
    } catch (error) {
      this.#host.failed(`A note was not published: ${message(error)}`);
    }
  }

  handleRegistration({ name, state, why }: RegistrationEvent): void {
    const advice = "If the node is on another machine, its operator has to set localhop = true in [management].";
    const texts = {
      registered: null,
      unanswered: `The node does not answer the request to publish ${name}. ${advice}`,
      refused: `The node refuses to publish ${name}: ${why ?? ""}. ${advice}`,
    };
    this.#host.step(state === "registered" ? `Publishing ${name}` : `Publishing ${name}: ${state}`);
    this.#host.failed(texts[state]);
  }
}
