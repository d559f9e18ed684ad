import { describe, expect, test } from "vitest";
import { duration, timeOfDay } from "../src/player/format.ts";
import { behind, meant, reach, stepped } from "../src/player/timeline.ts";
import type { Position } from "../src/shared/summary.ts";
import type { MissedTime } from "../src/shared/facts.ts";
import { Travel } from "../src/worker/travel.ts";

const NOW = 1_790_000_000_000;

/** Live, with ten minutes kept. */
function position(some: Partial<Position> = {}): Position {
  return { live: true, shown: NOW - 150, now: NOW, since: NOW - 600_000, seeking: null, answers: 0, ...some };
}

describe("the rewind bar", () => {
  test("reaches back to what is kept", () => {
    expect(reach(position())).toBe(600_000);
    expect(reach(position({ since: null }))).toBe(0);
    // A second of it is nothing to go back to.
    expect(reach(position({ since: NOW - 1_000 }))).toBe(0);
  });

  test("shows where playback is, or is going to", () => {
    expect(behind(position())).toBe(0);
    expect(behind(position({ live: false, shown: NOW - 60_000 }))).toBe(60_000);
    expect(behind(position({ seeking: NOW - 20_000 }))).toBe(20_000);
    // The publisher's clock may be a little ahead of what is known of it.
    expect(behind(position({ live: false, shown: NOW + 5 }))).toBe(0);
  });

  test("means live near its end, and nothing older than what is kept", () => {
    expect(meant(60_000, position())).toBe(NOW - 60_000);
    expect(meant(700_000, position())).toBe(NOW - 600_000);
    expect(meant(5_900, position())).toBeNull();
    expect(meant(1_500, position({ since: NOW - 20_000 }))).toBe(NOW - 1_500);
    expect(meant(900, position({ since: NOW - 20_000 }))).toBeNull();
  });

  test("steps from where playback is going to, so that presses add up", () => {
    expect(stepped(-5, position())).toBe(NOW - 5_000);
    expect(stepped(-5, position({ seeking: NOW - 5_000 }))).toBe(NOW - 10_000);
    expect(stepped(10, position({ live: false, shown: NOW - 60_000 }))).toBe(NOW - 50_000);
    expect(stepped(5, position({ live: false, shown: NOW - 5_500 }))).toBeNull();
    expect(stepped(-60, position({ live: false, shown: NOW - 590_000 }))).toBe(NOW - 600_000);
  });
});

describe("Travel", () => {
  const travel = () => {
    const missed: (MissedTime | null)[] = [];
    return { missed, travel: new Travel((each) => missed.push(each)) };
  };

  test("knows whether it is live, and where it goes", () => {
    const { travel: at } = travel();
    at.handle({ type: "seeking", to: NOW }, 0);
    expect([at.live, at.seeking]).toEqual([true, NOW]);
    at.handle({ type: "playing", captured_at: NOW }, 0);
    expect([at.live, at.seeking]).toEqual([false, null]);
    at.handle({ type: "live" }, 0);
    expect([at.live, at.seeking]).toEqual([true, null]);
  });

  test("reports a missing time for eight seconds", () => {
    const { missed, travel: at } = travel();
    at.handle({ type: "nothing", to: NOW, since: NOW + 60_000, answered: true }, 1_000);
    expect(missed).toEqual([{ to: NOW, since: NOW + 60_000, answered: true }]);
    at.tick(8_999);
    expect(missed).toHaveLength(1);
    at.tick(9_000);
    expect(missed.at(-1)).toBeNull();
    at.handle({ type: "nothing", to: NOW, since: null, answered: false }, 0);
    // Back to live by itself is no reason to take the explanation away; another wish is.
    at.handle({ type: "live" }, 0);
    expect(missed.at(-1)).toMatchObject({ answered: false });
    at.handle({ type: "seeking", to: NOW }, 0);
    expect(missed.at(-1)).toBeNull();
  });

  test("keeps playback in the past where it was", () => {
    const { travel: at } = travel();
    at.handle({ type: "playing", captured_at: NOW }, 0);
    at.handle({ type: "nothing", to: NOW, since: null, answered: true }, 0);
    expect(at.live).toBe(false);
  });
});

test("stretches and times of day read well", () => {
  expect([0, 5_400, 62_000, 3_605_000].map(duration)).toEqual(["0:00", "0:05", "1:02", "1:00:05"]);
  const noon = new Date(2026, 4, 1, 12, 3, 4).getTime();
  expect(timeOfDay(noon, noon)).toBe("12:03:04");
  expect(timeOfDay(noon, noon + 86_400_000)).toBe("1 May 12:03:04");
});
