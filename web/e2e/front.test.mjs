// What somebody sees before a stream plays: the list of a node, the preview of a link, and a player inside of another site's page.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openPage, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { assertAccessible, assertInside, SIZES } from "./lib/fits.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";
import { serveFiles } from "./lib/static.mjs";

const ARTIFACTS = path.resolve(import.meta.dirname, "artifacts");
/** What a publisher may call its stream. */
const TITLE = `<b>Tom & "Jerry"</b>`;

let binary;
let home;
let browser;
let forwarder;
let publishers = [];

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  await mkdir(ARTIFACTS, { recursive: true });
  const [socket, file] = ["front.sock", "front.toml"].map((name) => path.join(home.directory, name));
  await writeFile(file, `listen = { udp = [], tcp = [], unix = ["${socket}"] }\n`);
  const sound = path.join(home.directory, "sound.wav");
  await promisify(execFile)("ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=5", sound]);
  [browser, forwarder] = await Promise.all([
    startBrowser(home.directory),
    startServer(binary, ["forwarder", "--config", file], home.directory),
  ]);
  const publish = (...words) => new Program(binary, ["publish", ...words, "--connect", `unix://${socket}`], home.directory);
  publishers = [publish("/cam%20one", "--input", "test", "--title", TITLE), publish("/radio", "--input", sound, "--loop"), publish("/plain", "--input", "test")];
  await forwarder.program.until("three streams", async () => (await (await fetch(`${forwarder.url}streams.json`)).json()).streams.length === 3);
});

after(async () => {
  await Promise.all(publishers.map((publisher) => publisher.end()));
  await forwarder?.program.end();
  await browser?.close();
  await home?.remove();
});

/** What a program that is no browser gets. */
function get(address) {
  return new Promise((resolve, reject) => {
    const request = http.get(address, async (answer) => {
      const octets = Buffer.concat(await answer.toArray());
      resolve({ status: answer.statusCode, headers: answer.headers, octets, text: octets.toString() });
    });
    request.on("error", reject);
  });
}

describe("the front page of a node without a stream of its own", () => {
  test("lists the streams of others with title, picture and kind, and plays the one that is chosen", async () => {
    const page = await browser.context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    try {
      await page.goto(forwarder.url);
      const tile = (text) => page.locator("#streams-list li:not([hidden])", { hasText: text });
      for (const text of [TITLE, "/radio", "/plain"]) {
        await tile(text).waitFor({ timeout: TIMEOUT });
      }
      await page.waitForFunction(() => [...document.querySelectorAll("#streams-list img:not([hidden])")].filter(({ naturalWidth }) => naturalWidth === 640).length === 2, undefined, { timeout: TIMEOUT });
      assert.equal(await tile("/radio").locator(".thumbnail").getAttribute("data-kind"), "sound");
      assert.ok(await tile("/radio").locator("img").isHidden(), "sound has no picture");
      assert.equal(await page.locator("#streams-list b b").count(), 0, "a title is text");
      assert.ok(await page.locator("#player").isHidden());
      for (const [width, height] of SIZES) {
        await page.setViewportSize({ width, height });
        await page.screenshot({ path: path.join(ARTIFACTS, `front-${width}.png`) });
        await assertInside(page, ["#streams-title", "#streams-list li:first-child"], "the front page");
        await assertAccessible(page, "the front page");
      }
      await tile(TITLE).locator("a").click();
      await page.waitForFunction(() => (globalThis.namecast?.stats()?.video.shown ?? 0) > 0, undefined, { timeout: TIMEOUT });
      assert.equal(await page.title(), `${TITLE} · Namecast`);
      assert.equal(await page.locator(".stream-title").textContent(), TITLE);
      assert.deepEqual(errors, []);
    } finally {
      await page.close();
    }
  });
});

describe("a link to a stream", () => {
  test("has a preview with title and picture, which strangers cannot turn into markup", async () => {
    const page = await get(`${forwarder.url}?name=${encodeURIComponent("/cam%20one")}`);
    const title = "&lt;b&gt;Tom &amp; &quot;Jerry&quot;&lt;/b&gt;";
    assert.ok(page.text.includes(`<title>${title} · Namecast</title>`), page.text.slice(0, 2_000));
    assert.ok(page.text.includes(`<meta property="og:title" content="${title}" />`));
    const [, image] = /property="og:image" content="([^"]+)"/.exec(page.text);
    assert.ok(image.startsWith(forwarder.url), image);
    const picture = await get(image);
    assert.equal(picture.headers["content-type"], "image/jpeg");
    assert.equal(picture.octets.readUInt16BE(0), 0xffd8);
    // Another key than the stream's shows nothing of it.
    const pinned = await get(`${forwarder.url}?name=${encodeURIComponent("/cam%20one")}&key=${"0".repeat(64)}`);
    assert.doesNotMatch(pinned.text, /og:|Jerry/);
    // Sound has a title alone, and nobody's name has neither.
    assert.doesNotMatch((await get(`${forwarder.url}?name=/radio`)).text, /og:image/);
    assert.doesNotMatch((await get(`${forwarder.url}?name=/nobody`)).text, /og:/);
    assert.equal((await get(`${forwarder.url}thumbnail.jpg?name=/nobody`)).status, 404);
    assert.equal((await get(`${forwarder.url}about.json?name=%2F`)).status, 400);
  });
});

describe("a browser without WebCodecs", () => {
  test("plays the node's HLS, and refuses another key than the link names", async () => {
    const { key } = await (await fetch(`${forwarder.url}about.json?name=/plain`)).json();
    const page = await browser.context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.addInitScript("delete globalThis.VideoDecoder;");
    try {
      await page.goto(`${forwarder.url}?name=/plain&key=${key}`);
      await page.waitForFunction(() => globalThis.namecast?.state().kind === "segments" && document.getElementById("film").currentTime > 1, undefined, { timeout: TIMEOUT });
      assert.match(await page.locator("#about").textContent(), /^Plays segments that the node checked · 720p/);
      // Paused and on again.
      await page.keyboard.press("Space");
      await page.waitForFunction(() => globalThis.namecast.state().kind === "paused");
      await page.keyboard.press("Space");
      await page.waitForFunction(() => globalThis.namecast.state().kind === "segments", undefined, { timeout: TIMEOUT });
      await page.screenshot({ path: path.join(ARTIFACTS, "front-segments.png") });
      await page.goto(`${forwarder.url}?name=/plain&key=${"0".repeat(64)}`);
      await page.waitForFunction(() => globalThis.namecast?.state().kind === "refused", undefined, { timeout: TIMEOUT });
      assert.match(await page.evaluate(() => globalThis.namecast.state().sentence), /another key than this link names/);
      assert.deepEqual(errors, []);
    } finally {
      await page.close();
    }
  });
});

describe("the share box", () => {
  test("has code that shows the stream in the page of another site, where the whole page is not shown", async () => {
    const player = await openPage(browser, `${forwarder.url}?name=/plain`, { view: "watch" });
    let code;
    try {
      await player.untilStats("a picture", ({ video }) => video.shown > 0);
      await player.page.click("#share");
      await player.page.locator("#share-picture svg").waitFor();
      code = await player.page.inputValue("#share-code");
      // Without an archive there is no time to share.
      assert.ok(await player.page.locator("#share-time").isHidden());
      for (const [width, height] of SIZES) {
        await player.page.setViewportSize({ width, height });
        await player.page.locator("#share-box").scrollIntoViewIfNeeded();
        await player.page.screenshot({ path: path.join(ARTIFACTS, `share-${width}.png`) });
        await assertAccessible(player.page, "the share box");
      }
      assert.deepEqual(player.errors, []);
    } finally {
      await player.close();
    }
    const directory = path.join(home.directory, "elsewhere");
    await mkdir(directory);
    await writeFile(path.join(directory, "index.html"), `<!doctype html><title>Elsewhere</title>${code}`);
    await writeFile(path.join(directory, "whole.html"), `<!doctype html><title>Elsewhere</title>${code.replace("/embed.html", "/")}`);
    const site = await serveFiles(directory);
    const page = await browser.context.newPage();
    try {
      await page.goto(`${site.origin}/index.html`);
      const framed = page.frameLocator("iframe");
      await framed.locator("namecast-player").waitFor({ timeout: TIMEOUT });
      const frame = page.frames().find((each) => each.url().includes("/embed.html"));
      await frame.waitForFunction(() => (document.getElementById("player").summary?.video.shown ?? 0) > 30, undefined, { timeout: TIMEOUT });
      await page.screenshot({ path: path.join(ARTIFACTS, "embedded.png") });
      assert.equal(await frame.title(), "/plain");
      await page.goto(`${site.origin}/whole.html`);
      await page.waitForFunction(() => document.querySelector("iframe") !== null);
      assert.ok(page.frames().every((each) => !each.url().startsWith(forwarder.url)), "the whole page is embedded");
    } finally {
      await page.close();
      site.close();
    }
  });
});
