import { expect, test } from "vitest";
import { Overload } from "../src/worker/overload.ts";

/** Wakes `overload` up every 20 ms for `seconds`, each time `late`. Returns the levels it went through, with the second of each. */
function run(overload: Overload, from: number, seconds: number, late: number): (readonly [number, string])[] {
  const changes: (readonly [number, string])[] = [];
  for (let now = from; now < from + seconds * 1_000; now += 20) {
    overload.handleWake(now, late);
    if (overload.update(now)) {
      changes.push([Math.round((now - from) / 1_000), overload.level]);
    }
  }
  return changes;
}

test("a machine with time gives up nothing", () => {
  const overload = new Overload();
  expect(run(overload, 0, 20, 3)).toEqual([]);
  expect(overload.level).toBe("none");
  expect(overload.wakeDelay(20_000)).toBe(3);
});

test("a machine without gives up one thing after the other, and takes all back within ten seconds", () => {
  const overload = new Overload();
  expect(run(overload, 0, 5, 80)).toEqual([
    [1, "instruments"],
    [2, "quality"],
  ]);
  expect(run(overload, 5_000, 10, 2)).toEqual([
    [3, "instruments"],
    [5, "none"],
  ]);
  expect(run(overload, 15_000, 6, 200).map(([, level]) => level)).toEqual(["instruments", "quality", "rate"]);
  expect(run(overload, 21_000, 10, 2).at(-1)?.[1]).toBe("none");
});

test("packets that this machine dropped cost quality, and are no loss of the link for a while", () => {
  const overload = new Overload();
  const dropping: string[] = [];
  for (let now = 0; now < 5_000; now += 20) {
    if (now % 1_000 === 0) {
      overload.handleDrops(now);
    }
    dropping.push(...run(overload, now, 0.02, 1).map(([, level]) => level));
  }
  expect(dropping).toEqual(["instruments", "quality"]);
  // The core takes 60 ms for a busy machine, whose losses are none of the link.
  expect(overload.wakeDelay(5_000)).toBe(60);
  expect(overload.wakeDelay(6_000)).toBe(0);
});

test("a little lateness costs the instruments only", () => {
  const overload = new Overload();
  expect(run(overload, 0, 20, 30)).toEqual([[1, "instruments"]]);
});

test("a single long pause costs nothing, and what came after it may have waited as long", () => {
  const overload = new Overload();
  run(overload, 0, 5, 1);
  overload.handleWake(5_000, 400);
  expect(overload.wakeDelay(5_100)).toBe(400);
  expect(run(overload, 5_020, 5, 1)).toEqual([]);
  expect(overload.wakeDelay(10_000)).toBe(1);
});

test("a decoder that is behind costs all but key frames, one that is slow to answer nothing", () => {
  const overload = new Overload();
  overload.handleDecoder(1_000);
  expect(run(overload, 0, 5, 1)).toEqual([]);
  overload.handleDecoder(1_700);
  expect(run(overload, 5_000, 6, 1).map(([, level]) => level)).toEqual(["instruments", "quality", "rate", "picture"]);
  overload.handleDecoder(0);
  expect(run(overload, 11_000, 10, 1).map(([, level]) => level)).toEqual(["rate", "quality", "instruments", "none"]);
});

test("what comes and goes does not move the level back and forth", () => {
  const overload = new Overload();
  let changes = 0;
  for (let round = 0; round < 10; round += 1) {
    changes += run(overload, round * 4_000, 2, 80).length + run(overload, round * 4_000 + 2_000, 2, 2).length;
  }
  expect(changes).toBeLessThanOrEqual(2);
});
