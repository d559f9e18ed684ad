// The latency *Smooth*, at which the browser itself plays pictures as segments. What is asserted holds on a loaded machine, too.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { openPage, startBrowser } from "./lib/browser.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

/** *Smooth* and *Balanced*, in milliseconds. */
const [SMOOTH, BALANCED] = [400, 100];
/** Most that sound and picture may be apart, in milliseconds. */
const IN_STEP = 45;

let home;
let browser;
let node;
let connect;
let publisher;
let binary;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory, ["--autoplay-policy=no-user-gesture-required"]);
  const socket = path.join(home.directory, "smooth.sock");
  node = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", socket], home.directory);
  connect = ["--connect", `unix://${socket}`];
  publisher = new Program(binary, ["publish", "/show", "--input", "test", "--ladder", "300k,1M", ...connect], home.directory);
});

after(async () => {
  await publisher?.end();
  await node?.program.end();
  await browser?.close();
  await home?.remove();
});

/** Opens the page, runs `body` with it, and closes it. */
async function withPage(query, body, prepare = async () => undefined) {
  const player = await openPage(browser, "about:blank", { view: "watch" });
  try {
    await prepare(player.page);
    await player.page.goto(`${node.url}?name=/show${query}`);
    await body(player);
    assert.deepEqual(player.errors, [], "the console complains");
  } finally {
    await player.close();
  }
}

const playing = (player, least = 60) => player.untilStats(`${least} pictures`, ({ video, state }) => video.shown > least && state.kind === "live");
/** Waits for `count` pictures more than there were. */
async function more(player, count = 45) {
  const { video } = await player.stats();
  return player.untilStats(`${count} pictures more`, (stats) => stats.video.shown > video.shown + count);
}
const steps = async (player, pattern) => (await player.steps()).filter((step) => pattern.test(step));
const AS_SEGMENTS = /^Pictures are played as segments/;
const DECODED = /^Pictures are decoded by the player/;

test("pictures are played as segments, in order, verified, and no sooner than chosen", () =>
  withPage(`&target=${SMOOTH}`, async (player) => {
    const stats = await playing(player);
    assert.equal((await steps(player, AS_SEGMENTS)).length, 1);
    assert.equal(stats.verificationFailures, 0);
    assert.ok(stats.latency.p50 > SMOOTH - 20, `latency ${stats.latency.p50}`);
    const samples = await player.samples();
    const since = samples.slice(-30);
    since.forEach(({ time }, index) => assert.ok(index === 0 || time > since[index - 1].time, "pictures are out of order"));
    // The clock that is burned in says when the picture on the screen was captured; the player's own figure is of the same pictures.
    const late = since.map(({ time, seenAt }) => seenAt - time).sort((a, b) => a - b);
    assert.ok(late[0] > SMOOTH - 60, `a picture was seen ${late[0]} ms after it was captured`);
  }));

test("sound and picture follow one clock", () =>
  withPage(`&target=${SMOOTH}`, async (player) => {
    await playing(player);
    await player.page.evaluate(() => (document.getElementById("player").muted = false));
    await player.untilStats("sound in step", ({ audio }) => audio.state === "playing" && Math.abs(audio.offset ?? Infinity) < IN_STEP);
    // The picture waits another 300 ms, and the sound with it.
    await player.page.evaluate((target) => (document.getElementById("player").target = target), SMOOTH + 300);
    await player.untilStats("sound in step, later", ({ audio, latency, target }) => target === 700 && latency?.p50 > 680 && Math.abs(audio.offset ?? Infinity) < IN_STEP);
  }));

test("another latency changes the path, ten times, and a picture follows each time", () =>
  withPage(`&target=${BALANCED}`, async (player) => {
    await playing(player);
    assert.deepEqual(await steps(player, AS_SEGMENTS), []);
    for (let turn = 0; turn < 10; turn += 1) {
      const target = turn % 2 === 0 ? SMOOTH : BALANCED;
      await player.page.evaluate((target) => (document.getElementById("player").target = target), target);
      await more(player, 10);
    }
    assert.equal((await steps(player, AS_SEGMENTS)).length, 5);
    assert.equal((await steps(player, DECODED)).length, 5);
    await player.untilStats("live", ({ state, playout }) => state.kind === "live" && playout.target < SMOOTH);
  }));

test("another quality has another size in the same playback", () =>
  withPage(`&target=${SMOOTH}&rung=300k&view=inspect`, async (player) => {
    await playing(player, 20);
    for (const [rung, height] of [["1M", 360], ["300k", 198]]) {
      await player.page.selectOption("#rung", rung);
      await player.untilStats(rung, (stats) => stats.rung === rung);
      await player.page.waitForFunction((height) => document.getElementById("film").videoHeight === height, height);
      await more(player, 20);
    }
    assert.equal((await steps(player, AS_SEGMENTS)).length, 1);
  }));

test("what is hidden is not played, and is live when it is shown again", () =>
  withPage(`&target=${SMOOTH}`, async (player) => {
    await playing(player);
    for (let turn = 0; turn < 3; turn += 1) {
      const other = await browser.context.newPage();
      await other.bringToFront();
      await player.page.waitForFunction(() => globalThis.namecast.state().kind === "hidden");
      await other.waitForTimeout(1_000);
      const shownAt = Date.now();
      await player.page.bringToFront();
      await player.untilShown("a live picture", ({ capturedAt }) => capturedAt > shownAt - 500);
      await player.untilStats("live", ({ state }) => state.kind === "live");
      await other.close();
    }
  }));

test("segments that the browser cannot play are decoded by the player", () =>
  withPage(`&target=${SMOOTH}`, async (player) => {
    await playing(player);
    await player.fault({ kind: "decoder" });
    await more(player);
    assert.equal((await steps(player, /^Segments are not played: /)).length, 1);
    assert.equal(await player.page.evaluate(() => document.getElementById("film").srcObject instanceof MediaStream), true);
    await player.untilStats("live", ({ state }) => state.kind === "live");
  }));

test("pictures are decoded where a worker has no media source", () =>
  withPage(
    `&target=${SMOOTH}`,
    async (player) => {
      await playing(player);
      assert.deepEqual(await steps(player, AS_SEGMENTS), []);
    },
    (page) => page.addInitScript(noMediaSource),
  ));

test("playback goes on after a pause, and after the publisher was started again", () =>
  withPage(`&target=${SMOOTH}`, async (player) => {
    await playing(player);
    await player.page.evaluate(() => document.getElementById("player").pause());
    await player.page.evaluate(() => document.getElementById("player").play());
    await player.untilStats("pictures again", ({ video, state }) => video.shown > 30 && state.kind === "live");
    await publisher.end("SIGKILL");
    await player.untilStats("a publisher that is gone", ({ state }) => !state.isPlaying);
    const startedAt = Date.now();
    publisher = new Program(binary, publisher.args, home.directory);
    await player.untilShown("a new picture", ({ capturedAt }) => capturedAt > startedAt);
    await player.untilStats("live", ({ state }) => state.kind === "live");
  }));

/** Takes media sources away from the page's workers. An init script. */
function noMediaSource() {
  const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const Browser = globalThis.Worker;
  globalThis.Worker = class extends Browser {
    constructor(address, settings) {
      super(url(`import ${JSON.stringify(url("delete self.MediaSource; delete self.ManagedMediaSource;"))}; import ${JSON.stringify(new URL(address, document.baseURI).href)};`), settings);
    }
  };
}
