import { expect, test } from "vitest";
import { levelOf } from "../src/live/level.ts";

/** A square wave has the loudness of its height: 1 is 0 dB, 0.5 is −6.02 dB, 0.0316 is −30 dB. */
test("a level is in decibels, from −60 to −6", () => {
  const square = (height: number): Float32Array => Float32Array.from({ length: 1_000 }, (_, at) => (at % 2 === 0 ? height : -height));
  expect(levelOf(square(1))).toBe(1);
  expect(levelOf(square(0.5))).toBeCloseTo(0.9996, 3);
  expect(levelOf(square(0.0316228))).toBeCloseTo(30 / 54, 3);
  expect(levelOf(square(0.0009))).toBe(0);
  expect(levelOf(square(0))).toBe(0);
});
