import { expect, test } from "vitest";
import { LipSync } from "../src/worker/lip-sync.ts";

test("sound is timed like a picture captured at the same moment", () => {
  const sync = new LipSync();
  expect(sync.soundDueAt(1_000, 1_150)).toBe(1_150);
  for (let capturedAt = 0; capturedAt < 3_000; capturedAt += 33) {
    sync.handleVideo(capturedAt, capturedAt + 120 + (capturedAt % 2 === 0 ? 5 : -5));
  }
  const heardAt = sync.soundDueAt(3_000, 3_145);
  expect(Math.abs(heardAt - 3_120)).toBeLessThan(2);
});

test("a moved target moves sound at once, and a new mapping counts at once", () => {
  const sync = new LipSync();
  sync.handleVideo(0, 100);
  sync.shift(300);
  expect(sync.soundDueAt(1_000, 1_420)).toBe(1_400);
  sync.handleVideo(2_000, 7_000);
  expect(sync.soundDueAt(2_000, 7_020)).toBe(7_000);
});

test("streams whose capture times have nothing to do with each other are left alone", () => {
  const sync = new LipSync();
  sync.handleVideo(0, 100);
  expect(sync.soundDueAt(0, 500)).toBe(500);
});
