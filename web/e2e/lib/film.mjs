// A film that is published as it is, so that nothing is encoded while a test runs.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

/** Encodes 8 s of a test picture, 320 × 180 at 15 fps, with a tone. Returns the file. */
export async function encodeFilm(directory) {
  const file = path.join(directory, "film.mp4");
  const input = "-f lavfi -i testsrc2=size=320x180:rate=15 -f lavfi -i sine=frequency=440:sample_rate=48000";
  const video = "-c:v libx264 -preset ultrafast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -g 15 -keyint_min 15 -sc_threshold 0 -b:v 200k";
  await promisify(execFile)("ffmpeg", ["-loglevel", "error", ...`${input} ${video} -c:a libopus -b:a 64k -t 8`.split(" "), file]);
  return file;
}
