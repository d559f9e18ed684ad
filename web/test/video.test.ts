import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FrameRecord } from "../src/worker/records.ts";
import { Video } from "../src/worker/video.ts";

/** A decoder that gives each frame back a moment later. */
class Decoder {
  state = "unconfigured";
  readonly #output: (image: object) => void;

  constructor({ output }: { output: (image: object) => void }) {
    this.#output = output;
  }

  configure(): void {
    this.state = "configured";
  }

  decode({ timestamp }: { timestamp: number }): void {
    setTimeout(() => this.#output({ timestamp, displayWidth: 640, displayHeight: 360, close: () => undefined }), 1);
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
    rung: () => ({ codec_string: "vp8" }) as ReturnType<ConstructorParameters<typeof Video>[2]["rung"]>,
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
