import { NO_FACTS, type Facts } from "../shared/facts.ts";
import type { Summary } from "../shared/summary.ts";
import { describe, type PlayerState, type Situation } from "./state.ts";

/** Interval in which the state is made anew, as times pass, in milliseconds. */
const INTERVAL = 500;
/** A sentence is kept for so long if only its figures change, in milliseconds. */
const SENTENCE_SPAN = 3_000;

/** Time in which an archive answers where the past begins, in milliseconds. */
const SINCE_SPAN = 3_000;

/** What `StateFollower` needs of the player. */
export interface StateHost {
  situation(): Omit<Situation, "facts" | "summary" | "summaryAge" | "presented">;
  /** Number of live pictures that a `<video>` has presented; null: a canvas shows them. */
  presented(): number | null;
  /** The state was made anew, and may be the same. */
  follow(state: PlayerState): void;
  /** The state is another one. */
  changed(state: PlayerState): void;
}

/** Makes the player's state of what the worker reports and of what the player knows. */
export class StateFollower {
  readonly #host: StateHost;
  #facts: Facts = NO_FACTS;
  #summary: Summary | undefined;
  #summaryAt = 0;
  /** Whether the figures are of the playback that goes on. */
  #isFresh = false;
  /** Pictures presented, and when that number last changed. */
  #presented = { count: 0, at: 0 };
  #state: PlayerState | undefined;
  #changedAt = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(host: StateHost) {
    this.#host = host;
  }

  /** The newest figures of the worker. */
  get summary(): Summary | undefined {
    return this.#summary;
  }

  get state(): PlayerState {
    this.#state ??= this.#describe();
    return this.#state;
  }

  /** Playback begins, again perhaps: nothing is known of it. */
  begin(): void {
    this.#facts = NO_FACTS;
    this.#isFresh = false;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.refresh(), INTERVAL);
    this.refresh();
  }

  /** Playback ends. */
  end(): void {
    clearInterval(this.#timer);
    this.refresh();
  }

  /** Forgets the figures, as another stream is to be played. */
  forget(): void {
    this.#summary = undefined;
    this.refresh();
  }

  /** Records facts of the worker. */
  learn(facts: Partial<Facts>): void {
    this.#facts = { ...this.#facts, ...facts };
    this.refresh();
  }

  /** Records figures of the worker. */
  handleSummary(summary: Summary): void {
    // After a pause the archive takes a moment to answer, and has what it had.
    const since = summary.evidence.settled < SINCE_SPAN ? (summary.position.since ?? this.#summary?.position.since ?? null) : summary.position.since;
    this.#summary = { ...summary, position: { ...summary.position, since } };
    this.#isFresh = true;
    this.#summaryAt = performance.now();
    this.refresh();
  }

  /** The picture was hidden or is seen again: when one was presented last means nothing. */
  handleVisibility(): void {
    this.#presented.at = performance.now();
    this.refresh();
  }

  /** Makes the state anew. */
  refresh(): void {
    const [state, before, now] = [this.#describe(), this.#state, performance.now()];
    this.#host.follow(state);
    const isOther = before === undefined || (["kind", "badge", "action", "covers"] as const).some((field) => state[field] !== before[field]);
    const isOverdue = state.isPlaying || now - this.#changedAt >= SENTENCE_SPAN;
    if (isOther || (state.sentence !== before.sentence && isOverdue)) {
      this.#state = state;
      this.#changedAt = now;
      this.#host.changed(state);
    }
  }

  #describe(): PlayerState {
    const now = performance.now();
    return describe({ ...this.#host.situation(), facts: this.#facts, summary: this.#isFresh ? this.#summary : undefined, summaryAge: now - this.#summaryAt, presented: this.#presentedAge(now) });
  }

  #presentedAge(now: number): number | null {
    const count = this.#host.presented();
    if (count !== null && count !== this.#presented.count) {
      this.#presented = { count, at: now };
    }
    return count === null ? null : now - this.#presented.at;
  }
}
