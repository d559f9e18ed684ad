import { expect, test } from "vitest";
import { clockHeight, clockRows, crc16, flashArea, readClock } from "../e2e/lib/clock.js";

const WIDTH = 320;
const HEIGHT = 2 * (WIDTH / 40);

/** The clock as a picture, with `black` and `white` as given and noise of ±`noise`. */
function picture(rows: boolean[][], black = 16, white = 235, noise = 0): { width: number; height: number; data: Uint8ClampedArray } {
  const data = new Uint8ClampedArray(WIDTH * HEIGHT * 4);
  for (let y = 0; y < HEIGHT; y += 1) {
    for (let x = 0; x < WIDTH; x += 1) {
      const bit = rows[Math.floor(y / 8)]?.[Math.floor(x / 8)] ?? false;
      const value = (bit ? white : black) + noise * Math.sin(x * 12.9898 + y * 78.233);
      data.fill(value, 4 * (y * WIDTH + x), 4 * (y * WIDTH + x) + 3);
    }
  }
  return { width: WIDTH, height: HEIGHT, data };
}

test("what is written is read, to the largest values", () => {
  for (const [time, frame] of [[1_790_000_000_123, 77], [0, 0], [2 ** 42 - 1, 16_383]] as const) {
    expect(readClock(picture(clockRows(time, frame)))).toEqual({ time, frame });
  }
});

test("a washed-out and noisy clock is read", () => {
  expect(readClock(picture(clockRows(1_790_000_000_123, 5), 70, 160, 40))).toEqual({ time: 1_790_000_000_123, frame: 5 });
});

test("one wrong bit is noticed", () => {
  const rows = clockRows(1_790_000_000_123, 5);
  const row = rows[1];
  if (row !== undefined) {
    row[10] = !row[10];
  }
  expect(readClock(picture(rows))).toBeNull();
});

test("a picture without a clock has none", () => {
  expect(readClock(picture([[], []]))).toBeNull();
  expect(readClock(picture(clockRows(1, 1), 100, 140))).toBeNull();
});

/** The check value of CRC-16/IBM-3740 is that of "123456789"; of its first seven digits, by hand, 0x5502 follows. */
test("the checksum matches the definition", () => {
  const bitwise = (octets: number[]): number => {
    let crc = 0xffff;
    for (const octet of octets) {
      for (let bit = 7; bit >= 0; bit -= 1) {
        const carry = ((crc >> 15) & 1) ^ ((octet >> bit) & 1);
        crc = ((crc << 1) & 0xffff) ^ (carry ? 0x1021 : 0);
      }
    }
    return crc;
  };
  const check = [..."123456789"].map((digit) => digit.charCodeAt(0));
  expect(bitwise(check)).toBe(0x29b1);
  expect(crc16(0x31323334353637n)).toBe(bitwise(check.slice(0, 7)));
});

test("areas scale with the picture", () => {
  expect(clockHeight(1280)).toBe(64);
  expect(flashArea(1280, 720)).toEqual({ x: 1088, y: 544, side: 64 });
});
