import { expect, test } from "vitest";
import { TrackScreen } from "../src/worker/screen.ts";

interface Picture extends VideoFrame {
  readonly number: number;
  isClosed: boolean;
}

function picture(number: number): Picture {
  const made = { number, isClosed: false, close: () => (made.isClosed = true) };
  return made as unknown as Picture;
}

/** A track that accepts each picture when the test says so, or refuses it. */
function slowTrack() {
  const taken: number[] = [];
  const waiting: { take: () => void; refuse: () => void }[] = [];
  const writable = new WritableStream<Picture>({
    write: (image) =>
      new Promise((resolve, reject) => {
        const take = (): void => {
          taken.push(image.number);
          image.close();
          resolve();
        };
        waiting.push({ take, refuse: () => reject(new Error("refused")) });
      }),
  });
  return { writable: writable as WritableStream<VideoFrame>, taken, waiting };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

test("a track that is slow gets the newest picture, and those between are closed", async () => {
  const { writable, taken, waiting } = slowTrack();
  const screen = new TrackScreen(writable);
  const pictures = [0, 1, 2, 3].map(picture);
  pictures.forEach((each) => screen.show(each));
  await settled();
  expect(waiting.length).toBe(1);
  expect(pictures.map(({ isClosed }) => isClosed)).toEqual([false, true, true, false]);
  waiting[0]?.take();
  await settled();
  waiting[1]?.take();
  await settled();
  expect(taken).toEqual([0, 3]);
  expect(pictures.every(({ isClosed }) => isClosed)).toBe(true);
});

test("a track that has ended takes no picture, and all are closed", async () => {
  const { writable, waiting } = slowTrack();
  const screen = new TrackScreen(writable);
  const pictures = [0, 1, 2].map(picture);
  screen.show(pictures[0] as Picture);
  await settled();
  waiting[0]?.refuse();
  await settled();
  screen.show(pictures[1] as Picture);
  screen.show(pictures[2] as Picture);
  await settled();
  expect(pictures.every(({ isClosed }) => isClosed)).toBe(true);
});

test("a picture that waits is closed when there is nothing to show any more", async () => {
  const { writable, taken, waiting } = slowTrack();
  const screen = new TrackScreen(writable);
  const pictures = [0, 1].map(picture);
  pictures.forEach((each) => screen.show(each));
  screen.clear();
  expect(pictures[1]?.isClosed).toBe(true);
  await settled();
  waiting[0]?.take();
  await settled();
  expect(taken).toEqual([0]);
});
