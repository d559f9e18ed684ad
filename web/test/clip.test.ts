import { expect, test } from "vitest";
import { avcConfiguration, unitsOf, withLengths } from "../src/worker/annex-b.ts";
import { ClipBuffer } from "../src/worker/clip-buffer.ts";
import { decodingTimes } from "../src/worker/clip.ts";
import type { FrameRecord } from "../src/worker/records.ts";

/** A delimiter, parameter sets and a picture; start codes of three and of four octets. */
const KEY = Uint8Array.of(0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x42, 0xe0, 0x1e, 5, 0, 0, 1, 0x68, 6, 0, 0, 1, 0x65, 7, 0, 8);

test("units stand between start codes", () => {
  expect(unitsOf(KEY).map((unit) => [...unit])).toEqual([[9, 0xf0], [0x67, 0x42, 0xe0, 0x1e, 5], [0x68, 6], [0x65, 7, 0, 8]]);
  expect(unitsOf(Uint8Array.of(0, 0, 1))).toEqual([]);
  expect(unitsOf(new Uint8Array())).toEqual([]);
});

test("MP4 has pictures with lengths, and parameter sets apart", () => {
  expect([...withLengths(KEY)]).toEqual([0, 0, 0, 4, 0x65, 7, 0, 8]);
  // Version, profile, compatibility, level, lengths of four, one set of five octets, one of two.
  expect([...avcConfiguration(KEY)]).toEqual([1, 0x42, 0xe0, 0x1e, 0xff, 0xe1, 0, 5, 0x67, 0x42, 0xe0, 0x1e, 5, 1, 0, 2, 0x68, 6]);
  expect(() => avcConfiguration(Uint8Array.of(0, 0, 1, 0x65))).toThrow("no parameter sets");
});

test("decoding times rise, and none is after its picture's own", () => {
  // I0 P4 B2 B1 B3 P8, as shown at 0, 160, 80, 40, 120, 320 ms: B1 is decoded fourth and shown second, so all are decoded 80 ms earlier.
  const shown = [0, 160, 80, 40, 120, 320];
  expect(decodingTimes(shown)).toEqual([-80, -40, 0, 40, 80, 240]);
  expect(decodingTimes([10, 20, 30])).toEqual([10, 20, 30]);
  // The naive twin: the least delay with which rising times precede all pictures.
  let seed = 7;
  for (let turn = 0; turn < 200; turn += 1) {
    const times = Array.from({ length: 20 }, (_, index) => index * 40).map((time) => ({ time, order: time + ((seed = (seed * 48_271) % 2_147_483_647) % 200) }));
    const decoded = times.toSorted((a, b) => a.order - b.order).map(({ time }) => time);
    const found = decodingTimes(decoded);
    const isValid = (delay: number): boolean => decoded.every((time, index) => index * 40 - delay <= time);
    expect(isValid(-(found[0] as number))).toBe(true);
    expect(found[0] === 0 || !isValid(-(found[0] as number) - 1)).toBe(true);
  }
});

/** A record of `octets` octets captured at a time. */
function record(stream: "video" | "audio", capturedAt: number, key: boolean, rung = "1M", octets = 10): FrameRecord {
  return { kind: "frame", watch: 0, stream, rung, key, capturedAt, position: 0, decodeOnly: false, catchingUp: false, dueAt: 0, stages: { encode: 0, publish: 0, network: 0, reassembly: 0 }, payload: new Uint8Array(octets) };
}

test("a clip begins with the last key picture that is half a minute old", () => {
  const buffer = new ClipBuffer();
  // A key picture each 2 s, two pictures and one packet of sound a second, for 40.5 s.
  for (let at = 0; at <= 40_500; at += 500) {
    buffer.handle(record("video", at, at % 2_000 === 0));
    if (at % 1_000 === 0) {
      buffer.handle(record("audio", at, true));
    }
  }
  const { video, audio } = buffer.source;
  expect([video[0], video.at(-1)].map((kept) => kept?.capturedAt)).toEqual([10_000, 40_500]);
  expect([audio[0], audio.at(-1)].map((kept) => kept?.capturedAt)).toEqual([10_000, 40_000]);
});

test("another quality, and a jump, begin a new clip", () => {
  const buffer = new ClipBuffer();
  buffer.handle(record("video", 0, false));
  expect(buffer.source.video).toEqual([]);
  buffer.handle(record("video", 40, true));
  buffer.handle(record("audio", 50, true));
  buffer.handle(record("video", 80, true, "200k"));
  expect(buffer.source.video.map(({ capturedAt }) => capturedAt)).toEqual([80]);
  expect(buffer.source.audio).toEqual([]);
  buffer.discontinue({ kind: "discontinuity", watch: 0, stream: "video", jump: false });
  expect(buffer.source.video.length).toBe(1);
  buffer.discontinue({ kind: "discontinuity", watch: 0, stream: "video", jump: true });
  expect(buffer.source.video).toEqual([]);
});

test("what is kept is bounded", () => {
  const buffer = new ClipBuffer();
  for (let at = 0; at < 60; at += 1) {
    buffer.handle(record("video", at, at % 10 === 0, "1M", 1_000_000));
  }
  // 40 MB: from the key picture at 20 on. One group that is larger is dropped.
  expect(buffer.source.video[0]?.capturedAt).toBe(20);
  for (let at = 60; at < 110; at += 1) {
    buffer.handle(record("video", at, at === 60, "1M", 1_000_000));
  }
  expect(buffer.source.video.length).toBeLessThanOrEqual(40);
});
