// Plain HLS for players without WebCodecs, played by hls.js in a real browser: from a directory that `watch` writes and any web
// server serves, and from the node itself.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

const PLAYER = path.resolve(import.meta.dirname, "../node_modules/hls.js/dist/hls.min.js");
const TYPES = { m3u8: "application/vnd.apple.mpegurl", m4s: "video/mp4", mp4: "video/mp4" };

let binary;
let home;
let browser;
let forwarder;
let publisher;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory, ["--autoplay-policy=no-user-gesture-required"]);
  const args = ["forwarder", "--udp", "off", "--tcp", "off", "--unix", path.join(home.directory, "hls.sock")];
  forwarder = await startServer(binary, args, home.directory);
  const input = ["--input", "test", "--ladder", "200k@320x180,400k@480x270"];
  publisher = new Program(binary, ["publish", "/hls/cam", ...input, ...connect()], home.directory);
});

after(async () => {
  await publisher?.end();
  await forwarder?.program.end();
  await browser?.close();
  await home?.remove();
});

function connect() {
  return ["--connect", `unix://${path.join(home.directory, "hls.sock")}`];
}

/** Serves the files of a directory. */
async function serve(directory) {
  const server = http.createServer(async (request, response) => {
    const file = path.basename(request.url);
    try {
      const octets = await readFile(path.join(directory, file));
      response.writeHead(200, { "content-type": TYPES[file.split(".").pop()] ?? "text/html" });
      response.end(octets);
    } catch {
      response.writeHead(404);
      response.end("There is no such file.");
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Fewest pictures of 60 that are decoded in 2 s. */
const MIN_PICTURES = 45;

/** Plays `playlist` on an empty page of the same server for `seconds`, and tells what came of it. */
async function play(playlist, seconds) {
  const page = await browser.context.newPage();
  try {
    await page.goto(new URL("/nothing-here", playlist).href);
    // As a script of its own it would be refused: the node allows the page's only.
    await page.evaluate(await readFile(PLAYER, "utf8"));
    return await page.evaluate(
      async ({ playlist, seconds, timeout }) => {
        const video = document.createElement("video");
        video.muted = true;
        document.body.append(video);
        const hls = new globalThis.Hls({ liveSyncDurationCount: 1, manifestLoadPolicy: { default: { maxTimeToFirstByteMs: timeout, maxLoadTimeMs: timeout, timeoutRetry: null, errorRetry: null } } });
        const errors = [];
        hls.on(globalThis.Hls.Events.ERROR, (_, { fatal, details, reason }) => fatal && errors.push(`${details} ${reason}`));
        hls.loadSource(playlist);
        hls.attachMedia(video);
        hls.on(globalThis.Hls.Events.MANIFEST_PARSED, () => video.play());
        const deadline = Date.now() + timeout;
        let began;
        while (Date.now() < deadline && errors.length === 0) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          began ??= video.currentTime > 0 ? video.currentTime : undefined;
          if (began !== undefined && video.currentTime > began + seconds) {
            break;
          }
        }
        const { videoWidth: width, webkitAudioDecodedByteCount: sound, currentTime } = video;
        const played = began === undefined ? 0 : currentTime - began;
        const { totalVideoFrames: pictures } = video.getVideoPlaybackQuality();
        hls.destroy();
        return { played, width, sound, pictures, errors };
      },
      { playlist, seconds, timeout: TIMEOUT },
    );
  } finally {
    await page.close();
  }
}

/** Plays what is to be whole, 2 s at a time until they are: a busy machine decodes fewer pictures than there are, and has time later. */
async function assertPlays(playlist) {
  let result;
  for (const deadline = Date.now() + TIMEOUT; ; ) {
    result = await play(playlist, 2);
    if (result.errors.length > 0 || result.pictures > MIN_PICTURES || Date.now() > deadline) {
      break;
    }
  }
  const { played, width, sound, pictures, errors } = result;
  assert.deepEqual(errors, []);
  assert.ok(played > 2, `${played} s were played`);
  assert.equal(width, 480, "it is the highest quality");
  assert.ok(pictures > MIN_PICTURES, `${pictures} pictures were decoded`);
  assert.ok(sound > 1_000, `${sound} octets of sound were decoded`);
}

describe("HLS", () => {
  test("plays from a directory that any server serves", async () => {
    const directory = path.join(home.directory, "live");
    const watcher = new Program(binary, ["watch", "/hls/cam", "--output", `hls:${directory}`, ...connect()], home.directory);
    const server = await serve(directory);
    try {
      await watcher.until("a playlist", async () => readFile(path.join(directory, "index.m3u8")));
      await assertPlays(`${server.url}index.m3u8`);
    } finally {
      await watcher.end();
      server.close();
    }
  });

  test("plays from the node, which begins at the first request", async () => {
    await assertPlays(`${forwarder.url}hls/hls/cam/index.m3u8`);
  });

  test("says what is wrong, and is not for pages of strangers", async () => {
    const segment = await fetch(`${forwarder.url}hls/nobody/1.m4s`);
    assert.equal(segment.status, 404);
    const wrong = await fetch(`${forwarder.url}hls/index.m3u8`);
    assert.match(await wrong.text(), /\/hls\/NAME\/index.m3u8/);
    const foreign = await fetch(`${forwarder.url}hls/hls/cam/index.m3u8`, { headers: { origin: "https://evil.example" } });
    assert.equal(foreign.status, 403);
  });
});
