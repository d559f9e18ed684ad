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

/** Types of units: ITU-T H.264, table 7-1. */
const [SEQUENCE_PARAMETERS, PICTURE_PARAMETERS, DELIMITER] = [7, 8, 9];
/** Octets of a length. */
const LENGTH_SIZE = 4;

const typeOf = (unit: Uint8Array): number => (unit[0] ?? 0) & 0x1f;

/** Units of a picture with start codes, without these. */
export function unitsOf(picture: Uint8Array): Uint8Array[] {
  const units: Uint8Array[] = [];
  let begin = -1;
  for (let at = 0; at + 3 <= picture.length; at += 1) {
    if (picture[at] === 0 && picture[at + 1] === 0 && picture[at + 2] === 1) {
      // A start code of four octets begins with one that trails the unit before.
      units.push(...unit(picture, begin, at > 0 && picture[at - 1] === 0 ? at - 1 : at));
      begin = at + 3;
    }
  }
  units.push(...unit(picture, begin, picture.length));
  return units;
}

function unit(picture: Uint8Array, begin: number, end: number): Uint8Array[] {
  return begin >= 0 && end > begin ? [picture.subarray(begin, end)] : [];
}

/** A picture with start codes as one with lengths (ISO/IEC 14496-15 §5.3), as MP4 has it: parameter sets stand apart. */
export function withLengths(picture: Uint8Array): Uint8Array<ArrayBuffer> {
  const units = unitsOf(picture).filter((each) => ![SEQUENCE_PARAMETERS, PICTURE_PARAMETERS, DELIMITER].includes(typeOf(each)));
  const converted = new Uint8Array(units.reduce((sum, { length }) => sum + LENGTH_SIZE + length, 0));
  const view = new DataView(converted.buffer);
  let at = 0;
  for (const each of units) {
    view.setUint32(at, each.length);
    converted.set(each, at + LENGTH_SIZE);
    at += LENGTH_SIZE + each.length;
  }
  return converted;
}

/** The AVCDecoderConfigurationRecord (ISO/IEC 14496-15 §5.3.3.1) of a key picture with start codes. Throws if its parameter sets are missing. */
export function avcConfiguration(key: Uint8Array): Uint8Array<ArrayBuffer> {
  const units = unitsOf(key);
  const [sequence, picture] = [SEQUENCE_PARAMETERS, PICTURE_PARAMETERS].map((type) => units.find((each) => typeOf(each) === type));
  if (sequence === undefined || picture === undefined || sequence.length < 4) {
    throw new Error("a key picture has no parameter sets");
  }
  const sized = (parameters: Uint8Array): number[] => [parameters.length >> 8, parameters.length & 0xff, ...parameters];
  // Version 1; profile, compatibility and level as the sequence has them; lengths of four octets; one set of each.
  return Uint8Array.from([1, ...sequence.subarray(1, 4), 0xfc | (LENGTH_SIZE - 1), 0xe1, ...sized(sequence), 1, ...sized(picture)]);
}
