// What stands for a camera in tabs of tests: pictures that carry the burned-in clock.

import { readFile } from "node:fs/promises";
import path from "node:path";

const CLOCK = (await readFile(path.join(import.meta.dirname, "clock.js"), "utf8")).replaceAll(/^export /gm, "");

/** Script with `clockCanvas()`, which makes a canvas of 640 × 360, and `drawClock(canvas, now, number)`. */
export const CLOCK_PICTURE = `
  ${CLOCK}
  function clockCanvas() {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [640, 360];
    return canvas;
  }
  function drawClock(canvas, now, number) {
    const context = canvas.getContext("2d");
    context.fillStyle = "hsl(" + (number * 3) % 360 + " 60% 40%)";
    context.fillRect(0, 0, 640, 360);
    clockRows(now, number).forEach((row, y) => row.forEach((bit, x) => {
      context.fillStyle = bit ? "#fff" : "#000";
      context.fillRect(x * 16, y * 16, 16, 16);
    }));
  }`;
