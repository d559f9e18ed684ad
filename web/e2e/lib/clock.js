// Reads the clock that the test picture carries: docs/burned-in-clock.md.

const CELLS = 40;
const FIRST_DATA = 2;
const DATA_CELLS = 36;
/** Least difference between white and black for there to be a clock at all. */
const MIN_CONTRAST = 60;

/** Height of the clock's two rows in a picture of this width. */
export function clockHeight(width) {
  return Math.floor((2 * width) / CELLS);
}

/**
 * Time and frame number in the picture's first rows, or null where no valid clock is seen.
 *
 * @param {{width: number, height: number, data: Uint8ClampedArray}} image RGBA
 * @returns {{time: number, frame: number} | null}
 */
export function readClock(image) {
  const rows = [0, 1].map((row) => Array.from({ length: CELLS }, (_, cell) => brightness(image, cell, row)));
  const [top, bottom] = rows;
  const white = Math.min(top[0], bottom[1], top[39], bottom[38]);
  const black = Math.max(top[1], bottom[0], top[38], bottom[39]);
  if (white - black < MIN_CONTRAST) {
    return null;
  }
  const threshold = (white + black) / 2;
  const bits = rows.flatMap((row) => row.slice(FIRST_DATA, FIRST_DATA + DATA_CELLS).map((cell) => cell > threshold));
  const value = bits.reduce((sum, bit) => (sum << 1n) | (bit ? 1n : 0n), 0n);
  const message = value >> 16n;
  if (crc16(message) !== Number(value & 0xffffn)) {
    return null;
  }
  return { time: Number(message >> 14n), frame: Number(message & 0x3fffn) };
}

/** CRC-16/IBM-3740 of 56 bits. */
export function crc16(message) {
  let crc = 0xffff;
  for (let octet = 6; octet >= 0; octet -= 1) {
    crc ^= Number((message >> BigInt(8 * octet)) & 0xffn) << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
    }
  }
  return crc;
}

/** The bits of a clock, row by row, as `readClock` expects them. */
export function clockRows(time, frame) {
  const message = (BigInt(Math.floor(time)) << 14n) | BigInt(frame & 0x3fff);
  const value = (message << 16n) | BigInt(crc16(message));
  const bits = Array.from({ length: 72 }, (_, index) => ((value >> BigInt(71 - index)) & 1n) === 1n);
  return [
    [true, false, ...bits.slice(0, 36), false, true],
    [false, true, ...bits.slice(36), true, false],
  ];
}

/** Whether the flash is on: the square that is white while the tone sounds. */
export function flashArea(width, height) {
  const side = width / 10;
  return { x: Math.round((width * 7) / 8 - side / 4), y: Math.round((height * 4) / 5 - side / 4), side: Math.max(1, Math.round(side / 2)) };
}

/** Mean brightness of a cell's inner half. */
function brightness(image, cell, row) {
  const side = image.width / CELLS;
  const [left, top] = [(cell + 0.25) * side, (row + 0.25) * side];
  let sum = 0;
  let count = 0;
  for (let y = Math.floor(top); y < Math.max(top + side / 2, Math.floor(top) + 1); y += 1) {
    for (let x = Math.floor(left); x < Math.max(left + side / 2, Math.floor(left) + 1); x += 1) {
      const at = 4 * (y * image.width + x);
      sum += 0.299 * image.data[at] + 0.587 * image.data[at + 1] + 0.114 * image.data[at + 2];
      count += 1;
    }
  }
  return sum / count;
}
