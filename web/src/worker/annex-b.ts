const START_CODE = [0, 0, 0, 1] as const;

/** H.264 with lengths (ISO/IEC 14496-15 §5.3) as H.264 with start codes, which encoders of some browsers do not make though asked to. */
export class AnnexB {
  readonly #lengthSize: number;
  /** Sequence and picture parameter sets with start codes. */
  readonly #parameters: Uint8Array;

  /** @param description AVCDecoderConfigurationRecord */
  constructor(description: Uint8Array) {
    this.#lengthSize = ((description[4] ?? 0) & 3) + 1;
    const parts: number[] = [];
    let at = 5;
    // Counts of sequence and of picture parameter sets, each set behind two octets of length.
    for (const mask of [0x1f, 0xff]) {
      let count = (description[at] ?? 0) & mask;
      for (at += 1; count > 0; count -= 1) {
        const length = ((description[at] ?? 0) << 8) | (description[at + 1] ?? 0);
        parts.push(...START_CODE, ...description.subarray(at + 2, at + 2 + length));
        at += 2 + length;
      }
    }
    this.#parameters = Uint8Array.from(parts);
  }

  /** Returns a picture with start codes, a key picture behind its parameter sets. */
  convert(picture: Uint8Array, isKey: boolean): Uint8Array<ArrayBuffer> {
    const units: Uint8Array[] = [];
    for (let at = 0; at + this.#lengthSize <= picture.length; ) {
      let length = 0;
      for (const octet of picture.subarray(at, at + this.#lengthSize)) {
        length = length * 256 + octet;
      }
      at += this.#lengthSize;
      units.push(picture.subarray(at, at + length));
      at += length;
    }
    const parameters = isKey ? this.#parameters : new Uint8Array();
    const size = units.reduce((sum, unit) => sum + START_CODE.length + unit.length, parameters.length);
    const converted = new Uint8Array(size);
    converted.set(parameters);
    let at = parameters.length;
    for (const unit of units) {
      converted.set(START_CODE, at);
      converted.set(unit, at + START_CODE.length);
      at += START_CODE.length + unit.length;
    }
    return converted;
  }
}
