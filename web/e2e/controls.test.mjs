// The player's controls: keys, clicks, latencies, what a person chose and what the browser refuses.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { openPage, savedFile, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { assertAccessible } from "./lib/fits.mjs";
import { encodeFilm } from "./lib/film.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

const ARTIFACTS = path.resolve(import.meta.dirname, "artifacts");

/** Without a screen the browser takes its pointer for one that cannot hover. */
const HOVERS = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4";

let home;
let browser;
let node;
let programs;

before(async () => {
  const binary = await findBinary();
  home = await makeHome();
  await mkdir(ARTIFACTS, { recursive: true });
  const film = await encodeFilm(home.directory);
  // A name by which browsers take no page for secure, unlike addresses of this machine.
  browser = await startBrowser(home.directory, ["--host-resolver-rules=MAP elsewhere.test 127.0.0.1", HOVERS]);
  const [socket, file] = ["controls.sock", "controls.toml"].map((name) => path.join(home.directory, name));
  await writeFile(file, `listen = { udp = [], tcp = [], unix = ["${socket}"] }\n[web]\nhost-names = ["elsewhere.test"]\n`);
  const connect = ["--connect", `unix://${socket}`];
  node = await startServer(binary, ["forwarder", "--config", file], home.directory);
  const run = (...args) => new Program(binary, [...args, ...connect], home.directory);
  programs = [run("publish", "/talk", "--input", "test"), run("publish", "/show", "--encoded", film, "--loop"), run("archive", "/show", "--store", path.join(home.directory, "kept"))];
});

after(async () => {
  await Promise.all((programs ?? []).map((program) => program.end()));
  await node?.program.end();
  await browser?.close();
  await home?.remove();
});

async function withPlayer(body, query = "?name=/show") {
  const player = await openPage(browser, `${node.url}${query}`, { view: "watch" });
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

test("the last half minute is saved as a file that plays, with sound", () =>
  withPlayer(async (player, page) => {
    await page.keyboard.press("m");
    const { audio } = await player.untilStats("sound", ({ audio, state }) => audio.state === "playing" && audio.received > 100 && state.action === null);
    await page.mouse.move(200, 150);
    const directory = path.join(home.directory, "clips");
    const saved = await savedFile(page, directory, () => page.locator("#player #clip").click());
    assert.match(saved, /^talk \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.mp4$/);
    const clip = path.join(directory, saved);
    const run = promisify(execFile);
    const { stdout } = await run("ffprobe", ["-v", "error", "-count_frames", "-show_entries", "stream=codec_name,width,nb_read_frames,start_time,duration", "-of", "json", clip]);
    const [picture, sound] = JSON.parse(stdout).streams;
    assert.deepEqual([picture.codec_name, sound.codec_name], ["h264", "opus"]);
    assert.ok(picture.width >= 320 && Number(picture.nb_read_frames) >= 30 && Number(sound.nb_read_frames) >= 50, JSON.stringify({ picture, sound, audio }));
    // A busy machine leaves pictures out, but makes none up.
    assert.ok(Number(picture.duration) > Number(picture.nb_read_frames) / 30 - 0.2 && Number(picture.duration) < 31, JSON.stringify(picture));
    // Every picture and all sound decode.
    assert.equal((await run("ffmpeg", ["-v", "error", "-i", clip, "-fps_mode", "passthrough", "-f", "framecrc", "-"])).stderr, "");
    // Without anything that plays there is no clip.
    await page.evaluate(() => document.getElementById("player").pause());
    assert.equal(await page.evaluate(() => document.getElementById("player").clip().catch(({ name }) => name)), "InvalidStateError");
    // In one quality: a change begins a new clip.
  }, "?name=/talk&rung=lowest"));

test("the seek bar shows time and picture of the place under the pointer, and a link leads there", () =>
  withPlayer(async (player, page) => {
    await player.untilStats("a past", ({ position }) => position.since !== null && position.now - position.since > 25_000);
    const bar = await page.locator("#player media-time-range").boundingBox();
    const image = page.locator("#player #preview img");
    // The picture comes once the pointer rests.
    await page.mouse.move(bar.x + bar.width * 0.6, bar.y + bar.height / 2, { steps: 4 });
    await page.waitForFunction(() => document.getElementById("player").shadowRoot.querySelector("#preview img")?.naturalWidth === 640, undefined, { timeout: TIMEOUT });
    await page.mouse.move(bar.x + bar.width * 0.6 + 1, bar.y + bar.height / 2);
    await image.waitFor({ timeout: TIMEOUT });
    assert.match(await page.locator("#player #preview span").textContent(), /^\d\d:\d\d:\d\d$/);
    await page.screenshot({ path: path.join(ARTIFACTS, "controls-preview.png") });
    const at = (await player.stats()).position.now - 15_000;
    const linked = await openPage(browser, `${node.url}?name=/show&t=${new Date(at).toISOString()}`, { view: "watch" });
    try {
      const { position } = await linked.untilStats("the past", ({ position, video }) => video.shown > 10 && !position.live && position.seeking === null && position.shown !== null);
      assert.ok(position.shown >= at - 100 && position.shown < at + 10_000, `${position.shown - at} ms after the time of the link`);
    } finally {
      await linked.close();
    }
  }));

test("player and page speak the language that the address names", () =>
  withPlayer(async (player, page) => {
    await page.locator("#phase", { hasText: "Live" }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
    assert.equal(await page.locator("#share").textContent().then((text) => text.trim()), "Teilen");
    assert.deepEqual(await page.locator("#player #latency option").allTextContents(), ["Kürzeste Verzögerung", "Ausgewogen", "Flüssig"]);
    await page.keyboard.press("Space");
    await page.locator("#about", { hasText: "Pausiert. Es wird nichts empfangen." }).waitFor();
    await page.mouse.move(200, 150);
    assert.match(await page.locator("#player #play").getAttribute("aria-label"), /[Ww]iedergabe|[Aa]bspielen/);
    for (const [width, height] of [[1280, 900], [390, 844]]) {
      await page.setViewportSize({ width, height });
      await page.screenshot({ path: path.join(ARTIFACTS, `controls-german-${width}.png`) });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(overflow, 0, `${width} pixels`);
    }
    await assertAccessible(page, "the page in German");
  }, "?name=/show&lang=de"));

test("a page by plain http from elsewhere says what to do", async () => {
  const page = await browser.context.newPage();
  try {
    const { port } = new URL(node.url);
    await page.goto(`http://elsewhere.test:${port}/?name=/show`);
    const sentence = page.locator("#player #sentence", { hasText: "this one came by plain http" });
    await sentence.waitFor({ timeout: TIMEOUT });
    assert.match(await sentence.textContent(), /--listen/);
    // This node has no page by https.
    assert.ok(await page.locator("#player #action").isHidden());
    // One that has leads there.
    await page.route("**/node.json", (route) => route.fulfill({ json: { ws: "/ws", local: false, https: 8_443 } }));
    await page.reload();
    await page.locator("#player #sentence", { hasText: "Open https://elsewhere.test:8443 instead." }).waitFor({ timeout: TIMEOUT });
    await page.screenshot({ path: path.join(ARTIFACTS, "controls-http.png") });
    const [request] = await Promise.all([page.waitForRequest(/^https:/), page.getByRole("button", { name: "Open the secure page" }).click()]);
    assert.equal(request.url(), "https://elsewhere.test:8443/?name=/show");
  } finally {
    await page.close();
  }
});

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
