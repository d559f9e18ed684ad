import { describe, expect, test, vi } from "vitest";
import { capture, explain, farewell } from "../src/live/capture.ts";
import { ticketOf } from "../src/live/ticket.ts";
import { CaptureClock } from "../src/worker/capture-clock.ts";
import { qualities } from "../src/worker/publish-ladder.ts";

describe("the ticket", () => {
  const token = "0123456789abcdef0123456789abcdef";
  const key = "ab".repeat(32);

  test("is the link's token and a secret that follows from it and from the key that signs", async () => {
    const first = await ticketOf(`#${token}`, key);
    // printf 'namecast-ticket 0123456789abcdef0123456789abcdef abab…' | sha256sum
    expect(first).toBe(`${token}b3af9bd35af3fdf8e888c6c8ffd6c3de`);
    expect(await ticketOf(`#${token}`, key)).toBe(first);
    expect(await ticketOf(`#${token}`, "cd".repeat(32))).not.toBe(first);
    expect((await ticketOf(`#${"0".repeat(32)}`, key))?.slice(32)).not.toBe(first?.slice(32));
  });

  test("is none where the link has none", async () => {
    expect(await ticketOf("", key)).toBeUndefined();
    expect(await ticketOf(`#${token}0`, key)).toBeUndefined();
  });
});

describe("the clock of captured media", () => {
  // Frames of 40 ms whose timestamps begin at 7 s; they arrive 5 ms later at best, by a clock that reads 100 there.
  test("counts from the quickest arrival", () => {
    const clock = new CaptureClock();
    expect(clock.capturedAt(7_000_000, 100 + 25)).toBe(125);
    expect(clock.capturedAt(7_040_000, 140 + 5)).toBe(145);
    expect(clock.capturedAt(7_080_000, 180 + 60)).toBe(185);
  });

  // The device's clock is slow: what was quickest long ago counts no more after two windows of 5 s.
  test("follows a clock that drifts", () => {
    const clock = new CaptureClock();
    clock.capturedAt(0, 100);
    for (let at = 0; at <= 15_000; at += 1_000) {
      clock.capturedAt(at * 1_000, at + 130);
    }
    expect(clock.capturedAt(16_000_000, 16_130)).toBe(16_130);
  });
});

test("there are three qualities, with even sides", () => {
  expect(qualities(1_280, 720).map(({ name, width, height }) => [name, width, height])).toEqual([
    ["2M", 1_280, 720],
    ["500k", 640, 360],
    ["250k", 640, 360],
  ]);
  expect(qualities(641, 359).map(({ width, height }) => [width, height])).toEqual([
    [642, 360],
    [320, 180],
    [320, 180],
  ]);
  expect(qualities(20, 18)[1]).toMatchObject({ width: 16, height: 16 });
});

test("what is missing is said with what to do", () => {
  const refused = Object.assign(new Error("x"), { name: "NotAllowedError" });
  expect(explain(refused, { picture: "camera", microphone: true })).toMatch(/Allow it/);
  const none = Object.assign(new Error("x"), { name: "NotFoundError" });
  expect(explain(none, { picture: "camera", microphone: false })).toMatch(/no camera\. Plug one in/);
});

test("of several devices those are named that there are none of", async () => {
  const mediaDevices = {
    getUserMedia: () => Promise.reject(Object.assign(new Error("x"), { name: "NotFoundError" })),
    enumerateDevices: () => Promise.resolve([{ kind: "videoinput" }]),
  };
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("navigator", { mediaDevices });
  for (const name of ["VideoEncoder", "AudioEncoder", "MediaStreamTrackProcessor"]) {
    vi.stubGlobal(name, Object);
  }
  await expect(capture({ picture: "camera", microphone: true })).rejects.toThrow("There is no microphone. Plug one in");
  await expect(capture({ picture: "screen", microphone: false })).rejects.toThrow("This browser cannot share a screen");
  expect(farewell("video", "camera")).toMatch(/^The camera is gone/);
  vi.unstubAllGlobals();
});
