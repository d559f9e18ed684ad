// What stands for a camera: a file that Chromium plays as one, again and again, and what pictures of it look like.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { clockHeight, clockRows, readClock } from "./clock.js";

const [WIDTH, HEIGHT] = [640, 360];
const FRAMES = 30;
/** Time that the first picture's clock shows; each of the others shows one millisecond more. */
const TIME = 1_000_000;
const CELL = WIDTH / 40;

/** Flags for a browser with that file as its camera and beeps as its microphone, whose user shares the tab of this title when a page requests a screen. */
export const captureFlags = (file, shared) => ["--use-fake-device-for-media-stream", `--use-file-for-fake-video-capture=${file}`, `--auto-select-tab-capture-source-by-title=${shared}`];

/** Writes a second of pictures as YUV4MPEG2. Each has a clock, and below it something blue on the left and something red on the right. */
export async function writeCamera(file) {
  const pictures = Array.from({ length: FRAMES }, (_, frame) => [Buffer.from("FRAME\n"), picture(frame)]);
  await writeFile(file, Buffer.concat([Buffer.from(`YUV4MPEG2 W${WIDTH} H${HEIGHT} F30:1 Ip A1:1 C420jpeg\n`), ...pictures.flat()]));
}

function picture(frame) {
  const planes = Buffer.alloc((WIDTH * HEIGHT * 3) / 2, 128);
  clockRows(TIME + frame, frame).forEach((row, y) =>
    row.forEach((bit, x) => {
      for (let line = 0; line < CELL; line += 1) {
        const from = (y * CELL + line) * WIDTH + x * CELL;
        planes.fill(bit ? 235 : 16, from, from + CELL);
      }
    }),
  );
  for (let line = WIDTH * HEIGHT; line < planes.length; line += WIDTH / 2) {
    const isBlue = line < (WIDTH * HEIGHT * 5) / 4;
    planes.fill(isBlue ? 200 : 56, line, line + WIDTH / 4).fill(isBlue ? 56 : 200, line + WIDTH / 4, line + WIDTH / 2);
  }
  return planes;
}

/** Whether an image, as RGBA, is blue on the left and red on the right of its last rows. */
export function isBlueAndRed({ width, height, data }) {
  const [left, right] = [1, 3].map((quarter) => {
    const at = 4 * ((height - 2) * width + Math.floor((quarter * width) / 4));
    return data[at + 2] - data[at];
  });
  return left > 100 && right < -100;
}

/**
 * Reads the number of the camera's picture off an image, as RGBA.
 *
 * @returns undefined if it is none of them: its clock or its colours are wrong
 */
export function pictureNumber(image) {
  const clock = readClock(image);
  const isOurs = clock !== null && clock.time === TIME + clock.frame && clock.frame < FRAMES && isBlueAndRed(image);
  return isOurs ? clock.frame : undefined;
}

/** The number of each picture of a film, as `pictureNumber` reads it. */
export async function pictureNumbers(film) {
  // The clock, and as much of what is below it.
  const kept = 3 * clockHeight(WIDTH);
  const filters = `scale=${WIDTH}:${HEIGHT},crop=${WIDTH}:${kept}:0:0`;
  const options = `-vf ${filters} -fps_mode passthrough -f rawvideo -pix_fmt rgba -`;
  const program = spawn("ffmpeg", ["-loglevel", "fatal", "-i", film, ...options.split(" ")], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(program, "close");
  const parts = await program.stdout.toArray();
  const [code] = await ended;
  if (code !== 0) {
    throw new Error(`ffmpeg does not read ${film}`);
  }
  const all = Buffer.concat(parts);
  const size = 4 * WIDTH * kept;
  return Array.from({ length: Math.floor(all.length / size) }, (_, at) => pictureNumber({ width: WIDTH, height: kept, data: all.subarray(at * size, (at + 1) * size) }));
}
