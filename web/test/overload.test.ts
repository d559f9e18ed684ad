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

test("a machine without gives up instruments first, then quality, and takes all back within ten seconds", () => {
  const overload = new Overload();
  expect(run(overload, 0, 5, 80)).toEqual([
    [1, "instruments"],
    [2, "quality"],
  ]);
  expect(run(overload, 5_000, 10, 2)).toEqual([
    [4, "instruments"],
    [8, "none"],
  ]);
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

test("a decoder that is behind costs quality, one that is slow to answer does not", () => {
  const overload = new Overload();
  overload.handleDecoder(1_000);
  expect(run(overload, 0, 5, 1)).toEqual([]);
  overload.handleDecoder(1_700);
  expect(run(overload, 5_000, 5, 1).map(([, level]) => level)).toEqual(["instruments", "quality"]);
});

test("what comes and goes does not move the level back and forth", () => {
  const overload = new Overload();
  let changes = 0;
  for (let round = 0; round < 10; round += 1) {
    changes += run(overload, round * 4_000, 2, 80).length + run(overload, round * 4_000 + 2_000, 2, 2).length;
  }
  expect(changes).toBeLessThanOrEqual(2);
});
