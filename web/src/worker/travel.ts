import type { MissedTime } from "../shared/facts.ts";
import type { SeekEvent } from "./records.ts";

/** How long a person has to read why a time is missing, in milliseconds. */
const NOTICE_SPAN = 8_000;

/** Follows where in time playback is, and reports times that are missing. */
export class Travel {
  readonly #report: (missed: MissedTime | null) => void;
  #reportedUntil = Infinity;
  /** Whether what is published now plays. */
  live = true;
  /** The time that is being gone to, in milliseconds since 1970. */
  seeking: number | null = null;
  /** Number of the last command that was given. */
  answers = 0;

  /** @param report takes the time that is missing; null: none any more */
  constructor(report: (missed: MissedTime | null) => void) {
    this.#report = report;
  }

  /** Takes what became of a wish to go to another time. `now` is on any clock, in milliseconds. */
  handle(event: SeekEvent, now: number): void {
    this.seeking = event.type === "seeking" ? event.to : null;
    switch (event.type) {
      case "seeking":
        this.#say(null, Infinity);
        break;
      case "playing":
        this.live = false;
        break;
      case "live":
        this.live = true;
        break;
      case "nothing":
        this.#say({ to: event.to, since: event.since, answered: event.answered }, now + NOTICE_SPAN);
        break;
    }
  }

  /** Withdraws a report that was there long enough. */
  tick(now: number): void {
    if (now >= this.#reportedUntil) {
      this.#say(null, Infinity);
    }
  }

  #say(missed: MissedTime | null, until: number): void {
    this.#reportedUntil = until;
    this.#report(missed);
  }
}
