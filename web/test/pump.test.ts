import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Pump } from "../src/worker/pump.ts";

/** A core whose deadline is set by hand. */
class FakeCore {
  deadline = Infinity;
  readonly timeouts: number[] = [];
  drains = 0;

  pollTimeout(): number {
    return this.deadline;
  }

  handleTimeout(now: number): void {
    this.timeouts.push(now);
    this.deadline = Infinity;
  }

  drain(): Uint8Array {
    this.drains += 1;
    return new Uint8Array();
  }
}

describe("a pump", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Lets messages that wait be delivered. */
  const delivered = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) {
      const { port1, port2 } = new MessageChannel();
      await new Promise<void>((resolve) => {
        port1.onmessage = () => resolve();
        port2.postMessage(null);
      });
      port1.close();
    }
  };

  test("runs once for all packets of a burst, and again for the next", async () => {
    const core = new FakeCore();
    const pump = new Pump(core, () => undefined);
    for (let packet = 0; packet < 10; packet += 1) {
      pump.soon();
    }
    expect(core.drains).toBe(0);
    await delivered();
    expect(core.drains).toBe(1);
    pump.soon();
    await delivered();
    expect(core.drains).toBe(2);
    pump.close();
  });

  test("sets no timer for a deadline that moved away, and is on time for it all the same", () => {
    const core = new FakeCore();
    const pump = new Pump(core, () => undefined);
    const set = vi.spyOn(globalThis, "setTimeout");
    for (let run = 0; run < 3; run += 1) {
      core.deadline = performance.now() + 20;
      pump.run();
      vi.advanceTimersByTime(5);
    }
    // The deadline is 20 ms after the last run, which was 5 ms ago; one timer was set, for 20 ms after the first run.
    expect(set).toHaveBeenCalledTimes(1);
    const deadline = core.deadline;
    vi.advanceTimersByTime(14);
    expect(core.timeouts).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(core.timeouts).toEqual([deadline]);
    pump.close();
  });

  test("wakes up earlier for a deadline that came nearer, and reports how late", () => {
    const core = new FakeCore();
    const late: number[] = [];
    const pump = new Pump(core, () => undefined, (by) => late.push(by));
    core.deadline = performance.now() + 500;
    pump.run();
    core.deadline = performance.now() + 10;
    pump.run();
    vi.advanceTimersByTime(10);
    expect(core.timeouts).toHaveLength(1);
    expect(late).toEqual([0]);
    pump.close();
  });

  test("wakes up once for all that is due within 4 ms", () => {
    const core = new FakeCore();
    const pump = new Pump(core, () => undefined);
    const begun = performance.now();
    core.deadline = begun + 1;
    pump.run();
    core.deadline = begun + 3;
    pump.run();
    vi.advanceTimersByTime(3);
    expect(core.timeouts).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(core.timeouts).toEqual([begun + 4]);
    pump.close();
  });

  test("calls a core no more once it is closed", async () => {
    const core = new FakeCore();
    const pump = new Pump(core, () => undefined);
    pump.soon();
    pump.close();
    core.deadline = performance.now();
    vi.advanceTimersByTime(2_000);
    await delivered();
    expect([core.drains, core.timeouts]).toEqual([0, []]);
  });
});
