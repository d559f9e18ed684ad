/** Decoded sound that waits, and the part of it that was already played. */
interface Chunk {
  /** When its first sample is to be heard, in milliseconds. */
  at: number;
  rate: number;
  channels: Float32Array[];
}

/** Bounds and speeds of `Playout`. */
export interface PlayoutConfig {
  /** Most sound that may wait, in milliseconds; the oldest is dropped. */
  maxQueued: number;
  /** Error beyond which sound jumps instead of sliding back into step, in milliseconds. */
  jumpAbove: number;
  /** Time in which sliding halves an error, roughly, in milliseconds. */
  slideOver: number;
  /** By how much sound is delayed further each time that it came too late, in milliseconds. */
  delayStep: number;
  /** Most that it is delayed so, in milliseconds: beyond, gaps are the lesser evil. */
  maxDelay: number;
  /** Time after which a step of that delay is taken back if it was not needed, in milliseconds. */
  calm: number;
  /** Largest change of speed while sliding: 0.01 is a sixth of a semitone, which nobody hears. */
  maxSlide: number;
}

export const PLAYOUT_DEFAULTS: PlayoutConfig = {
  maxQueued: 3_000,
  jumpAbove: 30,
  slideOver: 1_000,
  delayStep: 10,
  maxDelay: 200,
  calm: 5_000,
  maxSlide: 0.01,
};

/** What `Playout` measured since last asked. */
export interface PlayoutReport {
  /** Mean time by which sound was heard after it was due, that delay included; null if there was none. */
  lateness: number | null;
  /** What sound is due later for, since it comes too late otherwise. */
  delay: number;
  underruns: number;
  jumps: number;
  queued: number;
  /** Least time by which sound came before it was needed, with that delay; negative: too late. Null if none came. */
  slack: number | null;
}

/** Below this, sound is in step, in milliseconds: a third of a rendering quantum. */
const IN_STEP = 1;
/** Samples over which sound fades in after silence or a jump, so that it does not click. */
const FADE = 128;

/**
 * Plays sound at the time each piece of it is due, which the video's clock decides.
 *
 * The sound card's clock runs a little faster or slower than the publisher's. Small errors are worked off by playing a
 * little faster or slower; large ones, after a gap or when the playout target was moved, by a jump. Where sound comes too
 * late for the device again and again, it is delayed by a little more, and the picture with it: both late is better than
 * either chopped or apart.
 */
export class Playout {
  readonly #config: PlayoutConfig;
  readonly #rate: number;
  #chunks: Chunk[] = [];
  /** Next sample of the first chunk to play, with a fraction. */
  #offset = 0;
  #silent = true;
  /** What sound is heard later than it is due, since it comes too late otherwise. */
  #delay = 0;
  /** Since when it is watched whether the delay is needed. */
  #calmSince = 0;
  #fade = 0;
  #underruns = 0;
  #jumps = 0;
  #lateness = 0;
  #measured = 0;
  #slack = Infinity;
  /** The least since `#calmSince`. */
  #calmSlack = Infinity;
  /** When the end of what is rendered is heard. */
  #heardAt = -Infinity;

  /** @param rate samples per second of the output. */
  constructor(rate: number, config: PlayoutConfig = PLAYOUT_DEFAULTS) {
    this.#rate = rate;
    this.#config = config;
  }

  /** Adds sound that is due at `at`; what is older than the newest already here is refused. */
  push(at: number, rate: number, channels: Float32Array[]): void {
    const last = this.#chunks.at(-1);
    if (channels.length === 0 || !(rate > 0) || (last !== undefined && at < last.at)) {
      return;
    }
    if (last === undefined) {
      this.#delayFurther(this.#heardAt - at - this.#delay);
    }
    if (this.#heardAt > -Infinity) {
      const slack = at + this.#delay - this.#heardAt;
      this.#slack = Math.min(this.#slack, slack);
      this.#calmSlack = Math.min(this.#calmSlack, slack);
    }
    this.#chunks.push({ at, rate, channels });
    while (this.#queued() > this.#config.maxQueued) {
      this.#dropFirst();
    }
  }

  /** Moves all that waits by `milliseconds`. */
  shift(milliseconds: number): void {
    for (const chunk of this.#chunks) {
      chunk.at += milliseconds;
    }
  }

  /** Throws away all that waits. */
  clear(): void {
    this.#chunks = [];
    this.#offset = 0;
    this.#silent = true;
  }

  /** Fills `outputs`, one array per channel, whose first sample is heard at `heardAt` (milliseconds). */
  render(heardAt: number, outputs: Float32Array[]): void {
    const length = outputs[0]?.length ?? 0;
    const quantum = (length / this.#rate) * 1_000;
    this.#heardAt = heardAt + quantum;
    this.#relax();
    let start = 0;
    let error = this.#error(heardAt);
    if (error !== undefined && error < -this.#config.jumpAbove) {
      this.#skipTo(heardAt);
      this.#startAgain();
      error = this.#error(heardAt);
    } else if (error !== undefined && error > this.#config.jumpAbove && !this.#silent) {
      this.#startAgain();
    }
    if (error === undefined) {
      this.#endOfSound();
    } else if (this.#silent) {
      if (error < -IN_STEP) {
        this.#skipTo(heardAt);
        error = this.#error(heardAt) ?? 0;
      }
      start = error >= quantum ? length : Math.max(0, Math.round((error / 1_000) * this.#rate));
      error -= (start / this.#rate) * 1_000;
    }
    this.#fill(outputs, start, this.#speed(error ?? 0));
    if (start < length && error !== undefined) {
      this.#lateness -= error;
      this.#measured += 1;
    }
  }

  /** What happened since the last call, except counts, which are since the start. */
  report(): PlayoutReport {
    const lateness = this.#measured > 0 ? this.#lateness / this.#measured : null;
    this.#lateness = 0;
    this.#measured = 0;
    const slack = Number.isFinite(this.#slack) ? this.#slack : null;
    this.#slack = Infinity;
    return { lateness, delay: this.#delay, underruns: this.#underruns, jumps: this.#jumps, queued: this.#queued(), slack };
  }

  /** By how much the next sample is due after `heardAt`. */
  #error(heardAt: number): number | undefined {
    const first = this.#chunks[0];
    return first && first.at + this.#delay + (this.#offset / first.rate) * 1_000 - heardAt;
  }

  /** Output samples' worth of input per output sample. */
  #speed(error: number): number {
    if (Math.abs(error) < IN_STEP) {
      return 1;
    }
    const slide = error / this.#config.slideOver;
    return 1 - Math.max(-this.#config.maxSlide, Math.min(this.#config.maxSlide, slide));
  }

  #fill(outputs: Float32Array[], start: number, speed: number): void {
    const length = outputs[0]?.length ?? 0;
    for (let index = start; index < length; index += 1) {
      const chunk = this.#chunks[0];
      if (chunk === undefined) {
        this.#endOfSound();
        return;
      }
      if (this.#silent) {
        this.#silent = false;
        this.#fade = 0;
      }
      const gain = Math.min(1, this.#fade / FADE);
      this.#fade += 1;
      outputs.forEach((output, channel) => {
        output[index] = gain * this.#sample(chunk, Math.min(channel, chunk.channels.length - 1));
      });
      this.#offset += speed * (chunk.rate / this.#rate);
      if (this.#offset >= (chunk.channels[0]?.length ?? 0)) {
        this.#nextChunk(chunk);
      }
    }
  }

  /** The sample at the fractional offset, between its two neighbours. */
  #sample(chunk: Chunk, channel: number): number {
    const samples = chunk.channels[channel] ?? new Float32Array();
    const whole = Math.floor(this.#offset);
    const here = samples[whole] ?? 0;
    const next = samples[whole + 1] ?? this.#chunks[1]?.channels[channel]?.[0] ?? here;
    return here + (next - here) * (this.#offset - whole);
  }

  /** Goes on with the next chunk; a hole before it is heard as silence. */
  #nextChunk(played: Chunk): void {
    const samples = played.channels[0]?.length ?? 0;
    const endsAt = played.at + (samples / played.rate) * 1_000;
    this.#chunks.shift();
    this.#offset -= samples;
    const next = this.#chunks[0];
    if (next === undefined || next.at - endsAt > this.#config.jumpAbove) {
      this.#offset = 0;
      this.#endOfSound();
    }
  }

  #endOfSound(): void {
    if (!this.#silent) {
      this.#silent = true;
      this.#underruns += 1;
    }
  }

  /** Sound comes `late`, after it should have been heard. What comes much too late belongs to the past: one joins, or jumped. */
  #delayFurther(late: number): void {
    if (late > -IN_STEP && late <= this.#config.maxDelay) {
      this.#delay = Math.min(this.#config.maxDelay, this.#delay + Math.min(this.#config.delayStep, late + 2 * IN_STEP));
      this.#beginCalm();
    }
  }

  /** Takes back a step of the delay if that was not needed for a while; sliding works it off. */
  #relax(): void {
    if (this.#delay > 0 && this.#heardAt - this.#calmSince > this.#config.calm) {
      const needed = this.#calmSlack < 2 * this.#config.delayStep;
      this.#delay = needed ? this.#delay : Math.max(0, this.#delay - this.#config.delayStep);
      this.#beginCalm();
    }
  }

  #beginCalm(): void {
    this.#calmSince = this.#heardAt;
    this.#calmSlack = Infinity;
  }

  #startAgain(): void {
    this.#jumps += this.#silent ? 0 : 1;
    this.#silent = true;
  }

  /** Drops what was due before `heardAt`. */
  #skipTo(heardAt: number): void {
    for (let first = this.#chunks[0]; first !== undefined; first = this.#chunks[0]) {
      const samples = first.channels[0]?.length ?? 0;
      const offset = ((heardAt - first.at - this.#delay) / 1_000) * first.rate;
      if (offset < samples) {
        this.#offset = Math.max(0, offset);
        return;
      }
      this.#dropFirst();
    }
  }

  #dropFirst(): void {
    this.#chunks.shift();
    this.#offset = 0;
  }

  #queued(): number {
    const first = this.#chunks[0];
    const last = this.#chunks.at(-1);
    if (first === undefined || last === undefined) {
      return 0;
    }
    const samples = last.channels[0]?.length ?? 0;
    return last.at - first.at + ((samples - (first === last ? this.#offset : 0)) / last.rate) * 1_000;
  }
}
