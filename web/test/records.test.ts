import { describe, expect, test } from "vitest";
import { readRecords, type FrameRecord } from "../src/worker/records.ts";

/** The octets that `crates/web/src/outbox.rs` expects of the same records. */
const TRANSMIT_AND_DISCONTINUITY = [7, 0, 0, 0, 1, 2, 1, 0, 0, 0xaa, 0xbb, 7, 0, 0, 0, 3, 5, 0, 0, 0, 1, 1];

function f64(value: number): number[] {
  return [...new Uint8Array(new Float64Array([value]).buffer)];
}

function f32(value: number): number[] {
  return [...new Uint8Array(new Float32Array([value]).buffer)];
}

const FRAME = [51, 0, 0, 0, 2, 2, 1, 0, 0, 0, 1, 2, 0x31, 0x4d, ...f64(3), ...f64(1.5), ...f64(2.5), ...f32(4), ...f32(0), ...f32(0), ...f32(0), 9];

describe("readRecords", () => {
  test("reads a batch of several", () => {
    expect([...readRecords(Uint8Array.from(TRANSMIT_AND_DISCONTINUITY))]).toEqual([
      { kind: "transmit", face: 258, octets: Uint8Array.of(0xaa, 0xbb) },
      { kind: "discontinuity", watch: 5, stream: "audio", jump: true },
    ]);
  });

  test("reads a frame", () => {
    expect([...readRecords(Uint8Array.from(FRAME))]).toEqual([
      {
        kind: "frame",
        watch: 258,
        stream: "video",
        key: true,
        decodeOnly: false,
        catchingUp: false,
        rung: "1M",
        position: 3,
        capturedAt: 1.5,
        dueAt: 2.5,
        stages: { encode: 4, publish: 0, network: 0, reassembly: 0 },
        payload: Uint8Array.of(9),
      },
    ]);
  });

  test("reads the flags of a frame", () => {
    const flags = (octet: number) => {
      const [record] = [...readRecords(Uint8Array.from(FRAME.with(10, octet)))] as FrameRecord[];
      return [record?.key, record?.decodeOnly, record?.catchingUp];
    };
    expect([0, 1, 2, 4, 6].map(flags)).toEqual([
      [false, false, false],
      [true, false, false],
      [false, true, false],
      [false, false, true],
      [false, true, true],
    ]);
  });

  test("reads an event", () => {
    const json = [...new TextEncoder().encode('{"type":"step","text":"ä"}')];
    expect([...readRecords(Uint8Array.from([json.length + 1, 0, 0, 0, 4, ...json]))]).toEqual([
      { kind: "event", event: { type: "step", text: "ä" } },
    ]);
  });

  test("refuses what is cut short or unknown, wherever it is cut", () => {
    for (let length = 1; length < FRAME.length; length += 1) {
      expect(() => [...readRecords(Uint8Array.from(FRAME.slice(0, length)))]).toThrow(RangeError);
    }
    expect(() => [...readRecords(Uint8Array.of(1, 0, 0, 0, 99))]).toThrow("kind 99");
    expect(() => [...readRecords(Uint8Array.of(0, 0, 0, 0))]).toThrow(RangeError);
    // A record whose name is longer than the record.
    expect(() => [...readRecords(Uint8Array.of(8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 200))]).toThrow(RangeError);
  });
});
