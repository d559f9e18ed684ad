/** What is given up for want of processor time, the least important first; sound is kept. */
export const OVERLOAD_LEVELS = ["none", "instruments", "quality", "rate", "picture"] as const;

/** How much is given up. */
export type OverloadLevel = (typeof OVERLOAD_LEVELS)[number];

/** Wake-ups that count for what a packet may have waited here: of this long, in milliseconds. */
const RECENT = 300;
/** The mean lateness of wake-ups is taken over this long, in milliseconds. */
const MEAN = 1_000;
/** Mean lateness from which on figures are made less often, and a lower quality is played, in milliseconds. */
const LATE = 25;
const VERY_LATE = 50;
/** Mean lateness from which on fewer pictures are shown, in milliseconds. */
const TOO_LATE = 150;
/** After packets were dropped here, others count as late by so much, for so long, in milliseconds. */
const DROP_DELAY = 60;
const DROP_SPAN = 1_500;
/** A decoder so far behind has no time, in milliseconds: one that is merely slow to answer stays below. */
const DECODER_BEHIND = 1_500;
/** How long the machine must be short of time before more is given up, and how long it must have time before less is, in milliseconds. */
const GIVE_UP_AFTER = 1_000;
const TAKE_BACK_AFTER = 2_300;
/** Most wake-ups remembered. */
const MAX_WAKES = 400;

interface Wake {
  at: number;
  late: number;
}

/**
 * Whether this machine has time for what is played, and what to give up if not.
 *
 * Knows how late timers of the worker fire, how far behind the decoder is, and which packets were dropped as nobody read them.
 * First figures are made less often, then the lowest quality is played, then at most ten pictures a second are shown, then only key
 * frames are decoded. Sound is kept. Times are milliseconds on one clock.
 */
export class Overload {
  #wakes: Wake[] = [];
  #decoderAge = 0;
  #droppedAt = -Infinity;
  #level = 0;
  /** Since when more, or less, should be given up than is. */
  #shortSince: number | undefined;
  #freeSince: number | undefined;

  /** What is given up now. */
  get level(): OverloadLevel {
    return OVERLOAD_LEVELS[this.#level] ?? "none";
  }

  /** Records that a timer fired `late` after it was due. */
  handleWake(now: number, late: number): void {
    this.#wakes.push({ at: now, late: Math.max(0, late) });
    if (this.#wakes.length > MAX_WAKES) {
      this.#wakes.shift();
    }
  }

  /** Records the age of the oldest frame in the decoder. */
  handleDecoder(age: number): void {
    this.#decoderAge = age;
  }

  /** Records that this machine dropped packets which had arrived. */
  handleDrops(now: number): void {
    this.#droppedAt = now;
  }

  /** By how much what came just now may have waited for this thread. */
  wakeDelay(now: number): number {
    let most = now - this.#droppedAt < DROP_SPAN ? DROP_DELAY : 0;
    for (let index = this.#wakes.length - 1; index >= 0; index -= 1) {
      const wake = this.#wakes[index];
      if (wake === undefined || wake.at < now - RECENT) {
        break;
      }
      most = Math.max(most, wake.late);
    }
    return most;
  }

  /** Mean lateness of wake-ups in the last second. */
  meanDelay(now: number): number {
    const wakes = this.#wakes.filter(({ at }) => at >= now - MEAN);
    return wakes.length === 0 ? 0 : wakes.reduce((sum, { late }) => sum + late, 0) / wakes.length;
  }

  /** Decides what to give up. Returns whether that changed. */
  update(now: number): boolean {
    const wanted = this.#wanted(now);
    this.#shortSince = wanted > this.#level ? (this.#shortSince ?? now) : undefined;
    this.#freeSince = wanted < this.#level ? (this.#freeSince ?? now) : undefined;
    if (this.#shortSince !== undefined && now - this.#shortSince >= GIVE_UP_AFTER) {
      return this.#move(1);
    }
    if (this.#freeSince !== undefined && now - this.#freeSince >= TAKE_BACK_AFTER) {
      return this.#move(-1);
    }
    return false;
  }

  #wanted(now: number): number {
    const mean = this.meanDelay(now);
    if (this.#decoderAge > DECODER_BEHIND) {
      return 4;
    }
    if (mean >= TOO_LATE) {
      return 3;
    }
    if (mean >= VERY_LATE || now - this.#droppedAt < DROP_SPAN) {
      return 2;
    }
    return mean >= LATE ? 1 : 0;
  }

  #move(by: number): boolean {
    this.#level += by;
    this.#shortSince = undefined;
    this.#freeSince = undefined;
    return true;
  }
}
