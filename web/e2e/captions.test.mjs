// Captions of a film: over the picture of the page, and as subtitles of HLS in hls.js.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openPage, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

const PLAYER = path.resolve(import.meta.dirname, "../node_modules/hls.js/dist/hls.min.js");
/** Length of the film in seconds; each has a cue of 0.8 s. */
const SECONDS = 120;

let binary;
let home;
let browser;
let forwarder;
let publisher;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory, ["--autoplay-policy=no-user-gesture-required"]);
  const film = await makeFilm(home.directory);
  const socket = path.join(home.directory, "captions.sock");
  forwarder = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", socket], home.directory);
  publisher = new Program(binary, ["publish", "/film", "--input", film, "--connect", `unix://${socket}`], home.directory);
});

after(async () => {
  await publisher?.end();
  await forwarder?.program.end();
  await browser?.close();
  await home?.remove();
});

async function makeFilm(directory) {
  const clock = (seconds, millis) => `00:${String(Math.floor(seconds / 60)).padStart(2, "0")}:${String(seconds % 60).padStart(2, "0")},${millis}`;
  const cues = Array.from({ length: SECONDS }, (_, second) => `${second + 1}\n${clock(second, "100")} --> ${clock(second, "900")}\n<i>cue ${second}</i>\n`);
  const [text, film] = ["cues.srt", "film.mkv"].map((file) => path.join(directory, file));
  await writeFile(text, cues.join("\n"));
  const sources = ["-f", "lavfi", "-i", `color=size=480x270:rate=25:duration=${SECONDS}`, "-f", "lavfi", "-i", `sine=duration=${SECONDS}`, "-i", text];
  const codecs = "-c:v libx264 -preset ultrafast -g 25 -bf 0 -c:a aac -c:s subrip".split(" ");
  await promisify(execFile)("ffmpeg", ["-loglevel", "error", ...sources, ...codecs, film]);
  return film;
}

/** Numbers of the cues among these texts; anything else is a fault. */
function numbers(texts) {
  return texts.map((text) => {
    assert.match(text, /^cue \d+$/);
    return Number(text.slice(4));
  });
}

function assertInTurn(cues) {
  assert.ok(cues.length >= 3, `${cues.length} cues were shown`);
  cues.forEach((cue, at) => assert.equal(cue, cues[0] + at, `cues ${cues}`));
}

describe("captions", () => {
  test("are shown over the picture, and can be turned off", async () => {
    const player = await openPage(browser, `${forwarder.url}?name=/film`);
    try {
      const shown = await player.page.evaluate(async (timeout) => {
        const captions = document.querySelector("namecast-player").shadowRoot.getElementById("captions");
        const [texts, deadline] = [[], Date.now() + timeout];
        while (texts.length < 4 && Date.now() < deadline) {
          await new Promise((resolve) => setTimeout(resolve, 20));
          const text = captions.hidden ? "" : captions.textContent;
          if (text !== "" && text !== texts.at(-1)) {
            texts.push(text);
          }
        }
        return texts;
      }, TIMEOUT);
      assertInTurn(numbers(shown));
      assert.equal(await player.page.locator("#notes").isVisible(), false, "captions are no notes");
      const button = player.page.getByRole("button", { name: "Captions" });
      await button.click();
      assert.equal(await button.getAttribute("aria-pressed"), "false");
      const isHidden = () => player.page.evaluate(() => document.querySelector("namecast-player").shadowRoot.getElementById("captions").hidden);
      for (let turn = 0; turn < 20; turn += 1) {
        assert.equal(await isHidden(), true);
      }
      await button.click();
      await player.page.waitForFunction(() => !document.querySelector("namecast-player").shadowRoot.getElementById("captions").hidden, undefined, { timeout: TIMEOUT });
      assert.deepEqual(player.errors, [], "the console complains");
    } finally {
      await player.close();
    }
  });

  test("are subtitles of the node's HLS", async () => {
    const page = await browser.context.newPage();
    try {
      const playlist = `${forwarder.url}hls/film/index.m3u8`;
      await page.goto(new URL("nothing-here", playlist).href);
      // As a script of its own it would be refused: the node allows the page's only.
      await page.evaluate(await readFile(PLAYER, "utf8"));
      const { cues, tracks } = await page.evaluate(
        async ({ playlist, timeout }) => {
          const video = document.createElement("video");
          video.muted = true;
          document.body.append(video);
          const policy = { default: { maxTimeToFirstByteMs: timeout, maxLoadTimeMs: timeout, timeoutRetry: null, errorRetry: null } };
          const hls = new globalThis.Hls({ manifestLoadPolicy: policy });
          hls.loadSource(playlist);
          hls.attachMedia(video);
          hls.on(globalThis.Hls.Events.MANIFEST_PARSED, () => video.play());
          const deadline = Date.now() + timeout;
          const found = () => [...(video.textTracks[0]?.cues ?? [])].map(({ text, startTime, endTime }) => ({ text, startTime, endTime }));
          while (Date.now() < deadline && (found().length < 4 || video.currentTime < 2)) {
            await new Promise((resolve) => setTimeout(resolve, 100));
          }
          return { cues: found(), tracks: hls.subtitleTracks.map(({ name }) => name) };
        },
        { playlist, timeout: TIMEOUT },
      );
      assert.deepEqual(tracks, ["Captions"]);
      // A cue on the edge of two segments is in both, in two parts.
      const starts = new Map();
      for (const { text, startTime } of cues) {
        const [number] = numbers([text]);
        starts.set(number, Math.min(startTime, starts.get(number) ?? Infinity));
      }
      assertInTurn([...starts.keys()].sort((a, b) => a - b));
      const [first, ...others] = [...starts].sort(([a], [b]) => a - b);
      // The first one may have begun before the first segment.
      for (const [number, start] of others.slice(1)) {
        const expected = others[0][1] + number - others[0][0];
        assert.ok(Math.abs(start - expected) < 0.06, `cue ${number} begins at ${start}, not ${expected}; the first is ${first}`);
      }
    } finally {
      await page.close();
    }
  });
});
