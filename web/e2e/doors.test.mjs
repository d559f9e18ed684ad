// The ways by which the page comes to a browser other than from the node itself on this machine, and what it remembers.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { createServer } from "vite";
import { openPage, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { findBinary, freePort, makeHome, Program, startServer } from "./lib/processes.mjs";
import { startProxy } from "./lib/proxy.mjs";

const WEB = path.resolve(import.meta.dirname, "..");

let binary;
let home;
let browser;
let forwarder;
let connect;
let publisher;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory);
  const file = (name) => path.join(home.directory, name);
  const config = `
    listen = { udp = [], tcp = [], unix = ["${file("doors.sock")}"] }
    web = { trusted-proxies = ["127.0.0.2"] }
  `;
  await writeFile(file("forwarder.toml"), config);
  connect = ["--connect", `unix://${file("doors.sock")}`];
  forwarder = await startServer(binary, ["forwarder", "--config", file("forwarder.toml")], home.directory);
  publisher = new Program(binary, ["publish", "/doors", "--input", "test", ...connect], home.directory);
});

after(async () => {
  await publisher?.end();
  await forwarder?.program.end();
  await browser?.close();
  await home?.remove();
});

/** Opens the page at `url`, waits until it plays, and returns whether it counts as local at the node. */
async function play(url) {
  const player = await openPage(browser, `${url}?name=/doors&transport=ws`);
  try {
    await player.untilStats("frames", ({ video }) => video.shown > 30);
    const { node } = await (await fetch(`${forwarder.url}status.json`)).json();
    assert.deepEqual(player.errors, []);
    return node.faces.findLast(({ remote }) => remote.startsWith("ws")).is_local;
  } finally {
    await player.close();
  }
}

describe("the own page", () => {
  test("plays behind a proxy, and is not local there", async () => {
    const proxy = await startProxy({ to: forwarder.url, from: "127.0.0.2" });
    try {
      assert.equal(await play(proxy.url), false);
    } finally {
      await proxy.close();
    }
  });

  test("plays from the development server", async () => {
    const node = forwarder.url;
    const proxy = { "/node.json": node, "/streams.json": node, "/ws": { target: node, ws: true } };
    const server = await createServer({ root: WEB, logLevel: "error", server: { port: await freePort(), proxy } });
    await server.listen();
    try {
      assert.equal(await play(server.resolvedUrls.local[0]), true);
    } finally {
      await server.close();
    }
  });
});

describe("a film with AAC", () => {
  test("plays with its sound as it is", async () => {
    const film = path.join(home.directory, "film.mp4");
    const sources = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=3 -f lavfi -i sine=duration=3";
    const codecs = "-c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 30 -c:a aac";
    await promisify(execFile)("ffmpeg", ["-loglevel", "error", ...`${sources} ${codecs}`.split(" "), film]);
    const input = ["--input", film, "--loop", "--ladder", "copy"];
    const publisher = new Program(binary, ["publish", "/aac", ...input, ...connect], home.directory);
    const watcher = new Program(binary, ["watch", "/doors", "--output", path.join(home.directory, "doors.mkv"), ...connect], home.directory);
    const player = await openPage(browser, `${forwarder.url}?name=/aac`);
    try {
      await player.untilStats("frames", ({ video }) => video.shown > 30);
      await player.page.click("#sound");
      await player.untilStats("sound", ({ audio, consumer }) => audio.state === "playing" && consumer.audio.rendered > 50);
      // The other stream of the node shows itself, with a picture of it.
      await player.page.locator("#streams-list li", { hasText: "/doors" }).waitFor({ timeout: TIMEOUT });
      await player.page.locator("#streams-list .viewers", { hasText: "at least 1 watching" }).waitFor({ timeout: TIMEOUT });
      await player.page.waitForFunction(() => document.querySelector("#streams-list img")?.naturalWidth === 640, undefined, { timeout: TIMEOUT });
      assert.equal(await player.page.locator("#streams-list a").first().getAttribute("href"), `${forwarder.url}?name=%2Fdoors`);
      assert.deepEqual(player.errors, []);
    } finally {
      await player.close();
      await watcher.end();
      await publisher.end();
    }
  });
});

describe("a key that changed", () => {
  test("is refused until a person forgets the old one", async () => {
    const other = path.join(home.directory, "other");
    await mkdir(other);
    const player = await openPage(browser, `${forwarder.url}?name=/doors`);
    try {
      const { signer } = await player.untilStats("frames", ({ video }) => video.shown > 30);
      await publisher.end("SIGKILL");
      publisher = new Program(binary, ["publish", "/doors", "--input", "test", ...connect], other);
      await player.page.reload();
      await player.page.waitForFunction(() => globalThis.namecast?.state().kind === "refused", undefined, { timeout: 60_000 });
      assert.match((await player.state()).sentence, /^\/doors carries the signature of another key than the one remembered on/);
      assert.deepEqual(await player.shown(), [], "nothing of it is shown");
      await player.page.getByRole("button", { name: "Forget the old key" }).click();
      const after = await player.untilStats("frames of the new key", ({ video }) => video.shown > 30);
      assert.notEqual(after.signer.digest, signer.digest);
    } finally {
      await player.close();
    }
  });
});
