import { afterEach, beforeEach, expect, test, vi } from "vitest";
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
  state = "unconfigured";
  readonly #output: (image: object) => void;
  #held: number[] = [];
  #depth = 0;

  constructor({ output }: { output: (image: object) => void }) {
    this.#output = output;
  }

  configure({ codec }: { codec: string }): void {
    this.state = "configured";
    // What is still held is lost.
    this.#held = [];
    this.#depth = codec === REORDERED ? DEPTH : 0;
  }

  decode({ timestamp }: { timestamp: number }): void {
    this.#held.push(timestamp);
    this.#give(this.#depth);
  }

  flush(): Promise<void> {
    this.#give(0);
    return Promise.resolve();
  }

  #give(kept: number): void {
    this.#held.sort((one, other) => one - other);
    for (const timestamp of this.#held.splice(0, this.#held.length - kept)) {
      setTimeout(() => this.#output({ timestamp, displayWidth: 640, displayHeight: 360, close: () => undefined }), 1);
    }
  }
}

let drawn: number[];

beforeEach(() => {
  drawn = [];
  vi.useFakeTimers();
  vi.stubGlobal("VideoDecoder", Decoder);
  vi.stubGlobal("EncodedVideoChunk", Object);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function video(): Video {
  const canvas = { getContext: () => ({ drawImage: () => undefined }) } as unknown as OffscreenCanvas;
  return new Video(canvas, true, {
    rung: (name) => ({
      name,
      codec_string: "vp8",
      bitrate: 1,
      rate: { num: 25, den: 1 },
      ...(name === "copy" ? { codec_string: REORDERED, reorder_delay: REORDER_DELAY * 1_000 } : {}),
    }),
    decoded: () => undefined,
    rendered: (position) => drawn.push(position),
    decoderLost: () => undefined,
    unsupported: () => undefined,
    resized: () => undefined,
    jumpedLate: () => undefined,
  });
}

const frame = (position: number, dueAt: number): FrameRecord => ({
  kind: "frame",
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
