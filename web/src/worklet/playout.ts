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
  /** Largest change of speed while sliding: 0.01 is a sixth of a semitone, which nobody hears. */
  maxSlide: number;
}

export const PLAYOUT_DEFAULTS: PlayoutConfig = { maxQueued: 3_000, jumpAbove: 30, slideOver: 1_000, maxSlide: 0.01 };

/** What `Playout` measured since last asked. */
export interface PlayoutReport {
  lateness: number | null;
  underruns: number;
  jumps: number;
  queued: number;
}

/** Below this, sound is in step, in milliseconds: a third of a rendering quantum. */
const IN_STEP = 1;
/** Samples over which sound fades in after silence or a jump, so that it does not click. */
const FADE = 128;

/**
 * Plays sound at the time each piece of it is due, which the video's clock decides.
 *
 * The sound card's clock runs a little faster or slower than the publisher's. Small errors are worked off by playing a
 * little faster or slower; large ones, after a gap or when the playout target was moved, by a jump.
 */
export class Playout {
  readonly #config: PlayoutConfig;
  readonly #rate: number;
  #chunks: Chunk[] = [];
  /** Next sample of the first chunk to play, with a fraction. */
  #offset = 0;
  #silent = true;
  #fade = 0;
  #underruns = 0;
  #jumps = 0;
  #lateness = 0;
  #measured = 0;

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
    return { lateness, underruns: this.#underruns, jumps: this.#jumps, queued: this.#queued() };
  }

  /** By how much the next sample is due after `heardAt`. */
  #error(heardAt: number): number | undefined {
    const first = this.#chunks[0];
    return first && first.at + (this.#offset / first.rate) * 1_000 - heardAt;
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

  #startAgain(): void {
    this.#jumps += this.#silent ? 0 : 1;
    this.#silent = true;
  }

  /** Drops what was due before `heardAt`. */
  #skipTo(heardAt: number): void {
    for (let first = this.#chunks[0]; first !== undefined; first = this.#chunks[0]) {
      const samples = first.channels[0]?.length ?? 0;
      const offset = ((heardAt - first.at) / 1_000) * first.rate;
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
