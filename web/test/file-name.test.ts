import { expect, test } from "vitest";
import { fileName } from "../src/player/file-name.ts";

test("the name of a file has the stream and the time, and no separator of folders", () => {
  const time = new Date(2026, 2, 5, 6, 7, 8, 900).getTime();
  expect(fileName("/demo/größe", time, "png")).toBe("demo-größe 2026-03-05 06.07.08.png");
  expect(fileName("/../a\\b:c", time, "mp4")).toBe("..-a-b-c 2026-03-05 06.07.08.mp4");
  expect(fileName("", time, "png")).toBe("stream 2026-03-05 06.07.08.png");
  expect(fileName("/demo", Number.NaN, "png")).toMatch(/^demo \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.png$/);
});
