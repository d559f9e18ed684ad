/** Ticks of a second in all times of a fragment: microseconds would not fit 32 bits in places where players expect that. */
export const TIMESCALE = 90_000;

/** One picture of a fragment: decoded and shown in the same order. */
export interface Sample {
  /** Its octets as MP4 has them: of H.264 with lengths instead of start codes. */
  octets: Uint8Array;
  key: boolean;
  /** How long it is shown, in ticks. */
  duration: number;
}

/** What an initialisation segment tells of the pictures. */
export interface TrackInfo {
  width: number;
  height: number;
  /** AVCDecoderConfigurationRecord. */
  avcC: Uint8Array;
}

/** Flags of a sample (ISO/IEC 14496-12 §8.8.3.1): one that depends on no other, and one that does and is no sync sample. */
const [SYNC, DEPENDENT] = [0x0200_0000, 0x0101_0000];
/** Flags of tfhd and trun (§8.8.7, §8.8.8): offsets count from the moof; data offset, and of each sample duration, size and flags. */
const [DEFAULT_BASE_IS_MOOF, RUN_FLAGS] = [0x02_0000, 0x01 | 0x100 | 0x200 | 0x400];
const TRACK = 1;
/** Identity matrix of mvhd and tkhd. */
const MATRIX = [0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000].flatMap(u32);

type Part = Uint8Array | readonly number[];

/** The initialisation segment of a track of H.264 (ISO/IEC 14496-12, -15). */
export function initSegment({ width, height, avcC }: TrackInfo): Uint8Array<ArrayBuffer> {
  const entry = box("avc1", zeros(6), u16(1), zeros(16), u16(width), u16(height), u32(0x0048_0000), u32(0x0048_0000), zeros(4), u16(1), zeros(32), u16(24), u16(0xffff), box("avcC", avcC));
  const empty = (name: string): Part => full(name, 0, 0, u32(0));
  const table = box("stbl", full("stsd", 0, 0, u32(1), entry), empty("stts"), empty("stsc"), full("stsz", 0, 0, zeros(8)), empty("stco"));
  const data = box("dinf", full("dref", 0, 0, u32(1), full("url ", 0, 1)));
  const media = box(
    "mdia",
    full("mdhd", 0, 0, zeros(8), u32(TIMESCALE), u32(0), u16(0x55c4), u16(0)),
    full("hdlr", 0, 0, zeros(4), text("vide"), zeros(12), text("\0")),
    box("minf", full("vmhd", 0, 1, zeros(8)), data, table),
  );
  const track = box("trak", full("tkhd", 0, 3, zeros(8), u32(TRACK), zeros(4), u32(0), zeros(8), zeros(8), MATRIX, u32(width * 0x1_0000), u32(height * 0x1_0000)), media);
  const movie = full("mvhd", 0, 0, zeros(8), u32(TIMESCALE), u32(0), u32(0x0001_0000), u16(0x0100), zeros(10), MATRIX, zeros(24), u32(TRACK + 1));
  const fragments = box("mvex", full("trex", 0, 0, u32(TRACK), u32(1), zeros(12)));
  return join([box("ftyp", text("iso5"), u32(0), text("iso5iso6mp41")), box("moov", movie, track, fragments)]);
}

/** A media segment of these pictures, the first of which is shown `start` ticks after the beginning. `number` counts from 1. */
export function fragment(number: number, start: number, samples: readonly Sample[]): Uint8Array<ArrayBuffer> {
  const rows = samples.flatMap(({ octets, key, duration }) => [...u32(duration), ...u32(octets.length), ...u32(key ? SYNC : DEPENDENT)]);
  const moof = (offset: number): Uint8Array =>
    box(
      "moof",
      full("mfhd", 0, 0, u32(number)),
      box("traf", full("tfhd", 0, DEFAULT_BASE_IS_MOOF, u32(TRACK)), full("tfdt", 1, 0, u64(start)), full("trun", 0, RUN_FLAGS, u32(samples.length), u32(offset), rows)),
    );
  // The octets follow behind the moof and the head of the mdat; the offset's own length is the same whatever it is.
  const offset = moof(0).length + 8;
  const length = samples.reduce((sum, { octets }) => sum + octets.length, 8);
  return join([moof(offset), u32(length), text("mdat"), ...samples.map(({ octets }) => octets)]);
}

function box(name: string, ...parts: Part[]): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 8);
  return join([u32(length), text(name), ...parts]);
}

function full(name: string, version: number, flags: number, ...parts: Part[]): Uint8Array<ArrayBuffer> {
  return box(name, u32(version * 0x100_0000 + flags), ...parts);
}

function join(parts: readonly Part[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function u16(value: number): number[] {
  return [(value >>> 8) & 0xff, value & 0xff];
}

function u32(value: number): number[] {
  return [value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function u64(value: number): number[] {
  return [...u32(Math.floor(value / 2 ** 32)), ...u32(value % 2 ** 32)];
}

function zeros(count: number): number[] {
  return Array.from({ length: count }, () => 0);
}

function text(characters: string): number[] {
  return Array.from(characters, (character) => character.charCodeAt(0));
}
