import { describe, expect, test } from "vitest";
import { FrameQueue } from "../src/worker/schedule.ts";

class Frame {
  closed = 0;
  constructor(public dueAt: number) {}
  close(): void {
    this.closed += 1;
  }
}

describe("FrameQueue", () => {
  test("hands out frames in order of their time, whatever the order they came in", () => {
    const queue = new FrameQueue<Frame>(8);
    for (const dueAt of [33, 0, 66]) {
      queue.push(new Frame(dueAt));
    }
    expect(queue.nextAt()).toBe(0);
    expect([queue.take(0), queue.take(33), queue.take(66)].map((frame) => frame?.dueAt)).toEqual([0, 33, 66]);
    expect(queue.take(1_000)).toBeUndefined();
    expect(queue.overtaken).toBe(0);
  });

  test("gives nothing before its time", () => {
    const queue = new FrameQueue<Frame>(8);
    queue.push(new Frame(10));
    expect(queue.take(9.9)).toBeUndefined();
    expect(queue.take(10)?.dueAt).toBe(10);
  });

  test("shows the newest of those due, and closes the others once", () => {
    const queue = new FrameQueue<Frame>(8);
    const frames = [0, 33, 66, 100].map((dueAt) => new Frame(dueAt));
    frames.forEach((frame) => queue.push(frame));
    expect(queue.take(70)).toBe(frames[2]);
    expect(frames.map((frame) => frame.closed)).toEqual([1, 1, 0, 0]);
    expect(queue.overtaken).toBe(2);
    expect(queue.length).toBe(1);
  });

  test("stays within its bound by closing the oldest", () => {
    const queue = new FrameQueue<Frame>(3);
    const frames = [0, 33, 66, 100, 133].map((dueAt) => new Frame(dueAt));
    frames.forEach((frame) => queue.push(frame));
    expect(queue.length).toBe(3);
    expect(frames.map((frame) => frame.closed)).toEqual([1, 1, 0, 0, 0]);
    expect(queue.nextAt()).toBe(66);
  });

  test("moves what waits when the target moves", () => {
    const queue = new FrameQueue<Frame>(8);
    queue.push(new Frame(100));
    queue.push(new Frame(133));
    queue.shift(300);
    expect(queue.take(399)).toBeUndefined();
    expect(queue.take(400)?.dueAt).toBe(400);
    expect(queue.nextAt()).toBe(433);
  });

  test("closes everything when cleared", () => {
    const queue = new FrameQueue<Frame>(8);
    const frames = [1, 2].map((dueAt) => new Frame(dueAt));
    frames.forEach((frame) => queue.push(frame));
    queue.clear();
    expect(frames.map((frame) => frame.closed)).toEqual([1, 1]);
    expect(queue.nextAt()).toBeUndefined();
  });
});
