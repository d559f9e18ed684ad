// What is shown has the colours of the source, whichever element shows it and whatever way the film writes colours.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openPage, startBrowser } from "./lib/browser.mjs";
import { findBinary, makeHome, startServer } from "./lib/processes.mjs";

/** Patches of the picture, left to right: two greys, and colours of which matrices make different ones. */
const PATCHES = [
  [16, 16, 16],
  [128, 128, 128],
  [235, 235, 235],
  [180, 40, 40],
  [40, 160, 60],
  [50, 70, 190],
  [200, 180, 60],
  [90, 170, 180],
];
const [WIDTH, HEIGHT] = [640, 360];
/** Largest difference in any channel, of 255: to the source, and to the browser's own player. Without a graphics processor, Chromium converts BT.709 with a blue that is off by 6. */
const MAX_DIFFERENCE = 2;
/** How films write colours: matrix, range, and the names that H.264 gives them. */
const WAYS = [
  { name: "BT.601", matrix: "smpte170m", range: "tv", most: MAX_DIFFERENCE },
  { name: "BT.709", matrix: "bt709", range: "tv", most: 6 },
  { name: "BT.709, full range", matrix: "bt709", range: "pc", most: MAX_DIFFERENCE },
];

let binary;
let home;
let browser;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory);
});

after(async () => {
  await browser?.close();
  await home?.remove();
});

/** Encodes two seconds of the patches. */
async function encode({ matrix, range }) {
  const picture = Buffer.alloc(WIDTH * HEIGHT * 3);
  for (let at = 0; at < WIDTH * HEIGHT; at += 1) {
    picture.set(PATCHES[Math.floor(((at % WIDTH) * PATCHES.length) / WIDTH)], 3 * at);
  }
  const [source, film] = [path.join(home.directory, "patches.rgb"), path.join(home.directory, `${matrix}-${range}.mp4`)];
  await writeFile(source, picture);
  const input = `-f rawvideo -pix_fmt rgb24 -s ${WIDTH}x${HEIGHT} -stream_loop 59 -framerate 30 -i ${source}`;
  const colours = `-vf scale=out_color_matrix=${matrix}:out_range=${range}:flags=accurate_rnd+full_chroma_int,format=yuv420p -colorspace ${matrix} -color_primaries ${matrix} -color_trc ${matrix} -color_range ${range}`;
  const codec = "-c:v libx264 -profile:v baseline -tune zerolatency -qp 4 -g 30 -keyint_min 30";
  await promisify(execFile)("ffmpeg", ["-loglevel", "error", "-y", ...`${input} ${colours} ${codec}`.split(" "), film]);
  return film;
}

/** The middle of each patch on the screen, where `place` is the picture. */
async function patchesAt(page, place) {
  const image = await page.screenshot({ clip: place });
  const pixels = await page.evaluate(async (image) => {
    const octets = Uint8Array.from(atob(image), (letter) => letter.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([octets], { type: "image/png" }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    // One row is enough: all are alike.
    return [...context.getImageData(0, Math.floor(bitmap.height / 2), bitmap.width, 1).data];
  }, image.toString("base64"));
  return PATCHES.map((_, index) => {
    const at = 4 * Math.floor(((index + 0.5) * (pixels.length / 4)) / PATCHES.length);
    return pixels.slice(at, at + 3);
  });
}

/** The patches as the browser's own player shows the film. */
async function ownPatches(film) {
  const page = await browser.context.newPage();
  try {
    await page.evaluate(async (film) => {
      const video = document.createElement("video");
      video.style = "position: fixed; left: 0; top: 0";
      video.src = `data:video/mp4;base64,${film}`;
      document.body.append(video);
      await new Promise((resolve) => video.addEventListener("loadeddata", resolve));
    }, (await readFile(film)).toString("base64"));
    await page.waitForTimeout(500);
    return await patchesAt(page, { x: 0, y: 0, width: WIDTH, height: HEIGHT });
  } finally {
    await page.close();
  }
}

/** Largest difference in any channel. */
function difference(some, others) {
  return Math.max(...some.flatMap((patch, index) => patch.map((value, channel) => Math.abs(value - others[index][channel]))));
}

/** How pictures are shown: on a canvas, or in a `<video>`, decoded by the player or as segments. */
const PATHS = {
  canvas: { query: "?screen=canvas", shows: "canvas" },
  decoded: { query: "", shows: "video of MediaStream" },
  segments: { query: "?target=400", shows: "video of MediaSourceHandle" },
};

/** The patches as the page shows them. */
async function shownPatches(url, { query, shows }) {
  const player = await openPage(browser, `${url}${query}`);
  try {
    await player.untilStats("a picture", ({ video }) => video.shown > 20);
    const element = await player.page.evaluate(() => {
      const { localName, srcObject } = globalThis.screenOf().element;
      return srcObject ? `${localName} of ${srcObject.constructor.name}` : localName;
    });
    assert.equal(element, shows);
    return await patchesAt(player.page, await player.page.evaluate(() => globalThis.screenOf().element.getBoundingClientRect().toJSON()));
  } finally {
    await player.close();
  }
}

describe("the colours of the source", () => {
  for (const way of WAYS) {
    test(`are shown of ${way.name}`, async () => {
      const film = await encode(way);
      const own = await ownPatches(film);
      const input = ["--encoded", film, "--loop", "--no-audio"];
      const server = await startServer(binary, ["demo", ...input], home.directory);
      try {
        for (const [screen, shownBy] of Object.entries(PATHS)) {
          const shown = await shownPatches(server.url, shownBy);
          assert.ok(difference(shown, PATCHES) <= way.most, `${screen}: ${JSON.stringify(shown)} instead of ${JSON.stringify(PATCHES)}`);
          assert.ok(difference(shown, own) <= MAX_DIFFERENCE, `${screen}: ${JSON.stringify(shown)}, the browser's own player ${JSON.stringify(own)}`);
        }
      } finally {
        await server.program.end();
      }
    });
  }
});
