// A stream that is published as HLS, played in a real browser by hls.js, which fetches by name through the page's node: over an open link,
// and over one that carries only the lower qualities.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { encodeLadder } from "./lib/link.mjs";
import { findBinary, freePort, makeHome, Program, startServer } from "./lib/processes.mjs";

/** Rates of the qualities, in kbit/s, and sizes. */
const LADDER = [[300, "426x240"], [1_000, "854x480"], [2_500, "1280x720"]];
/** What the slow link carries, in bits a second. */
const SLOW = "1.5M";

let binary;
let home;
let browser;
let udp;
let far;
let publisher;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory, ["--autoplay-policy=no-user-gesture-required"]);
  udp = await freePort("udp");
  const socket = path.join(home.directory, "far.sock");
  far = await startServer(binary, ["forwarder", "--udp", `127.0.0.1:${udp}`, "--tcp", "off", "--unix", socket], home.directory);
  // Encoded before, so that a busy machine has segments in time.
  const films = await encodeLadder(home, LADDER);
  const args = ["publish", "/tv", "--package", "hls", "--segment", "1s", "--encoded", films.join(","), "--loop", "--connect", `unix://${socket}`];
  publisher = new Program(binary, args, home.directory);
});

after(async () => {
  await publisher?.end();
  await far?.program.end();
  await browser?.close();
  await home?.remove();
});

/** Opens the page of the node at `url`. */
async function open(url) {
  const page = await browser.context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`${url}?name=/tv`);
  const figures = () => page.evaluate(() => globalThis.namecast.package());
  return {
    errors,
    figures,
    /** Waits until `check` of the figures holds. */
    async until(what, check) {
      const deadline = Date.now() + TIMEOUT;
      for (;;) {
        const found = await figures();
        if (check(found)) {
          return found;
        }
        if (Date.now() > deadline) {
          const { sentence } = await page.evaluate(() => globalThis.namecast.state());
          throw new Error(`no ${what}: ${JSON.stringify(found)} ${sentence}; publisher: ${publisher.printed}`);
        }
        await page.waitForTimeout(100);
      }
    },
    steps: () => page.evaluate(() => globalThis.namecast.steps.map(({ text }) => text)),
    /** Mean and spread of the luminance of the picture. */
    picture: () =>
      page.evaluate(() => {
        const film = document.getElementById("film");
        const context = new OffscreenCanvas(64, 36).getContext("2d");
        context.drawImage(film, 0, 0, 64, 36);
        const { data } = context.getImageData(0, 0, 64, 36);
        const values = Array.from({ length: 64 * 36 }, (_, at) => data[4 * at]);
        const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
        return { mean, spread: Math.max(...values) - Math.min(...values) };
      }),
    close: () => page.close(),
  };
}

describe("segments by name", () => {
  test("climb to the highest quality over an open link", async (context) => {
    const page = await open(far.url);
    try {
      const climbed = await page.until("highest quality", ({ height, time }) => height === 720 && time > 3);
      assert.deepEqual(climbed.heights, [240, 480, 720]);
      const { mean, spread } = await page.picture();
      assert.ok(mean > 5 && spread > 50, `a picture of ${mean} ± ${spread}`);
      const later = await page.until("progress", ({ time }) => time > climbed.time + 1);
      context.diagnostic(JSON.stringify(later));
      assert.equal(later.fetches.refused, 0);
      const steps = await page.steps();
      assert.ok(!steps.some((text) => text.includes("does not answer")), steps.join("; "));
      assert.deepEqual(page.errors, []);
    } finally {
      await page.close();
    }
  });

  test("are written to a file, each requested before it exists", async () => {
    const film = path.join(home.directory, "film.mp4");
    const watcher = new Program(binary, ["watch", "/tv", "--output", film, "--rung", "lowest", "--connect", `unix://${path.join(home.directory, "far.sock")}`], home.directory);
    try {
      await watcher.until("three segments", async () => {
        const octets = await readFile(film);
        const [headers, segments] = ["moov", "styp"].map((box) => octets.toString("latin1").split(box).length - 1);
        return octets.toString("latin1", 4, 8) === "ftyp" && headers === 1 && segments >= 3;
      });
    } finally {
      await watcher.end();
    }
  });

  test("stay at what fits a slow link, without a stall", async (context) => {
    const relay = await freePort("udp");
    const impaired = new Program(
      binary,
      ["impair", "--listen", `127.0.0.1:${relay}`, "--to", `127.0.0.1:${udp}`, "--rate", SLOW, "--delay", "10ms", "--queue", "60", "--json"],
      home.directory,
    );
    const near = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", path.join(home.directory, "near.sock"), "--upstream", `udp4://127.0.0.1:${relay}`], home.directory);
    const page = await open(near.url);
    try {
      const begun = await page.until("picture", ({ time }) => time > 0.5);
      const played = await page.until("ten seconds", ({ time }) => time > begun.time + 10);
      context.diagnostic(JSON.stringify(played));
      assert.equal(played.stalls, 0, "stalls");
      assert.ok(played.switches.every(({ height }) => height < 720), "720 lines do not fit");
      assert.ok(played.throughput < 1.6e6, `the player thinks that the path carries ${played.throughput} bit/s`);
      assert.deepEqual(page.errors, []);
    } finally {
      await page.close();
      await near.program.end();
      await impaired.end();
    }
  });
});
