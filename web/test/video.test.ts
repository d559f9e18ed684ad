import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Presented } from "../src/worker/presented.ts";
import type { FrameRecord } from "../src/worker/records.ts";
import { Video } from "../src/worker/video.ts";

/** Pictures that wait for others where they are reordered. */
const DEPTH = 2;
const REORDERED = "avc1.64000D";
/** Time from one picture to the next, in milliseconds. */
const PERIOD = 40;
/** P₄ is decoded as the second picture and shown as the fifth, two periods after it could be. */
const REORDER_DELAY = (4 - 1 + DEPTH) * PERIOD;

/** A decoder that gives each frame back a moment later; those that are reordered in their order, once `DEPTH` others have come. */
class Decoder {
  /** How long a picture takes, in milliseconds. */
  static takes = 1;
  static kinds: string[] = [];

  static isConfigSupported(): Promise<object> {
    return Promise.resolve({ supported: true });
  }

  state = "unconfigured";
  readonly #output: (image: object) => void;
  #held: number[] = [];
  #depth = 0;

  constructor({ output }: { output: (image: object) => void }) {
    this.#output = output;
  }

  configure({ codec, hardwareAcceleration }: { codec: string; hardwareAcceleration: string }): void {
    Decoder.kinds.push(hardwareAcceleration);
    this.state = "configured";
    // What is still held is lost.
    this.#held = [];
    this.#depth = codec === REORDERED ? DEPTH : 0;
  }

  decode({ timestamp }: { timestamp: number }): void {
    this.#held.push(timestamp);
    this.#give(this.#depth);
  }

  close(): void {
    this.state = "closed";
  }

  flush(): Promise<void> {
    this.#give(0);
    return Promise.resolve();
  }

  #give(kept: number): void {
    this.#held.sort((one, other) => one - other);
    for (const timestamp of this.#held.splice(0, this.#held.length - kept)) {
      setTimeout(() => this.#output({ timestamp, displayWidth: 640, displayHeight: 360, close: () => undefined }), Decoder.takes);
    }
  }
}

let drawn: number[];

/** By how much frames could be shown after their time. */
let ready: number[];
let kinds: string[];

beforeEach(() => {
  drawn = [];
  ready = [];
  kinds = [];
  Decoder.takes = 1;
  Decoder.kinds = [];
  vi.useFakeTimers();
  vi.stubGlobal("VideoDecoder", Decoder);
  vi.stubGlobal("EncodedVideoChunk", Object);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function video(): Video {
  const screen = { show: () => undefined, clear: () => undefined };
  return new Video(screen, true, new Presented(() => 0), {
    rung: (name) => ({
      name,
      codec_string: "vp8",
      bitrate: 1,
      rate: { num: 25, den: 1 },
      ...(name === "copy" ? { codec_string: REORDERED, reorder_delay: REORDER_DELAY * 1_000 } : {}),
    }),
    decoded: () => undefined,
    rendered: (position) => drawn.push(position),
    ready: (late) => ready.push(late),
    decoderLost: () => undefined,
    decoderReplaced: (kind) => kinds.push(kind),
    unsupported: () => undefined,
    resized: () => undefined,
    jumpedLate: () => undefined,
  });
}

const frame = (position: number, dueAt: number): FrameRecord => ({
  kind: "frame",
  watch: 0,
  stream: "video",
  rung: "300k",
  position,
  key: position % 100 === 0,
  decodeOnly: false,
  catchingUp: false,
  capturedAt: dueAt,
  dueAt,
  stages: { first: 0, complete: 0, verified: 0 } as unknown as FrameRecord["stages"],
  payload: new Uint8Array(1),
});

// A publisher that was started again counts from 0, while pictures from before are still on their way to the canvas.
test("a stream that goes on with lower positions is shown after what is here already", async () => {
  const playing = video();
  const now = performance.now();
  [900, 901, 902].forEach((position, index) => playing.handleFrame(frame(position, now + 100 + 10 * index)));
  playing.discontinue(false);
  [0, 1, 2].forEach((position, index) => playing.handleFrame(frame(position, now + 130 + 10 * index)));
  await vi.advanceTimersByTimeAsync(300);
  expect(drawn).toEqual([900, 901, 902, 0, 1, 2]);
});

/** A picture by its number in the order of presentation, at its position in that of decoding, shown at its time after `begins`. */
const picture = (rung: string, position: number, number: number, begins: number): FrameRecord => ({
  ...frame(position, begins + number * PERIOD),
  rung,
  key: number % 9 === 0,
});

/** A group as x264 sends it by default: nine pictures from `first` on. */
const pyramid = (first: number, begins: number): FrameRecord[] =>
  [0, 4, 2, 1, 3, 8, 6, 5, 7].map((number, at) => ({ ...picture("copy", first + at, first + number, begins), position: first + number }));

const group = (first: number, begins: number): FrameRecord[] =>
  Array.from({ length: 9 }, (_, number) => picture("300k", first + number, first + number, begins));

/** Gives each frame two periods before its picture could be shown at the earliest. */
async function play(playing: Video, frames: FrameRecord[]): Promise<void> {
  for (const record of frames) {
    playing.handleFrame(record);
    await vi.advanceTimersByTimeAsync(PERIOD);
  }
}

const numbers = (end: number): number[] => Array.from({ length: end }, (_, number) => number);

test("reordered pictures are all shown, in their order, the last ones once nothing comes any more", async () => {
  const playing = video();
  const begins = performance.now() + 200;
  await play(playing, [...pyramid(0, begins), ...pyramid(9, begins)]);
  await vi.advanceTimersByTimeAsync(400);
  expect(drawn).toEqual(numbers(16));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(drawn).toEqual(numbers(18));
  expect(playing.summary()).toMatchObject({ undecodable: 0, late: 0 });
});

test("rungs with and without reordered pictures follow each other without losing one", async () => {
  const playing = video();
  const begins = performance.now() + 200;
  await play(playing, [...group(0, begins), ...pyramid(9, begins), ...group(18, begins), ...pyramid(27, begins), ...group(36, begins)]);
  await vi.advanceTimersByTimeAsync(400);
  expect(drawn).toEqual(numbers(45));
});

test("playback goes on when the publisher's clock is set back", async () => {
  const playing = video();
  const begins = performance.now() + 200;
  const setBack = pyramid(9, begins).map((record) => ({ ...record, capturedAt: record.capturedAt - 3_000 }));
  await play(playing, [...pyramid(0, begins), ...setBack]);
  await vi.advanceTimersByTimeAsync(400);
  expect(drawn).toEqual(numbers(16));
});

test("what is here is measured to the last picture shown, not the last that came", () => {
  const playing = video();
  const begins = performance.now() + 200;
  pyramid(0, begins).forEach((record) => playing.handleFrame(record));
  expect(playing.buffered).toBeCloseTo(200 + 8 * PERIOD, 3);
});

/** `count` frames at 25 a second, which come 80 ms before their time, with a key frame every 100. */
async function playLive(playing: Video, first: number, count: number): Promise<void> {
  for (let number = first; number < first + count; number += 1) {
    playing.handleFrame(frame(number, performance.now() + 80));
    await vi.advanceTimersByTimeAsync(PERIOD);
  }
}

test.each([150, 350, 1_000])("every picture of a decoder that is %i ms late is shown", async (takes) => {
  Decoder.takes = takes;
  const playing = video();
  await playLive(playing, 0, 100);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(drawn).toEqual(numbers(100));
  expect(ready).toEqual(Array.from({ length: 100 }, () => takes - 80));
});

// Two seconds of frames are fed. When all have come out, the next key frame is 200.
test("a decoder that falls behind catches up and goes on at a key frame, and all its pictures are shown", async () => {
  Decoder.takes = 3_000;
  const playing = video();
  await playLive(playing, 0, 350);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(drawn).toEqual([...numbers(51), ...numbers(51).map((number) => 200 + number)]);
  expect(playing.summary().decoderErrors).toBe(0);
});

test("a decoder that gives nothing back is replaced", async () => {
  Decoder.takes = 1e9;
  const playing = video();
  await playLive(playing, 0, 140);
  expect(playing.summary().decoderErrors).toBe(1);
  Decoder.takes = 1;
  await playLive(playing, 200, 10);
  expect(drawn).toEqual([200, 201, 202, 203, 204, 205, 206, 207, 208, 209].slice(0, drawn.length));
  expect(drawn.length).toBeGreaterThanOrEqual(8);
});

test("more playout time than decoded frames may wait for loses none", async () => {
  const playing = video();
  for (let number = 0; number < 60; number += 1) {
    playing.handleFrame(frame(number, performance.now() + 1_500));
    await vi.advanceTimersByTimeAsync(PERIOD);
    expect(playing.display.queued).toBeLessThanOrEqual(13);
  }
  await vi.advanceTimersByTimeAsync(2_000);
  expect(drawn).toEqual(numbers(60));
});

test("a decoder that is late for three seconds gives way to the other kind at a key frame, once", async () => {
  Decoder.takes = 200;
  const playing = video();
  await playLive(playing, 0, 60);
  expect(kinds).toEqual([]);
  await playLive(playing, 60, 30);
  expect(kinds).toEqual(["prefer-software"]);
  expect(Decoder.kinds).toEqual(["no-preference"]);
  await playLive(playing, 90, 200);
  expect(Decoder.kinds).toEqual(["no-preference", "prefer-software"]);
  await vi.advanceTimersByTimeAsync(500);
  expect(drawn).toEqual(numbers(290));
});
