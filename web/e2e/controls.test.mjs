// The player's controls: keys, clicks, latencies, what a person chose and what the browser refuses.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { openPage, savedFile, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { encodeFilm } from "./lib/film.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

const ARTIFACTS = path.resolve(import.meta.dirname, "artifacts");

let home;
let browser;
let node;
let programs;

before(async () => {
  const binary = await findBinary();
  home = await makeHome();
  await mkdir(ARTIFACTS, { recursive: true });
  const film = await encodeFilm(home.directory);
  browser = await startBrowser(home.directory);
  const connect = ["--connect", `unix://${path.join(home.directory, "controls.sock")}`];
  node = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", path.join(home.directory, "controls.sock")], home.directory);
  const run = (...args) => new Program(binary, [...args, ...connect], home.directory);
  programs = [run("publish", "/show", "--encoded", film, "--loop"), run("archive", "/show", "--store", path.join(home.directory, "kept"))];
});

after(async () => {
  await Promise.all((programs ?? []).map((program) => program.end()));
  await node?.program.end();
  await browser?.close();
  await home?.remove();
});

async function withPlayer(body) {
  const player = await openPage(browser, `${node.url}?name=/show`, { view: "watch" });
  try {
    await player.untilStats("pictures", ({ video }) => video.shown > 15);
    await player.page.waitForFunction(() => document.getElementById("player").shadowRoot.getElementById("latency") !== null, undefined, { timeout: TIMEOUT });
    await body(player, player.page);
    assert.deepEqual(player.errors, [], "the console complains");
  } finally {
    await player.page.evaluate(() => localStorage.clear());
    await player.close();
  }
}

const of = (page, field) => page.evaluate((field) => document.getElementById("player")[field], field);
const until = (page, field, value) => page.waitForFunction(({ field, value }) => document.getElementById("player")[field] === value, { field, value }, { timeout: TIMEOUT });

test("keys and clicks act on the player, also where it has no focus", () =>
  withPlayer(async (player, page) => {
    await page.keyboard.press("Space");
    await until(page, "paused", true);
    await page.keyboard.press("k");
    await until(page, "paused", false);
    await page.keyboard.press("m");
    await until(page, "muted", false);
    await page.keyboard.press("m");
    await until(page, "muted", true);
    await page.keyboard.press("ArrowDown");
    assert.ok(Math.abs((await of(page, "volume")) - 0.9) < 1e-6);
    await player.untilStats("pictures", ({ state }) => state.kind === "live");
    const { x, y, width, height } = await page.locator("#player").boundingBox();
    const middle = [x + width / 2, y + height / 3];
    await page.mouse.click(...middle);
    await until(page, "paused", true);
    await page.mouse.click(...middle);
    await until(page, "paused", false);
    // A double click is full screen, and no pause.
    await page.mouse.dblclick(...middle);
    await page.waitForFunction(() => document.fullscreenElement !== null);
    assert.equal(await of(page, "paused"), false);
    await page.keyboard.press("f");
    await page.waitForFunction(() => document.fullscreenElement === null);
  }));

test("a screenshot is the picture that is shown, in its own size, also from a canvas", () =>
  withPlayer(async (player, page) => {
    await page.mouse.move(200, 150);
    const saved = await savedFile(page, path.join(home.directory, "saved"), () => page.locator("#player #screenshot").click());
    assert.match(saved, /^show \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.png$/);
    await page.screenshot({ path: path.join(ARTIFACTS, "controls-screenshot.png") });
    const look = () =>
      page.evaluate(async () => {
        const player = document.getElementById("player");
        const picture = await createImageBitmap(await player.screenshot());
        const context = new OffscreenCanvas(64, 36).getContext("2d");
        context.drawImage(picture, 0, 0, 64, 36);
        const { data } = context.getImageData(0, 0, 64, 36);
        const values = Array.from({ length: 64 * 36 }, (_, at) => data[4 * at]);
        return { isWhole: picture.width === player.videoWidth && picture.height === player.videoHeight, spread: Math.max(...values) - Math.min(...values) };
      });
    const film = await look();
    assert.ok(film.isWhole && film.spread > 50, JSON.stringify(film));
    await page.goto(`${node.url}?name=/show&screen=canvas`);
    await player.untilStats("pictures on a canvas", ({ video }) => video.shown > 15);
    const canvas = await look();
    assert.ok(canvas.isWhole && canvas.spread > 50, JSON.stringify(canvas));
  }));

test("arrows go back and on by five seconds, and steps add up", () =>
  withPlayer(async (player, page) => {
    await player.untilStats("a past", ({ position }) => position.since !== null && position.now - position.since > 16_000);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    const past = await player.untilStats("10 s ago", ({ position }) => !position.live && position.seeking === null && position.now - position.shown > 8_000);
    assert.ok(past.position.now - past.position.shown < 14_000, `${past.position.now - past.position.shown} ms behind`);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.mouse.move(200, 150);
    const bar = await page.locator("#player media-time-range").boundingBox();
    assert.ok(bar.width >= 200, `the seek bar is ${bar.width} pixels wide`);
    assert.match(await page.locator("#player #wall").textContent(), /^\d\d:\d\d:\d\d$/);
    await page.screenshot({ path: path.join(ARTIFACTS, "controls-past-390x844.png") });
    await page.keyboard.press("l");
    await player.untilStats("live", ({ state }) => state.kind === "live");
  }));

test("latency, volume and sound are remembered, and refused sound wants a tap", () =>
  withPlayer(async (player, page) => {
    await page.locator("#player #latency").selectOption({ label: "Smooth" });
    await player.untilStats("the target", ({ target }) => target === 400);
    await page.keyboard.press("m");
    await until(page, "muted", false);
    await page.keyboard.press("ArrowDown");
    // A tab of its own. The test library counts as a click, so the browser's refusal is made here.
    const other = await openPage(browser, "about:blank", { view: "watch" });
    await other.page.addInitScript(refuseSound);
    await other.page.goto(`${node.url}?name=/show`, { waitUntil: "domcontentloaded", timeout: TIMEOUT });
    await other.page.waitForFunction(() => globalThis.namecast?.state().action === "sound", undefined, { timeout: TIMEOUT });
    assert.equal((await other.stats()).target, 400);
    assert.ok(Math.abs((await of(other.page, "volume")) - 0.9) < 1e-6);
    assert.match((await other.state()).sentence, /only after a click/);
    await other.page.screenshot({ path: path.join(ARTIFACTS, "controls-tap-1280.png") });
    await other.page.getByRole("button", { name: "Tap for sound" }).click();
    await other.untilStats("sound", ({ audio, state }) => audio.state === "playing" && state.action === null);
    assert.equal(await of(other.page, "muted"), false);
    await other.close();
  }));

/** Lets no sound begin before a click, as browsers do. An init script. */
function refuseSound() {
  let isClicked = false;
  addEventListener("click", () => (isClicked = true), true);
  Object.defineProperty(Navigator.prototype, "userActivation", { get: () => ({ hasBeenActive: isClicked, isActive: isClicked }) });
  const Browser = globalThis.AudioContext;
  globalThis.AudioContext = class extends Browser {
    get state() {
      return isClicked ? super.state : "suspended";
    }

    resume() {
      return isClicked ? super.resume() : new Promise(() => undefined);
    }
  };
}
