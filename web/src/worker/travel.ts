import type { SeekEvent } from "./records.ts";

/** How long a person has to read why a time cannot be had, in milliseconds. */
const NOTICE_SPAN = 8_000;

/** Follows where in time playback is, and says why it is not where it should be. */
export class Travel {
  readonly #notice: (text: string) => void;
  #noticeUntil = Infinity;
  /** Whether what is published now plays. */
  live = true;
  /** The time that is being gone to, in milliseconds since 1970. */
  seeking: number | null = null;
  /** Number of the last command that was given. */
  answers = 0;

  /** @param notice shows a sentence, or removes it if it is empty. */
  constructor(notice: (text: string) => void) {
    this.#notice = notice;
  }

  /** Takes what became of a wish to go to another time. `now` is on any clock, in milliseconds. */
  handle(event: SeekEvent, now: number): void {
    this.seeking = event.type === "seeking" ? event.to : null;
    switch (event.type) {
      case "seeking":
        this.#say("", Infinity);
        break;
      case "playing":
        this.live = false;
        break;
      case "live":
        this.live = true;
        break;
      case "nothing":
        this.#say(`${whyNothing(event)} ${this.live ? "Live goes on." : "Playback goes on where it was."}`, now + NOTICE_SPAN);
        break;
    }
  }

  /** Removes what was said long enough. */
  tick(now: number): void {
    if (now >= this.#noticeUntil) {
      this.#say("", Infinity);
    }
  }

  #say(text: string, until: number): void {
    this.#noticeUntil = until;
    this.#notice(text);
  }
}

function whyNothing({ to, since, answered }: Extract<SeekEvent, { type: "nothing" }>): string {
  if (!answered) {
    return "Nobody answers for the past: the archive is gone, or there is none.";
  }
  const of = `Nothing is kept of ${clockTime(to)}`;
  return since === null ? `${of}.` : `${of}: what is kept begins at ${clockTime(since)}.`;
}

/** A time of day, where this machine is. */
function clockTime(time: number): string {
  return new Date(time).toLocaleTimeString("en-GB");
}
