import { expect, test } from "vitest";
import { PLAYOUT_TARGET_DEFAULTS, PlayoutTarget, type Timed } from "../src/worker/playout-target.ts";

const { reserve, cap } = PLAYOUT_TARGET_DEFAULTS;
/** Time from one picture to the next at 25 a second, in milliseconds. */
const PERIOD = 40;

/** Plays `seconds` of pictures from `from` on, each of which needs `needed(number)`. Returns when the last one was ready. */
function play(target: PlayoutTarget, from: number, seconds: number, needed: (number: number) => number, stream: Timed = "video"): number {
  let now = from;
  for (let number = 0; number < (seconds * 1_000) / PERIOD; number += 1) {
    now = from + number * PERIOD;
    if (target.push(stream, now, needed(number)) || number % 6 === 0) {
      target.update(now);
    }
  }
  return now;
}

test("a machine that needs less than the chosen target keeps it", () => {
  const target = new PlayoutTarget(100);
  play(target, 0, 30, () => 95);
  expect(target.current).toBe(100);
  expect(target.margin).toBe(0);
});

test("a decoder that is 350 ms late moves the target at once, to what it needs", () => {
  const target = new PlayoutTarget(100);
  play(target, 0, 20, () => 60);
  // 250 samples of ten seconds: 13 late ones are more than 5 %.
  play(target, 20_000, 12 * PERIOD * 1e-3, () => 450);
  expect(target.current).toBe(100);
  play(target, 20_000 + 12 * PERIOD, 2 * PERIOD * 1e-3, () => 450);
  expect(target.current).toBe(450 + reserve);
  expect(target.needed).toBe(450 + reserve);
});

test("one late picture in 40 moves nothing, one in 15 does", () => {
  const rare = new PlayoutTarget(100);
  play(rare, 0, 30, (number) => (number % 40 === 30 ? 400 : 50));
  expect(rare.current).toBe(100);
  const often = new PlayoutTarget(100);
  play(often, 0, 30, (number) => (number % 15 === 0 ? 400 : 50));
  expect(often.current).toBe(400 + reserve);
});

test("the target shrinks by 5 % a second once ten seconds needed less", () => {
  const target = new PlayoutTarget(100);
  play(target, 0, 5, () => 395);
  expect(target.current).toBe(400);
  let now = play(target, 5_000, 10.5, () => 50);
  const begun = target.current;
  expect(begun).toBeGreaterThan(370);
  now = play(target, now + PERIOD, 4, () => 50);
  const share = target.current / begun;
  expect(share).toBeGreaterThan(0.95 ** 5);
  expect(share).toBeLessThan(0.95 ** 3);
  play(target, now + PERIOD, 40, () => 50);
  expect(target.current).toBe(100);
});

test("the cap holds, is reported, and gives way to a higher chosen target", () => {
  const target = new PlayoutTarget(100);
  play(target, 0, 5, () => 4_000);
  expect(target.current).toBe(cap);
  expect(target.isCapped).toBe(true);
  target.choose(3_000);
  expect(target.current).toBe(3_000);
  expect(target.margin).toBe(0);
});

test("the chosen target moves playout at once where nothing else is needed, and never below the need", () => {
  const target = new PlayoutTarget(100);
  target.choose(400);
  expect(target.current).toBe(400);
  target.choose(50);
  expect(target.current).toBe(50);
  play(target, 0, 5, () => 295);
  target.choose(200);
  expect(target.current).toBe(300);
  expect(target.margin).toBe(100);
});

test("late sound moves the target, however many pictures are in time", () => {
  const target = new PlayoutTarget(100);
  for (let number = 0; number < 100; number += 1) {
    target.push("video", number * PERIOD, 20);
    target.push("audio", number * PERIOD, 200);
  }
  target.update(100 * PERIOD);
  expect(target.current).toBe(200 + reserve);
});

test("what a start or a jump makes late does not count", () => {
  const target = new PlayoutTarget(100);
  target.restart(0);
  play(target, 0, 0.9, () => 900);
  expect(target.current).toBe(100);
  play(target, 1_000, 5, () => 80);
  expect(target.current).toBe(100);
});

test("few samples move nothing", () => {
  const target = new PlayoutTarget(100);
  for (let number = 0; number < 19; number += 1) {
    target.push("video", number, 900);
  }
  expect(target.update(20)).toBe(0);
  target.push("video", 20, 900);
  expect(target.update(21)).toBe(800 + reserve);
});

test("another path needs another target: what the one before needed is forgotten", () => {
  const target = new PlayoutTarget(100);
  play(target, 0, 3, () => 60);
  play(target, 3_000, 3, () => 450);
  expect(target.current).toBe(450 + reserve);
  expect(target.reset(6_000)).toBe(100 - 450 - reserve);
  expect(target.current).toBe(100);
  // The first second of the other path does not count either.
  expect(target.push("video", 6_500, 900)).toBe(false);
});
