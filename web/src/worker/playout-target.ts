/** Bounds and speeds of `PlayoutTarget`. */
export interface PlayoutTargetConfig {
  /** Window of the percentile, in milliseconds. */
  window: number;
  /** Share of the samples that must be ready in time. */
  share: number;
  /** Fewest samples of a stream that count: below, a single slow one would move the target. */
  minSamples: number;
  /** Time after `restart` whose samples do not count, in milliseconds: decoders and pages are slow while they start. */
  settling: number;
  /** Time added to what is needed, in milliseconds: timers fire this much late. */
  reserve: number;
  /** Highest target that `PlayoutTarget` raises playout to, in milliseconds. */
  cap: number;
  /** Share of the target that is taken back in a second. */
  shrink: number;
}

export const PLAYOUT_TARGET_DEFAULTS: PlayoutTargetConfig = {
  window: 10_000,
  share: 0.95,
  minSamples: 20,
  settling: 1_000,
  reserve: 5,
  cap: 1_500,
  shrink: 0.05,
};

/** Most samples kept of a stream: ten seconds at 120 a second. */
const MAX_SAMPLES = 1_200;

/** Streams whose samples have to be ready in time. */
export type Timed = "video" | "audio";

interface Sample {
  at: number;
  needed: number;
}

/**
 * The playout target in use: the chosen one, or more where this machine needs more.
 *
 * Each decoded sample reports the target with which it would have been ready in time, which includes jitter, late wake-ups
 * and decoding. The target in use is the 95th percentile of the last ten seconds where that is above the chosen target. It
 * grows at once and shrinks by 5 % a second. The network path keeps the chosen target.
 *
 * All times are milliseconds on one clock that never goes back.
 */
export class PlayoutTarget {
  readonly #config: PlayoutTargetConfig;
  readonly #samples: Record<Timed, Sample[]> = { video: [], audio: [] };
  #chosen: number;
  #current: number;
  #needed = 0;
  #settledAt = -Infinity;
  #updatedAt = -Infinity;

  constructor(chosen: number, config: PlayoutTargetConfig = PLAYOUT_TARGET_DEFAULTS) {
    this.#config = config;
    this.#chosen = chosen;
    this.#current = chosen;
  }

  /** The target in use. */
  get current(): number {
    return this.#current;
  }

  /** By how much the target in use exceeds the chosen one. */
  get margin(): number {
    return this.#current - this.#chosen;
  }

  /** Target that the last ten seconds needed, without a cap. */
  get needed(): number {
    return this.#needed;
  }

  /** Whether more is needed than the cap allows. */
  get isCapped(): boolean {
    return this.#needed > this.#cap();
  }

  /** Sets the chosen target; the target in use moves with it where nothing else is needed. */
  choose(chosen: number): void {
    const margin = this.margin;
    this.#chosen = chosen;
    this.#current = margin === 0 ? chosen : Math.max(chosen, this.#current);
  }

  /** Forgets all samples, and those of the next second: playback starts, or continues at another time. */
  restart(now: number): void {
    this.#samples.video = [];
    this.#samples.audio = [];
    this.#settledAt = now + this.#config.settling;
  }

  /** Forgets what was needed, as another path shows the picture. Returns by how much the target in use moved. */
  reset(now: number): number {
    this.restart(now);
    const before = this.#current;
    this.#current = this.#chosen;
    return this.#current - before;
  }

  /** Records a sample that would have been ready in time with a target of `needed`. Returns whether the target has to grow. */
  push(stream: Timed, now: number, needed: number): boolean {
    if (now < this.#settledAt) {
      return false;
    }
    const samples = this.#samples[stream];
    samples.push({ at: now, needed });
    if (samples.length > MAX_SAMPLES) {
      samples.shift();
    }
    return needed + this.#config.reserve > this.#current && this.#current < this.#cap();
  }

  /** Moves the target in use to what is needed at `now`. Returns by how much it moved. */
  update(now: number): number {
    const { reserve, shrink } = this.#config;
    const before = this.#current;
    const percentiles = (["video", "audio"] as const).map((stream) => this.#percentile(stream, now));
    this.#needed = Math.max(0, ...percentiles) + reserve;
    const goal = Math.max(this.#chosen, Math.min(this.#cap(), this.#needed));
    const elapsed = Math.min(1, Math.max(0, now - this.#updatedAt) / 1_000);
    const shrunk = before * (1 - shrink * elapsed);
    this.#current = Math.max(goal, Math.min(before, shrunk));
    this.#updatedAt = now;
    return this.#current - before;
  }

  /** A chosen target above the cap is kept. */
  #cap(): number {
    return Math.max(this.#config.cap, this.#chosen);
  }

  #percentile(stream: Timed, now: number): number {
    const samples = this.#samples[stream].filter(({ at }) => now - at <= this.#config.window);
    this.#samples[stream] = samples;
    if (samples.length < this.#config.minSamples) {
      return 0;
    }
    const sorted = samples.map(({ needed }) => needed).sort((one, other) => one - other);
    return sorted[Math.ceil(this.#config.share * sorted.length) - 1] ?? 0;
  }
}
