import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LiveFrame } from "../src/worker/tab.ts";
import { LiveVideo } from "../src/worker/publish-video.ts";

/** A picture of 640 by 360, captured at a time in microseconds. */
class Picture {
  readonly displayWidth = 640;
  readonly displayHeight = 360;
  readonly timestamp: number;

  constructor(from: { timestamp: number }, init?: { timestamp: number }) {
    this.timestamp = (init ?? from).timestamp;
  }

  clone(): Picture {
    return new Picture(this);
  }

  close(): void {}
}

/** An encoder that gives each picture back at once, unless it is held. */
class Encoder {
  static readonly all: Encoder[] = [];
  static codecs = ["vp8"];
  static async isConfigSupported({ codec }: { codec: string }): Promise<{ supported: boolean }> {
    return { supported: Encoder.codecs.includes(codec) };
  }

  state = "unconfigured";
  encodeQueueSize = 0;
  readonly keys: boolean[] = [];
  readonly timestamps: number[] = [];
  readonly #output: (chunk: object) => void;

  constructor({ output }: { output: (chunk: object) => void }) {
    this.#output = output;
    Encoder.all.push(this);
  }

  configure(): void {
    this.state = "configured";
  }

  encode({ timestamp }: Picture, { keyFrame }: { keyFrame: boolean }): void {
    this.keys.push(keyFrame);
    this.timestamps.push(timestamp);
    this.#output({ timestamp, type: keyFrame ? "key" : "delta", byteLength: 1, copyTo: () => undefined });
  }
}

let published: LiveFrame[];
let isBehind: boolean;
let refuse: boolean;

beforeEach(() => {
  [published, isBehind, refuse] = [[], false, false];
  Encoder.all.length = 0;
  Encoder.codecs = ["vp8"];
  vi.stubGlobal("VideoEncoder", Encoder);
  vi.stubGlobal("VideoFrame", Picture);
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});

afterEach(() => vi.unstubAllGlobals());

const host = {
  publish: (frame: LiveFrame) => {
    if (refuse) {
      throw new Error("needs a key frame");
    }
    published.push(frame);
  },
  isBehind: () => isBehind,
  failed: () => undefined,
};

/** Has `count` pictures encoded, 4 a second; `before` is called with the number of each before it comes. */
async function run(count: number, before: (number: number) => void = () => undefined): Promise<LiveVideo> {
  const pictures = Array.from({ length: count }, (_, number) => new Picture({ timestamp: number * 250_000 }) as unknown as VideoFrame);
  const first = pictures[0] as VideoFrame;
  const video = await LiveVideo.make(host, first, 4);
  let number = 0;
  const read = async () => {
    number += 1;
    before(number);
    return { value: pictures[number], done: number >= count };
  };
  await video.run({ read } as unknown as ReadableStreamDefaultReader<VideoFrame>, first);
  return video;
}

const of = (rung: string): [number, boolean][] => published.filter((frame) => frame.rung === rung).map(({ position, key }) => [position, key]);

describe("pictures in three qualities", () => {
  test("have their key frames at the same positions, one a second", async () => {
    const { description } = await run(9);
    expect(description.codec).toBe("vp8");
    expect(description.rungs.map(({ name, width }) => [name, width])).toEqual([
      ["150k", 320],
      ["300k", 320],
      ["1M", 640],
    ]);
    expect(of("1M")).toEqual(of("300k"));
    expect(of("1M").filter(([, key]) => key).map(([position]) => position)).toEqual([0, 4, 8]);
  });

  test("are left out of all while one encoder or the network is behind, before they are encoded", async () => {
    const { dropped } = await run(9, (number) => {
      (Encoder.all[1] as Encoder).encodeQueueSize = number === 2 ? 2 : 0;
      isBehind = number === 5 || number === 6;
    });
    expect(dropped).toEqual({ encoder: 1, network: 2 });
    expect(Encoder.all.map(({ keys }) => keys.length)).toEqual([6, 6, 6]);
    // Positions have no holes, and the key frame is where it would be without.
    expect(of("300k").map(([position]) => position)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(of("1M").filter(([, key]) => key).map(([position]) => position)).toEqual([0, 4]);
  });

  test("begin anew with a key frame after one was not published", async () => {
    await run(4, (number) => {
      refuse = number === 1;
    });
    expect(of("1M")).toEqual([
      [0, true],
      [2, true],
      [3, false],
    ]);
  });

  // Four a second are said, and one comes in two seconds: it is sent again at 375, 625, … 1875 ms.
  test("are sent again while none come, in the rhythm that was said", async () => {
    vi.useFakeTimers();
    const picture = new Picture({ timestamp: 5_000_000 }) as unknown as VideoFrame;
    const video = await LiveVideo.make(host, picture, 4);
    let give: (result: object) => void = () => undefined;
    const read = () => new Promise<object>((resolve) => (give = resolve));
    const running = video.run({ read } as unknown as ReadableStreamDefaultReader<VideoFrame>, picture);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(of("1M").length).toBe(8);
    expect(Encoder.all[0]?.timestamps.slice(0, 3)).toEqual([5_000_000, 5_250_000, 5_500_000]);
    give({ value: new Picture({ timestamp: 7_000_000 }), done: false });
    await vi.advanceTimersByTimeAsync(370);
    expect(of("1M").length).toBe(9);
    give({ done: true });
    await running;
    vi.useRealTimers();
  });
});

test("a browser that encodes nothing gets a sentence that says so", async () => {
  Encoder.codecs = [];
  await expect(run(1)).rejects.toThrow(/Chrome, Edge or Firefox/);
});
