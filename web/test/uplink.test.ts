import { describe, expect, test } from "vitest";
import { Uplink } from "../src/worker/uplink.ts";

/** What the path is like: nobody waits, and everybody. */
const FREE = { waits: 5, interests: 60, late: 2 };
const FULL = { waits: 120, interests: 60, late: 25 };

/** When the level changes, in seconds, and to what, if the path is at each time and level as `at` says. */
function changes(seconds: number, at: (second: number, level: number) => typeof FREE): [second: number, level: number][] {
  const uplink = new Uplink(3);
  const found: [number, number][] = [];
  let level = 0;
  for (let look = 0; look < 5 * seconds; look += 1) {
    const next = uplink.update(at(look / 5, level), 200 * look);
    if (next !== level) {
      found.push([look / 5, next]);
    }
    level = next;
  }
  return found;
}

describe("the path to the node", () => {
  // The mean of ten looks is 85 ms with seven bad ones; less than a fifth of what they see is late with four: then 10 s begin.
  test("gets less while it is full, and more again once it has been free for a while", () => {
    expect(changes(60, (second) => (second >= 10 && second < 12.6 ? FULL : FREE))).toEqual([
      [11.2, 1],
      [23.6, 0],
    ]);
  });

  test("gets what it did where only one thing is wrong, or nothing is known", () => {
    for (const one of [{ ...FULL, late: 2 }, { ...FREE, late: 60 }, { ...FULL, waits: -1 }, { waits: 200, interests: 1, late: 1 }]) {
      expect(changes(60, () => one)).toEqual([]);
    }
  });

  test("gets less and less, down to the least there is", () => {
    expect(changes(60, () => FULL).map(([, level]) => level)).toEqual([1, 2]);
  });

  // It carries the second level and not the first: after 10 s, and then each time after twice as long.
  test("is tried less and less while that fails", () => {
    const found = changes(3_000, (_, level) => (level === 0 ? FULL : FREE)).filter(([, level]) => level === 0);
    const pauses = found.slice(1).map(([second], index) => Math.round(second - (found[index]?.[0] ?? 0)));
    expect(pauses.slice(0, 6)).toEqual([25, 45, 85, 165, 325, 325]);
  });
});
