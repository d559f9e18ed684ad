import { expect, test } from "vitest";
import { stepOf } from "../src/player/seek-preview.ts";

test("pictures of a seek bar are 10 s apart at least, and 60 at most", () => {
  expect(stepOf(60_000)).toBe(10_000);
  expect(stepOf(600_000)).toBe(10_000);
  expect(stepOf(601_000)).toBe(20_000);
  // A day of 86 400 s: 1 440 s for 60 pictures, so the next of 10 · 2ⁿ s, 2 560 s.
  expect(stepOf(86_400_000)).toBe(2_560_000);
  expect(stepOf(0)).toBe(10_000);
});
