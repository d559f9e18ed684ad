/** A decoder that takes this long for each picture is late, in milliseconds. */
const LATE = 150;
/** Time for which all pictures must be late before the decoder is replaced, in milliseconds. */
const LATE_FOR = 3_000;

/**
 * Which kind of decoder to use: the browser's choice, until that is late by 150 ms for 3 s. Then the other kind is tried, once.
 *
 * Browsers prefer the graphics processor. Its decoder may be shared or hold pictures back, and software may be faster.
 */
export class DecoderChoice {
  #lateSince: number | undefined;
  #isReplaced = false;
  #preference: HardwareAcceleration = "no-preference";

  /** The kind to configure decoders with. */
  get preference(): HardwareAcceleration {
    return this.#preference;
  }

  /** Records that a picture was decoded at `now` after `took` milliseconds. Returns whether to call `replace`. */
  handleDecoded(now: number, took: number): boolean {
    if (took < LATE || this.#isReplaced) {
      this.#lateSince = undefined;
      return false;
    }
    this.#lateSince ??= now;
    return now - this.#lateSince >= LATE_FOR;
  }

  /**
   * Chooses the other kind for the next key frame. With hardware for `config` the browser used it, and software is the other
   * kind. Without it there is none.
   *
   * @returns the kind; undefined: there is no other one
   */
  async replace(config: VideoDecoderConfig): Promise<HardwareAcceleration | undefined> {
    this.#isReplaced = true;
    const hardware = await VideoDecoder.isConfigSupported({ ...config, hardwareAcceleration: "prefer-hardware" }).catch(() => undefined);
    if (hardware?.supported !== true) {
      return undefined;
    }
    this.#preference = "prefer-software";
    return this.#preference;
  }

  /** The other kind does not work: the browser chooses again. Returns whether there was one. */
  giveUp(): boolean {
    const had = this.#preference !== "no-preference";
    this.#preference = "no-preference";
    return had;
  }
}
