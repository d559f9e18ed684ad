// What nobody sees or hears is not received. Processor time and the time to the picture are printed, as other programs run, too.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { openPage, startBrowser } from "./lib/browser.mjs";
import { encodeFilm } from "./lib/film.mjs";
import { processorTimes, spent } from "./lib/process-tree.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

/** Time for which a player is watched while it rests, in milliseconds. */
const SPAN = 10_000;
/** Most that a player receives while it is hidden and muted, in bit/s. */
const MAX_RATE = 5_000;

let home;
let browser;
let node;
let publisher;

before(async () => {
  const binary = await findBinary();
  home = await makeHome();
  const film = await encodeFilm(home.directory);
  browser = await startBrowser(home.directory);
  const socket = path.join(home.directory, "rest.sock");
  node = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", socket], home.directory);
  publisher = new Program(binary, ["publish", "/show", "--encoded", film, "--loop", "--connect", `unix://${socket}`], home.directory);
});

after(async () => {
  await publisher?.end();
  await node?.program.end();
  await browser?.close();
  await home?.remove();
});

/** Bytes that the node has sent to pages and received from them. */
async function traffic() {
  const { node: status } = await (await fetch(`${node.url}status.json`)).json();
  const faces = status.faces.filter(({ remote }) => /^(wss?|webtransport|quic|https?):/.test(remote));
  return faces.reduce((sum, { incoming, outgoing }) => sum + incoming.octets + outgoing.octets, 0);
}

/** Receives for `SPAN`. Returns bit/s, and cores that the browser took. */
async function watch(page) {
  const [bytes, times, begun] = [await traffic(), await processorTimes(browser.pid), performance.now()];
  await page.waitForTimeout(SPAN);
  const seconds = (performance.now() - begun) / 1_000;
  return { rate: (8 * ((await traffic()) - bytes)) / seconds, cores: spent(times, await processorTimes(browser.pid)) / seconds };
}

const open = async (view = "watch") => {
  const player = await openPage(browser, `${node.url}?name=/show`, { view });
  await player.untilStats("pictures", ({ video, state }) => video.shown > 30 && state.kind === "live");
  return player;
};

/** Time from `act` in the page to the next picture, in milliseconds. */
const timeToPicture = (page, act) =>
  page.evaluate(async (act) => {
    const begun = performance.timeOrigin + performance.now();
    new Function(act)();
    while (!globalThis.namecast.shown.some(({ shownAt }) => shownAt > begun)) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return globalThis.namecast.shown.find(({ shownAt }) => shownAt > begun).shownAt - begun;
  }, act);

test("a hidden, muted page receives next to nothing, and shows a picture again", async (context) => {
  const player = await open();
  const shown = await watch(player.page);
  assert.ok(shown.rate > 100_000, `while it is seen, ${shown.rate} bit/s come`);
  const other = await browser.context.newPage();
  await other.bringToFront();
  await player.page.waitForFunction(() => globalThis.namecast.state().kind === "hidden");
  await player.page.waitForTimeout(1_000);
  const hidden = await watch(other);
  context.diagnostic(`seen: ${(shown.rate / 1_000).toFixed(0)} kbit/s, ${shown.cores.toFixed(3)} cores; hidden: ${(hidden.rate / 1_000).toFixed(2)} kbit/s, ${hidden.cores.toFixed(3)} cores`);
  assert.ok(hidden.rate < MAX_RATE, `${hidden.rate} bit/s`);
  const before = Date.now();
  await player.page.bringToFront();
  await player.untilShown("a live picture", ({ capturedAt }) => capturedAt > before - 1_000);
  await player.untilStats("live", ({ state }) => state.kind === "live");
  await other.close();
  await player.close();
});

test("a player that is scrolled away shows nothing, unless it is asked to, and comes back", async (context) => {
  const player = await open();
  const { page } = player;
  await page.evaluate(() => {
    document.body.style.paddingBottom = "300vh";
    scrollTo(0, document.body.scrollHeight);
  });
  await page.waitForFunction(() => globalThis.namecast.state().kind === "hidden");
  await page.waitForTimeout(1_000);
  const away = await watch(page);
  assert.ok(away.rate < MAX_RATE, `${away.rate} bit/s`);
  const took = await timeToPicture(page, "scrollTo(0, 0)");
  context.diagnostic(`scrolled away: ${(away.rate / 1_000).toFixed(2)} kbit/s, ${away.cores.toFixed(3)} cores; a picture ${took.toFixed(0)} ms after it is back`);
  await player.untilStats("live", ({ state }) => state.kind === "live");
  await page.evaluate(() => {
    document.getElementById("player").background = true;
    scrollTo(0, document.body.scrollHeight);
  });
  const { video } = await player.stats();
  await player.untilStats("pictures that nobody sees", (stats) => stats.video.shown > video.shown + 30);
  await player.close();
});

test("sound is received only while it is heard", async () => {
  const player = await open();
  const { page } = player;
  const { audio } = await player.untilStats("sound that is off", ({ audio }) => audio.state === "off");
  assert.equal(audio.received, 0);
  await page.mouse.click(5, 5);
  await page.evaluate(() => (document.getElementById("player").muted = false));
  await player.untilStats("sound", ({ audio }) => audio.state === "playing" && audio.received > 20);
  await page.evaluate(() => (document.getElementById("player").muted = true));
  // Packets that were requested before come all the same.
  await page.waitForTimeout(1_500);
  const muted = await player.stats();
  const later = await player.untilStats("a picture that continues", ({ video }) => video.shown > muted.video.shown + 30);
  assert.equal(later.audio.received, muted.audio.received);
  await player.close();
});
