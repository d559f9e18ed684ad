/** What the path to the node is like: since the last look, except where another time is named. */
export interface UplinkSample {
  /** How long what is sent waits before it leaves, in milliseconds, now; less than 0: unknown. */
  waits: number;
  /** Requests of those who watch, and how many of them came after what they request was there. */
  interests: number;
  late: number;
}

/** Looks that are judged together: two seconds. */
const LOOKS = 10;
/** Mean waiting from which on the path is full, in milliseconds. */
const FULL = 80;
/**
 * Viewers request live pictures before they are there. Those who can get no more request less, and so later: where that many are
 * late, somebody does not see what he should. Radio links queue without being full, and who joins or looks at the past is late
 * without it.
 */
const LATE_SHARE = 0.2;
const MIN_INTERESTS = 20;
/** How long viewers take to get used to something else, in milliseconds. */
const SETTLING = 3_000;
/** How long the path must be free before more is tried: doubles from the first to the last, in milliseconds. */
const FIRST_PAUSE = 10_000;
const LAST_PAUSE = 320_000;
/** What goes well for so long was no mistake, in milliseconds. */
const PROVEN = 30_000;

/**
 * How much less than everything is to be sent, as the path to the node does not carry what those who watch request. Each of them
 * takes what it can get and no more; but those of several qualities together may want more than there is, and then none gets a
 * whole picture.
 */
export class Uplink {
  readonly #levels: number;
  #level = 0;
  #looks: UplinkSample[] = [];
  #freeSince: number | undefined;
  #pause = FIRST_PAUSE;
  #changedAt = -Infinity;
  /** Whether more was tried by the last change. */
  #wasTried = false;

  /** For so many levels, of which the first is everything. */
  constructor(levels: number) {
    this.#levels = levels;
  }

  /** To be called five times a second. Returns the level from now on. */
  update(sample: UplinkSample, now: number): number {
    this.#looks = [...this.#looks.slice(1 - LOOKS), sample];
    const sum = (of: (look: UplinkSample) => number): number => this.#looks.reduce((total, look) => total + of(look), 0);
    const [waits, interests] = [sum(({ waits }) => waits) / this.#looks.length, sum(({ interests }) => interests)];
    const isKnown = this.#looks.length === LOOKS && this.#looks.every(({ waits }) => waits >= 0);
    const isLate = interests >= MIN_INTERESTS && sum(({ late }) => late) >= LATE_SHARE * interests;
    this.#freeSince = isKnown && waits < FULL && !isLate ? (this.#freeSince ?? now) : undefined;
    const since = now - this.#changedAt;
    if (isKnown && waits >= FULL && isLate && since >= SETTLING && this.#level + 1 < this.#levels) {
      if (this.#wasTried) {
        this.#pause = since >= PROVEN ? FIRST_PAUSE : Math.min(LAST_PAUSE, 2 * this.#pause);
      }
      this.#change(this.#level + 1, now);
    } else if (this.#level > 0 && now - (this.#freeSince ?? now) >= this.#pause) {
      this.#change(this.#level - 1, now);
    }
    return this.#level;
  }

  #change(level: number, now: number): void {
    this.#wasTried = level < this.#level;
    this.#level = level;
    this.#changedAt = now;
    this.#freeSince = undefined;
    this.#looks = [];
  }
}
