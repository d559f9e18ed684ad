import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Steer } from "../src/shared/messages.ts";
import { fragmentType, FragmentVideo } from "../src/worker/fragment-video.ts";
import { fragment, initSegment, TIMESCALE } from "../src/worker/mp4.ts";
import { Presented } from "../src/worker/presented.ts";
import type { Catalogue, FrameRecord } from "../src/worker/records.ts";

/** Time from one picture to the next, in milliseconds, and from capture to showing. */
const [PERIOD, DELAY] = [40, 400];
/** Capture of the first picture, in milliseconds since 1970. */
const BEGIN = 1_790_000_000_000;
/** Parameter sets and a picture of H.264 with start codes, and a picture that depends on it. */
const KEY = Uint8Array.of(0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0, 0, 0, 1, 0x68, 0xce, 0, 0, 0, 1, 0x65, 1, 2, 3);
const DELTA = Uint8Array.of(0, 0, 0, 1, 0x41, 9);

interface Segment {
  boxes: string[];
  /** Of a media segment: where it begins, in seconds, and how long each picture is shown, in milliseconds. */
  start?: number;
  durations?: number[];
}

let segments: Segment[];
/** Whether the browser takes what is appended; else nothing is ever in its buffer. */
let takes: boolean;

/** A browser's source buffer, which reads the times of what is appended. */
class Buffer extends EventTarget {
  updating = false;

  appendBuffer(octets: Uint8Array<ArrayBuffer>): void {
    segments.push(read(octets));
    this.updating = true;
    if (takes) {
      setTimeout(() => {
        this.updating = false;
        this.dispatchEvent(new Event("updateend"));
      });
    }
  }

  remove(): void {
    throw new Error("nothing is old enough");
  }
}

class Source extends EventTarget {
  static readonly canConstructInDedicatedWorker = true;
  static isTypeSupported = (type: string): boolean => type.includes("avc1");
  readonly handle = {};
  duration = 0;

  constructor() {
    super();
    setTimeout(() => this.dispatchEvent(new Event("sourceopen")));
  }

  addSourceBuffer(): Buffer {
    return new Buffer();
  }
}

/** The boxes of a segment, and the times in it. */
function read(octets: Uint8Array<ArrayBuffer>): Segment {
  const view = new DataView(octets.buffer, octets.byteOffset);
  const name = (at: number): string => String.fromCharCode(...octets.subarray(at + 4, at + 8));
  const boxes: string[] = [];
  for (let at = 0; at < octets.length; at += view.getUint32(at)) {
    boxes.push(name(at));
  }
  if (boxes[0] !== "moof") {
    return { boxes };
  }
  // moof 8, mfhd 16, traf 8, tfhd 16, then tfdt and trun.
  const [tfdt, trun] = [48, 68];
  expect([name(tfdt), name(trun)]).toEqual(["tfdt", "trun"]);
  const count = view.getUint32(trun + 12);
  const offset = view.getUint32(trun + 16);
  expect(name(offset - 8)).toBe("mdat");
  const durations = Array.from({ length: count }, (_, index) => (view.getUint32(trun + 20 + 12 * index) * 1_000) / TIMESCALE);
  return { boxes, start: Number(view.getBigUint64(tfdt + 12)) / TIMESCALE, durations };
}

let steers: Steer[];
let rendered: number[];
let lost: string[];
let failed: string[];
let presented: Presented;

function video(): FragmentVideo {
  presented = new Presented(() => 0);
  return new FragmentVideo("video/mp4", true, presented, {
    rung: (name) => ({ name, bitrate: 1, width: 640, height: 360, rate: { num: 25, den: 1 } }),
    decoded: () => undefined,
    rendered: (position) => rendered.push(position),
    ready: () => undefined,
    decoderLost: (reason) => lost.push(reason),
    steer: (steer) => steers.push(steer),
    failed: (reason) => failed.push(reason),
  });
}

/** A picture that was captured as number `position`, and is due `DELAY` after that; time zero is its first capture. */
function record(position: number, key: boolean, more: Partial<FrameRecord> = {}): FrameRecord {
  const stages = { encode: 0, publish: 0, network: 0, reassembly: 0 };
  return {
    kind: "frame",
    watch: 0,
    stream: "video",
    rung: "1M",
    position,
    key,
    decodeOnly: false,
    catchingUp: false,
    capturedAt: BEGIN + position * PERIOD,
    dueAt: position * PERIOD + DELAY,
    stages,
    payload: key ? KEY : DELTA,
    ...more,
  };
}

/** Takes pictures `from` to `to`, each as it is captured; every 25th stands alone. */
async function play(playing: FragmentVideo, from: number, to: number): Promise<void> {
  for (let position = from; position < to; position += 1) {
    await vi.advanceTimersByTimeAsync(position * PERIOD - performance.now());
    playing.handleFrame(record(position, position % 25 === 0));
  }
  await vi.advanceTimersByTimeAsync(5);
}

/** The `<video>` presents the picture at `time` of the media at the worker's `at`. */
function present(playing: FragmentVideo, time: number, at: number): void {
  playing.handlePresented({ number: steers.length, at: performance.timeOrigin + at, time, isHeld: false });
}

beforeEach(() => {
  [segments, steers, rendered, lost, failed, takes] = [[], [], [], [], [], true];
  vi.useFakeTimers({ now: BEGIN });
  vi.stubGlobal("MediaSource", Source);
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("MP4", () => {
  test("times of a fragment are in ticks of 90 kHz, beyond 32 bits, too", () => {
    const samples = [{ octets: DELTA, key: true, duration: 3_600 }, { octets: DELTA, key: false, duration: 1_800 }];
    // 2^33 ticks are 26.5 hours.
    expect(read(fragment(1, 2 ** 33, samples))).toEqual({ boxes: ["moof", "mdat"], start: 2 ** 33 / TIMESCALE, durations: [40, 20] });
  });

  test("an initialisation segment has the size and the decoder's configuration", () => {
    const octets = initSegment({ width: 640, height: 360, avcC: Uint8Array.of(1, 0x42, 0xc0, 0x1e) });
    expect(read(octets).boxes).toEqual(["ftyp", "moov"]);
    const text = characters(octets);
    const entry = text.indexOf("avc1") + 4;
    // 24 octets of sample entry go before width and height.
    expect([...octets.subarray(entry + 24, entry + 28)]).toEqual([2, 128, 1, 104]);
    const config = text.indexOf("avcC") + 4;
    expect([...octets.subarray(config, config + 4)]).toEqual([1, 0x42, 0xc0, 0x1e]);
  });
});

/** Octets as characters. */
const characters = (octets: Uint8Array): string => String.fromCharCode(...octets);

describe("pictures as segments", () => {
  test("are packed into fragments that follow each other, each picture as long as until the next", async () => {
    const playing = video();
    await play(playing, 0, 11);
    const media = segments.filter(({ boxes }) => boxes[0] === "moof");
    // The first picture comes at once, then four at a time: they span 125 ms with the one that ends them.
    expect(media.map(({ durations }) => durations?.map(Math.round))).toEqual([[40], [40, 40, 40, 40], [40, 40, 40, 40]]);
    const [first, second, third] = media.map(({ start }) => start ?? NaN) as [number, number, number];
    expect(second - first).toBeCloseTo(0.04, 4);
    expect(third - second).toBeCloseTo(0.16, 4);
  });

  test("are shown when they are due: playback begins then, and its speed works off an error", async () => {
    const playing = video();
    await play(playing, 0, 20);
    expect(steers).toHaveLength(1);
    expect(steers[0]).toMatchObject({ number: 1, to: 0.5, rate: 1 });
    expect((steers[0] as Steer).at - performance.timeOrigin).toBeCloseTo(DELAY, 0);
    // Picture 5 is at 0.5 + 5 · 0.04 s and due at 600 ms; it is presented 50 ms late.
    present(playing, 0.7, 650);
    expect(rendered).toEqual([0, 1, 2, 3, 4, 5]);
    expect(steers.at(-1)).toMatchObject({ number: 2, rate: 1.05 });
    // Then 5 ms early, which is in step.
    present(playing, 0.86, 755);
    expect(steers.at(-1)).toMatchObject({ number: 3, rate: 1 });
    expect(presented.counts).toMatchObject({ shown: 10, freezes: 0 });
  });

  test("go to the picture that is due where playback is far behind, and wait where it is far ahead", async () => {
    const playing = video();
    await play(playing, 0, 30);
    present(playing, 0.7, 1_000);
    // 400 ms behind: 0.7 + 0.4.
    expect(steers.at(-1)?.to).toBeCloseTo(1.1, 3);
    playing.shift(500);
    present(playing, 1.14, 1_040);
    const steer = steers.at(-1) as Steer;
    expect(steer.to).toBeUndefined();
    // Picture 16 is due at 1540 ms now: half a second is to be waited from now, 1165 ms.
    expect(steer.at - performance.timeOrigin).toBeCloseTo(performance.now() + 500, 0);
  });

  test("continue elsewhere after a jump, and old reports of the page mean nothing", async () => {
    const playing = video();
    await play(playing, 0, 10);
    playing.discontinue(true);
    playing.handleFrame(record(11, false));
    expect(playing.summary().undecodable).toBe(1);
    // An hour earlier; the first is only decoded.
    const past = { capturedAt: BEGIN - 3_600_000, dueAt: 700, decodeOnly: true };
    playing.handleFrame(record(100, true, past));
    playing.handleFrame(record(101, false, { ...past, capturedAt: past.capturedAt + PERIOD, dueAt: 740, decodeOnly: false }));
    playing.handleFrame(record(102, false, { ...past, capturedAt: past.capturedAt + 2 * PERIOD, dueAt: 780, decodeOnly: false }));
    await vi.advanceTimersByTimeAsync(5);
    expect(steers).toHaveLength(2);
    expect((steers[1] as Steer).at - performance.timeOrigin).toBeCloseTo(740, 0);
    playing.handlePresented({ number: 1, at: performance.timeOrigin + 500, time: 5, isHeld: false });
    expect(rendered).toEqual([]);
    present(playing, steers[1]?.to ?? 0, 740);
    expect(rendered).toEqual([101]);
  });

  test("last until the next one over a short pause, and continue elsewhere after a long one", async () => {
    const playing = video();
    await play(playing, 0, 2);
    // 25 periods are a second, 80 more than three.
    for (const position of [26, 27, 107, 108]) {
      playing.handleFrame(record(position, position === 26 || position === 107));
      await vi.advanceTimersByTimeAsync(5);
    }
    const durations = segments.flatMap((segment) => segment.durations ?? []).map(Math.round);
    // 0; 1, which lasts until 26; 26; 27, after which playback goes to 107, which comes at once.
    expect(durations).toEqual([40, 1_000, 40, 40, 40]);
    expect(steers).toHaveLength(2);
    expect((steers[1] as Steer).at - performance.timeOrigin).toBeCloseTo(107 * PERIOD + DELAY, 0);
  });

  test("begin anew with a key frame where the browser takes nothing", async () => {
    takes = false;
    const playing = video();
    await play(playing, 0, 300);
    expect(lost.length).toBeGreaterThan(0);
    expect(segments.length).toBeLessThanOrEqual(1);
  });

  test("of another size begin with another initialisation segment", async () => {
    const playing = video();
    await play(playing, 0, 5);
    const other = Uint8Array.from(KEY);
    other[7] = 0x1f;
    playing.handleFrame(record(5, true, { payload: other }));
    playing.handleFrame(record(6, false));
    await vi.advanceTimersByTimeAsync(50);
    expect(segments.filter(({ boxes }) => boxes[0] === "ftyp")).toHaveLength(2);
  });

  test("are not made of what is reordered, or of another codec", () => {
    const catalogue = (codec: string, more = {}): Catalogue => ({
      version: 1,
      streams: [{ name: "video", kind: "video", codec, rungs: [{ name: "1M", bitrate: 1, codec_string: codec === "h264" ? "avc1.42c01e" : "vp8", rate: { num: 25, den: 1 }, ...more }] }],
    });
    expect(fragmentType(catalogue("h264"))).toBe('video/mp4; codecs="avc1.42c01e"');
    expect([fragmentType(catalogue("vp8")), fragmentType(catalogue("h264", { reorder_delay: 80_000 })), fragmentType(undefined)]).toEqual([undefined, undefined, undefined]);
  });
});
