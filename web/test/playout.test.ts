import { describe, expect, test } from "vitest";
import { Playout } from "../src/worklet/playout.ts";

/** Output and input run at 1000 samples a second, so that a sample is a millisecond. */
const RATE = 1_000;
const QUANTUM = 100;

/** 20 ms of a ramp that says which millisecond each sample belongs to. */
function chunk(at: number): [number, number, Float32Array[]] {
  return [at, RATE, [Float32Array.from({ length: 20 }, (_, index) => at + index)]];
}

function fill(playout: Playout, from: number, until: number): void {
  for (let at = from; at < until; at += 20) {
    playout.push(...chunk(at));
  }
}

function render(playout: Playout, heardAt: number): Float32Array {
  const output = new Float32Array(QUANTUM);
  playout.render(heardAt, [output]);
  return output;
}

describe("Playout", () => {
  test("plays each sample at its time", () => {
    const playout = new Playout(RATE);
    fill(playout, 1_000, 2_000);
    render(playout, 1_000);
    render(playout, 1_100);
    // After the fade, the value is the millisecond in which it is heard.
    expect(render(playout, 1_200)[50]).toBe(1_250);
    expect(playout.report()).toMatchObject({ lateness: 0, underruns: 0, jumps: 0, queued: 700 });
  });

  test("is silent until the first sample is due, to the sample", () => {
    const playout = new Playout(RATE);
    fill(playout, 1_030, 1_600);
    expect(Math.max(...render(playout, 900))).toBe(0);
    const output = render(playout, 1_000);
    expect(output.findIndex((sample) => sample > 0)).toBe(31); // sample 30 starts the fade at gain 0
    render(playout, 1_100);
    expect(render(playout, 1_200)[0]).toBe(1_200);
  });

  test("skips what is already late when it starts", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 2_000);
    render(playout, 1_000);
    render(playout, 1_100);
    expect(render(playout, 1_200)[7]).toBe(1_207);
  });

  /** 10 ms early at 1 % is worked off within a second, and never heard as a jump. */
  test("slides back into step", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 3_000);
    render(playout, 0);
    // The output's clock jumps back by 10 ms: sound is now heard 10 ms before it is due.
    const first = -10 + QUANTUM;
    for (let heardAt = first; heardAt < 2_900; heardAt += QUANTUM) {
      render(playout, heardAt);
    }
    const { jumps, underruns, lateness } = playout.report();
    expect(jumps).toBe(0);
    expect(underruns).toBe(0);
    expect(lateness).toBeLessThan(0);
    expect(lateness).toBeGreaterThan(-10);
    fill(playout, 3_000, 3_500);
    render(playout, 2_990);
    expect(Math.abs(playout.report().lateness ?? 99)).toBeLessThan(2);
  });

  test("jumps when far behind", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 2_000);
    render(playout, 0);
    render(playout, 500);
    render(playout, 600);
    expect(render(playout, 700)[50]).toBe(750);
    expect(playout.report().jumps).toBe(1);
  });

  test("waits when the target grows, and goes on in step", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 1_000);
    render(playout, 0);
    playout.shift(300);
    expect(render(playout, 100)[50]).toBe(0);
    render(playout, 400);
    render(playout, 500);
    expect(render(playout, 600)[50]).toBe(350);
    expect(playout.report().jumps).toBe(1);
  });

  test("counts one underrun for one gap", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 100);
    for (let heardAt = 0; heardAt < 1_000; heardAt += QUANTUM) {
      render(playout, heardAt);
    }
    expect(playout.report().underruns).toBe(1);
    fill(playout, 1_040, 1_140);
    render(playout, 1_000);
    render(playout, 1_100);
    expect(playout.report()).toMatchObject({ underruns: 2, delay: 0 });
  });

  /** Each piece of sound comes when 5 ms of it should have been heard: chopped at first, whole after a step of delay. */
  test("delays sound that comes too late, and takes that back when it comes in time", () => {
    const playout = new Playout(RATE);
    let pushed = 0;
    const run = (from: number, until: number, comesLate: number): void => {
      for (let heardAt = from; heardAt < until; heardAt += 5) {
        for (; pushed <= heardAt - comesLate; pushed += 20) {
          playout.push(...chunk(pushed));
        }
        playout.render(heardAt, [new Float32Array(5)]);
      }
    };
    run(0, 2_000, 5);
    const { underruns } = playout.report();
    expect(underruns).toBeLessThanOrEqual(3);
    run(2_000, 6_000, 5);
    const late = playout.report();
    expect(late.underruns).toBe(underruns);
    expect(late.delay).toBeGreaterThan(4);
    expect(late.delay).toBeLessThanOrEqual(30);
    expect(Math.abs(late.lateness ?? 99)).toBeLessThan(2);
    run(6_000, 60_000, -60);
    playout.report();
    run(60_000, 61_000, -60);
    const calm = playout.report();
    expect(calm.delay).toBe(0);
    expect(Math.abs(calm.lateness ?? 99)).toBeLessThan(1);
    expect(calm.underruns).toBe(underruns);
  });

  test("finds a delay even if all of it comes too late from the start, but not for what belongs to the past", () => {
    const playout = new Playout(RATE);
    let heard = 0;
    for (let heardAt = 1_000; heardAt < 4_000; heardAt += 5) {
      if (heardAt % 20 === 0) {
        playout.push(...chunk(heardAt - 70));
      }
      const output = new Float32Array(5);
      playout.render(heardAt, [output]);
      heard += heardAt >= 2_000 && output.every((sample) => sample > 0) ? 1 : 0;
    }
    expect(heard).toBe(400);
    expect(playout.report().delay).toBeGreaterThanOrEqual(70);
    const joined = new Playout(RATE);
    render(joined, 5_000);
    fill(joined, 4_000, 4_500);
    expect(joined.report().delay).toBe(0);
  });

  test("holds a hole in the sound open, so that what follows stays in step", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 100);
    fill(playout, 200, 600);
    render(playout, 0);
    expect(Math.max(...render(playout, 100))).toBe(0);
    render(playout, 200);
    render(playout, 300);
    expect(render(playout, 400)[50]).toBe(450);
  });

  test("resamples from another rate", () => {
    const playout = new Playout(RATE);
    const samples = Float32Array.from({ length: 4_000 }, (_, index) => index / 2);
    playout.push(0, 2_000, [samples]);
    render(playout, 0);
    render(playout, 100);
    expect(render(playout, 200)[33]).toBe(233);
  });

  test("is bounded", () => {
    const playout = new Playout(RATE);
    fill(playout, 0, 100_000);
    expect(playout.report().queued).toBeLessThanOrEqual(3_000);
  });

  test("refuses what is out of order or empty", () => {
    const playout = new Playout(RATE);
    fill(playout, 100, 200);
    playout.push(...chunk(0));
    playout.push(300, RATE, []);
    playout.push(300, 0, [new Float32Array(1)]);
    expect(playout.report().queued).toBe(100);
  });
});
