// Browsers push by WebRTC, and others watch. How fast is measured by measure.mjs.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage, startBrowser } from "./lib/browser.mjs";
import { findBinary, makeHome, startServer } from "./lib/processes.mjs";
import { push, startPusher } from "./lib/whip.mjs";

const KEY = "a-secret";
const ROUNDS = 10;
const RECIPE = path.resolve(import.meta.dirname, "../../docs/recipes/in.md");

let binary;
let home;
let browser;
let pusher;
let server;
/** A site elsewhere whose page pushes: that of the recipe. */
let site;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory);
  pusher = await startPusher(home.directory);
  site = createServer().listen(0, "127.0.0.1");
  await once(site, "listening");
  const elsewhere = ["http://studio.example", `http://localhost:${site.address().port}`];
  server = await startServer(binary, ["serve", "--key", KEY, "--whip-port", "0", "--rtmp", "off", "--srt", "off", ...elsewhere.flatMap((origin) => ["--allow-origin", origin])], home.directory);
});

after(async () => {
  site?.close();
  await server?.program.end();
  await browser?.close();
  await pusher?.close();
  await home?.remove();
});

const status = async () => (await (await fetch(`${server.url}status.json`)).json()).publisher;

/** Posts what a program would. */
function post(name, headers, body = "v=0\r\n") {
  return fetch(`${server.url}whip/${name}`, { method: "POST", headers, body });
}

describe("WHIP", () => {
  test("a tab pushes, another one watches, picture and sound", async () => {
    const pushed = await push(pusher, server.url, "cam", KEY);
    const player = await openPage(browser, `${server.url}?name=/cam`);
    try {
      assert.equal(pushed.status, 201, pushed.answer);
      await player.untilStats("60 frames", ({ video }) => video.shown >= 60);
      await player.page.click("#sound");
      await player.untilStats("sound", ({ audio }) => audio.state === "playing");
      const samples = await player.samples();
      assert.ok(samples.length >= 10, `${samples.length} clocks were read`);
      samples.forEach(({ time }, index) => assert.ok(index === 0 || time > samples[index - 1].time));
      assert.deepEqual(player.errors, []);
      const second = await push(pusher, server.url, "cam", KEY);
      assert.equal(second.status, 409);
      assert.match(second.answer, /somebody pushes as \/cam already/);
      await second.page.close();
      await player.untilCaptured(Date.now());
      const ended = await fetch(new URL(pushed.location, server.url), { method: "DELETE" });
      assert.equal(ended.status, 200);
      await server.program.until("name that is free", async () => (await status()).streams["/cam"] === undefined);
    } finally {
      await player.close();
      await pushed.page.close();
    }
  });

  test("is watched through the forwarder that the server is connected to", async () => {
    const sock = path.join(home.directory, "whip.sock");
    const forwarder = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", sock], home.directory);
    const through = ["--rtmp", "off", "--srt", "off", "--whip-port", "0", "--connect", `unix://${sock}`];
    const server = await startServer(binary, ["serve", ...through], home.directory);
    const player = await openPage(browser, `${forwarder.url}?name=/far`);
    const pushed = await push(pusher, server.url, "far");
    try {
      assert.equal(pushed.status, 201, pushed.answer);
      await player.untilStats("30 frames", ({ video }) => video.shown >= 30);
      assert.deepEqual(player.errors, []);
    } finally {
      await player.close();
      await pushed.page.close();
      await server.program.end();
      await forwarder.program.end();
    }
  });

  test("a tab that closes without a word may come back, ten times", async () => {
    const player = await openPage(browser, `${server.url}?name=/again`);
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        // Whoever comes while the name is taken is told so.
        const pushed = await server.program.until(`round ${round}`, async () => {
          const pushed = await push(pusher, server.url, "again", KEY);
          return pushed.status === 201 ? pushed : pushed.page.close();
        });
        await player.untilCaptured(pushed.postedAt);
        await pushed.page.close();
      }
    } finally {
      await player.close();
    }
  });

  test("the recipe's page shares a camera from another site", async () => {
    const [, page] = /```html\n(.*?)```/s.exec(await readFile(RECIPE, "utf8"));
    const share = page.replace("http://127.0.0.1:8080", server.url.slice(0, -1)).replace('key = ""', `key = "${KEY}"`);
    site.on("request", (_, response) => response.setHeader("content-type", "text/html").end(share));
    const tab = await pusher.context.newPage();
    await tab.goto(`http://localhost:${site.address().port}/share.html`);
    await tab.click("#show-camera");
    const player = await openPage(browser, `${server.url}?name=/cam`);
    try {
      await player.untilStats("30 frames", ({ video }) => video.shown >= 30);
      await tab.click("#end");
      await server.program.until("name that is free", async () => (await status()).streams["/cam"] === undefined);
    } finally {
      await player.close();
      await tab.close();
    }
  });

  test("refuses with a status and a sentence, and counts it", async () => {
    const before = await status();
    const offer = { "content-type": "application/sdp", authorization: `Bearer ${KEY}` };
    for (const [name, headers, expected, sentence] of [
      ["cam", { "content-type": "application/sdp" }, 401, /Authorization: Bearer/],
      ["a%20b", offer, 400, /write letters, digits/],
      ["cam", { ...offer, "content-type": "text/plain" }, 415, /application\/sdp/],
      ["cam", offer, 422, /session description|neither video nor audio/],
    ]) {
      const response = await post(name, headers);
      assert.equal(response.status, expected);
      assert.match(await response.text(), sentence);
    }
    const large = await post("cam", offer, "a".repeat(70_000)).catch(() => ({ status: 413 }));
    assert.equal(large.status, 413);
    const wrong = await post("cam", { ...offer, authorization: "Bearer wrong" });
    assert.equal(wrong.status, 401);
    // After a wrong key, its source waits a second.
    const paused = await post("cam", offer);
    assert.equal(paused.status, 429);
    assert.match(await paused.text(), /try again in \d s/);
    await server.program.until("the end of the pause", async () => (await post("a%20b", offer)).status === 400);
    // Figures are told once a second.
    await server.program.until("refusals counted", async () => {
      const counted = await status();
      const names = ["refused_key", "refused_name", "malformed"];
      assert.deepEqual(names.map((name) => counted[name] - before[name]), [2, 2, 3]);
      return counted;
    });
  });

  test("only pages that are allowed may push", async () => {
    const ask = (origin) => fetch(`${server.url}whip/cam`, { method: "OPTIONS", headers: { origin } });
    const allowed = await ask("http://studio.example");
    assert.equal(allowed.status, 204);
    assert.equal(allowed.headers.get("access-control-allow-origin"), "http://studio.example");
    assert.equal(allowed.headers.get("access-control-expose-headers"), "location");
    const foreign = await ask("http://elsewhere.example");
    assert.equal(foreign.status, 403);
    assert.equal(foreign.headers.get("access-control-allow-origin"), null);
  });
});
