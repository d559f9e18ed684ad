import { expect, test } from "vitest";
import { screenshotName } from "../src/player/screenshot.ts";

test("the name of a screenshot has the stream and the time of capture, and no separator of folders", () => {
  const time = new Date(2026, 2, 5, 6, 7, 8, 900).getTime();
  expect(screenshotName("/demo/größe", time)).toBe("demo-größe 2026-03-05 06.07.08.png");
  expect(screenshotName("/../a\\b:c", time)).toBe("..-a-b-c 2026-03-05 06.07.08.png");
  expect(screenshotName("", time)).toBe("stream 2026-03-05 06.07.08.png");
  expect(screenshotName("/demo", Number.NaN)).toMatch(/^demo \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.png$/);
});
