/** One quality of the picture. */
export interface Quality {
  /** As the commands name rungs: by the bitrate. */
  name: string;
  width: number;
  height: number;
  /** Bits a second. */
  bitrate: number;
}

/** Bitrates of the first two qualities, from which height on. */
const BITRATES: readonly [height: number, high: Bitrate, low: Bitrate][] = [
  [600, ["2M", 2_000_000], ["500k", 500_000]],
  [300, ["1M", 1_000_000], ["300k", 300_000]],
  [0, ["400k", 400_000], ["150k", 150_000]],
];

type Bitrate = [name: string, bitsPerSecond: number];

/** Smallest side of a picture that encoders take, in pixels. */
const SMALLEST = 16;

/**
 * The qualities of pictures of this size, the best one first: as they are, half as wide and high, and that with half the bitrate, for
 * connections that do not carry it.
 */
export function qualities(width: number, height: number): Quality[] {
  const [, high, low] = BITRATES.find(([from]) => height >= from) ?? [0, ["400k", 400_000], ["150k", 150_000]];
  const quality = ([name, bitrate]: Bitrate, share: number): Quality => ({ name, bitrate, width: even(width * share), height: even(height * share) });
  const half = low[1] / 2;
  return [quality(high, 1), quality(low, 0.5), quality([`${half / 1_000}k`, half], 0.5)];
}

/** Encoders take even sides only. */
function even(pixels: number): number {
  return Math.max(SMALLEST, 2 * Math.round(pixels / 2));
}
