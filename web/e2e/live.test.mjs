// A tab goes live with camera and microphone, or with a screen; another tab and the command play it. Its link works once, for
// its name, in the node's own page.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage, savedFile, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { captureFlags, isBlueAndRed, pictureNumber, pictureNumbers, writeCamera } from "./lib/camera.mjs";
import { assertAccessible, assertInside, SIZES } from "./lib/fits.mjs";
import { linksOf, openLive, VP8_ALONE } from "./lib/live.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";
import { startProxy } from "./lib/proxy.mjs";

let binary;
let home;
/** With a camera whose pictures are known. */
let browser;
let server;
/** What pages may use until they are forbidden it. */
const DEVICES = ["camera", "microphone"];
/** A link for each name. */
let links;

const sock = () => path.join(home.directory, "live.sock");

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  const file = path.join(home.directory, "live.toml");
  await writeFile(file, `listen = { udp = [], tcp = [], unix = ["${sock()}"] }\nweb = { trusted-proxies = ["127.0.0.2"] }\n`);
  const names = ["/cam", "/second", "/third", "/screen"].flatMap((name) => ["--allow-publish", name]);
  const camera = path.join(home.directory, "camera.y4m");
  await writeCamera(camera);
  [browser, server] = await Promise.all([
    startBrowser(home.directory, captureFlags(camera, "Shared")),
    startServer(binary, ["forwarder", "--config", file, "--json", "-v", ...names], home.directory),
  ]);
  links = await linksOf(server.program);
  await browser.context.grantPermissions(DEVICES);
});

after(async () => {
  await server?.program.end();
  await browser?.close();
  await home?.remove();
});

const tickets = async () => (await (await fetch(`${server.url}status.json`)).json()).node.tickets;

/** The same link, at another address of the node. */
const at = (url, link) => link.replace(server.url, url);

describe("a tab that is live", () => {
  test("is played by another tab and by the command, and goes on after it was loaded anew", async () => {
    const live = await openLive(browser, links["/cam"]);
    await live.page.fill("#title", " The harbour ");
    const link = await live.goLive();
    assert.match(link, /\?name=\/cam&key=[0-9a-f]{64}$/);
    const key = /key=(\w+)/.exec(link)[1];
    const [film, figures] = ["film.mkv", "watch.jsonl"].map((name) => path.join(home.directory, name));
    const watcher = new Program(binary, ["watch", "/cam", "--key", key, "--output", film, "--stats", figures, "--connect", `unix://${sock()}`], home.directory);
    // From here on the tab that is live is hidden.
    const player = await openPage(browser, link);
    try {
      await player.untilStats("60 frames", ({ video }) => video.shown >= 60);
      assert.equal(await player.page.title(), "The harbour · Namecast");
      assert.ok(await live.page.evaluate(() => document.hidden), "the tab that is live is seen");
      // On this machine everybody may go live, and is told so.
      assert.equal(await player.page.waitForSelector("#go-live:not([hidden])").then((link) => link.getAttribute("href")), "./live.html");
      assert.notEqual(pictureNumber(await player.picture()), undefined, "the picture is none of the camera's");
      assert.ok((await player.samples()).length >= 10, "fewer than ten clocks were read");
      const stats = await player.stats();
      assert.ok(stats.signer.trusted, stats.signer.verdict);
      assert.deepEqual(stats.rungs.map(({ name }) => name).sort(), ["150k", "1M", "300k"]);

      // Between two qualities one picture is as good as the other: key frames are at the same ones.
      for (const rung of ["300k", "1M"]) {
        await player.page.selectOption("#rung", rung);
        await player.untilStats(rung, ({ rung: shown }) => shown === rung);
      }
      // The page, and the command.
      await live.page.waitForFunction(() => document.getElementById("sent").textContent.includes("at least 2"), undefined, { timeout: TIMEOUT, polling: 100 });
      const { qualities, sound, dropped } = await live.figures();
      assert.deepEqual(qualities.map(({ width, height }) => [width, height]), [[640, 360], [320, 180], [320, 180]]);
      assert.ok(sound > 0, "no sound is sent");
      assert.equal(typeof (dropped.encoder + dropped.network), "number");

      await watcher.until("two seconds of film", async () => (await lastOf(figures)).video?.rendered >= 60);
      await watcher.end("SIGINT");
      const final = await lastOf(figures);
      assert.equal(final.video.verification_failures, 0);
      assert.ok(final.audio.rendered > 20, JSON.stringify(final.audio));
      assertCameraS(await pictureNumbers(film));

      const before = await tickets();
      await live.page.bringToFront();
      await live.page.reload();
      assert.equal(await live.goLive(), link);
      const loaded = Date.now();
      await player.page.bringToFront();
      await player.untilShown("a picture of the tab that was loaded anew", ({ capturedAt }) => capturedAt > loaded);
      const after = await tickets();
      assert.deepEqual([after.admitted - before.admitted, after.resumed - before.resumed], [0, 1]);
      assert.deepEqual([...live.errors, ...player.errors], []);

      await live.page.bringToFront();
      await live.page.click("#end");
      await server.program.until("end of the route", async () => !(await routes()).includes("/cam"));
    } finally {
      await player.close();
      await live.close();
      await watcher.end();
    }
  });
});

/** Fails unless these are the camera's pictures, in its order but for some that were lost or sent again. */
function assertCameraS(numbers) {
  const seen = numbers.filter((number) => number !== undefined);
  assert.ok(seen.length >= 60 && seen.length >= 0.9 * numbers.length, numbers.join());
  const steps = seen.slice(1).map((number, index) => (number - seen[index] + 30) % 30);
  assert.ok(steps.filter((step) => step === 1).length > 0.5 * steps.length, numbers.join());
}

/** The last line of a file of figures. */
const lastOf = async (file) => JSON.parse((await readFile(file, "utf8")).trim().split("\n").at(-1));

const routes = async () => (await (await fetch(`${server.url}status.json`)).json()).node.routes.map(({ prefix }) => prefix);

describe("the page to go live", () => {
  test("fits screens in both themes, with nothing that a screen reader stumbles over", async () => {
    // On the node's own machine no link is needed.
    const live = await openLive(browser, `${server.url}live.html?name=/local`);
    const { page } = live;
    try {
      await assertAccessible(page, "before it is live");
      await live.goLive();
      await page.waitForSelector("#sent:not([hidden])");
      for (const [width, height] of SIZES) {
        await page.setViewportSize({ width, height });
        for (const colorScheme of ["dark", "light"]) {
          await page.emulateMedia({ colorScheme });
          await assertAccessible(page, colorScheme);
        }
        await assertInside(page, ["#preview", "#end"], "the page to go live");
      }
    } finally {
      await live.close();
    }
  });
});

describe("a preview", () => {
  test("shows picture and level before anything is sent, and each is switched off and on", async () => {
    const live = await openLive(browser, `${server.url}live.html?name=/local`);
    const { page } = live;
    const brightest = () =>
      page.evaluate(() => {
        const context = new OffscreenCanvas(32, 18).getContext("2d");
        context.drawImage(document.getElementById("preview"), 0, 0, 32, 18);
        return Math.max(...context.getImageData(0, 0, 32, 18).data.filter((_, at) => at % 4 !== 3));
      });
    const until = async (what, check) => {
      const deadline = Date.now() + TIMEOUT;
      while (!(await check())) {
        assert.ok(Date.now() < deadline, `no ${what}`);
        await page.waitForTimeout(50);
      }
    };
    try {
      await page.click("#show");
      await until("picture", async () => (await brightest()) > 100);
      await until("level", () => page.evaluate(() => document.getElementById("level").value > 0.2));
      assert.equal(await page.evaluate(() => globalThis.namecastLive.state), "not live");
      assert.ok(!(await routes()).includes("/local"), "it is published");
      await assertAccessible(page, "with a preview");
      for (const [width, height] of SIZES) {
        await page.setViewportSize({ width, height });
        await assertInside(page, ["#preview", "#go", "#picture-off", "#sound-off"], "the preview");
      }
      await page.click("#record");
      await until("recording", async () => (await page.textContent("#record")) === "Recording");
      await page.waitForTimeout(2_000);
      const directory = path.join(home.directory, "saved");
      const file = await savedFile(page, directory, () => page.click("#record"));
      assert.match(file, /^local \d{4}-\d\d-\d\d [\d.]{8}\.(mp4|webm)$/);
      const recording = path.join(directory, file);
      assert.ok((await pictureNumbers(recording)).length >= 30, "two seconds have fewer than 30 pictures");
      await page.click("#picture-off");
      await until("black", async () => (await brightest()) < 20);
      await page.click("#sound-off");
      await until("silence", () => page.evaluate(() => document.getElementById("level").value === 0));
      assert.equal(await page.getAttribute("#sound-off", "aria-pressed"), "true");
      await page.click("#picture-off");
      await page.click("#sound-off");
      await until("picture", async () => (await brightest()) > 100);
      await until("level", () => page.evaluate(() => document.getElementById("level").value > 0.2));
    } finally {
      await live.close();
    }
  });
});

describe("a link to go live", () => {
  // Both reach the node from elsewhere than its machine, as far as it can tell, so that nothing but the link lets them register.
  let trusted;
  let foreign;

  before(async () => {
    trusted = await startProxy({ to: server.url, from: "127.0.0.2" });
    foreign = await startProxy({ to: server.url, from: "127.0.0.3" });
  });

  after(async () => {
    await trusted?.close();
    await foreign?.close();
  });

  /** What a page says that is opened at `link`, and what the node counts and logs. */
  async function check(link, counter, said, script) {
    const before = await tickets();
    const live = await openLive(browser, link, script);
    try {
      assert.match(await live.refused(), said);
      const after = await tickets();
      if (counter !== undefined) {
        assert.ok(after[counter] > before[counter], JSON.stringify({ before, after }));
        await server.program.until(`log of ${counter}`, async () => said.test(server.program.printed));
      }
    } finally {
      await live.close();
    }
  }

  test("works for whoever uses it first, and for its name", async () => {
    const link = at(trusted.url, links["/second"]);
    await check(link.replace("name=/second", "name=/other"), "refused_name", /is for \/second alone/);
    const live = await openLive(browser, link);
    try {
      await live.goLive();
      await check(link, undefined, /Another tab of this browser is live as \/second/);
      assert.ok((await routes()).includes("/second"));
      assert.ok(!(await routes()).includes("/other"));
    } finally {
      await live.close();
    }
    // Opened again in a browser that has the key, and in one that has not.
    const again = await openLive(browser, link);
    try {
      const before = await tickets();
      await again.goLive();
      const after = await tickets();
      assert.deepEqual([after.admitted - before.admitted, after.resumed - before.resumed], [0, 1]);
    } finally {
      await again.close();
    }
    await check(link, "refused_used", /used already/, "localStorage.clear();");
    const metrics = await (await fetch(`${server.url}metrics`)).text();
    assert.match(metrics, /^namecast_tickets_issued_total 4$/m);
    assert.match(metrics, /^namecast_tickets_shown_total\{outcome="refused_used"\} [1-9]/m);
  });

  test("works nowhere else, nor does one that was made up", async () => {
    await check(at(foreign.url, links["/third"]), "refused_origin", /only in the page of this node/);
    await check(at(trusted.url, links["/third"]).replace(/#.*/, `#${"0".repeat(32)}`), "refused_token", /not one of this node's/);
    await check(at(trusted.url, links["/third"]).replace(/#.*/, ""), undefined, /link to go live|--allow-publish/);
    assert.equal((await (await fetch(`${trusted.url}node.json`)).json()).local, false);
    const { status, text } = await upgrade("http://elsewhere.example");
    assert.equal(status, 403);
    assert.match(text, /pages of 'http:\/\/elsewhere.example' may not use this node/);
    assert.ok(!(await routes()).includes("/third"));
  });
});

/** What a page of another site gets that requests a face. */
function upgrade(origin) {
  const headers = { origin, connection: "upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==" };
  return new Promise((resolve, reject) => {
    const request = http.get(`${server.url}ws`, { headers }, (response) => {
      let text = "";
      response.on("data", (octets) => (text += octets));
      response.on("end", () => resolve({ status: response.statusCode, text }));
    });
    request.on("error", reject);
  });
}

describe("the sources of a tab that is live", () => {
  test("change while it is live: whoever watches sees a screen, then the camera, without sound and with it", async () => {
    const shared = await browser.context.newPage();
    await shared.setContent(`<title>Shared</title><body style="background: #20c040">`);
    const live = await openLive(browser, `${server.url}live.html?name=/sources`);
    let player;
    try {
      const link = await live.goLive();
      player = await openPage(browser, link);
      await player.untilStats("the camera", ({ video }) => video.shown >= 30);
      await live.page.bringToFront();
      await live.page.check("input[value=screen]");
      await live.page.waitForFunction(() => document.hidden, undefined, { timeout: TIMEOUT, polling: 100 });
      await player.page.bringToFront();
      await untilPicture(player, "the screen", isGreen);
      // The camera has 640 × 360, the screen another size: its qualities are others.
      const { rungs, kinds } = await player.stats();
      assert.ok(kinds.audio && rungs.length === 3, JSON.stringify(rungs));
      await live.page.bringToFront();
      await live.page.uncheck("#microphone");
      await player.page.bringToFront();
      await player.untilStats("no sound", ({ kinds: { audio, video } }) => video && !audio);
      assert.ok(await live.page.locator("#sound-off").isHidden());
      await live.page.bringToFront();
      await live.page.check("input[value=camera]");
      await live.page.check("#microphone");
      await player.page.bringToFront();
      await untilPicture(player, "the camera again", isBlueAndRed);
      await player.untilStats("sound again", ({ kinds: { audio } }) => audio);
      // Nothing to send is refused, and the form says what is sent.
      await live.page.bringToFront();
      await live.page.uncheck("#microphone");
      await live.page.click("input[value=none]");
      await live.page.locator("#notices", { hasText: "There is nothing to send" }).waitFor({ timeout: TIMEOUT });
      assert.ok(await live.page.isChecked("input[value=camera]"));
      assert.equal(await live.page.evaluate(() => globalThis.namecastLive.state), "live");
      assert.equal(await live.page.evaluate(() => globalThis.namecastLive.link), link);
      assert.deepEqual([...live.errors, ...player.errors], []);
    } finally {
      await player?.close();
      await live.close();
      await shared.close();
    }
  });
});

describe("a camera that is held upright", () => {
  test("is seen upright by those who watch, and in the thumbnail", async () => {
    const live = await openLive(browser, `${server.url}live.html?name=/upright`, HELD_UPRIGHT);
    let player;
    try {
      player = await openPage(browser, await live.goLive());
      await player.untilStats("pictures", ({ video }) => video.shown >= 5);
      const { rungs } = await player.stats();
      assert.deepEqual([rungs[0].width, rungs[0].height], [360, 640]);
      // Blue on the left and red on the right are blue above and red below, once they are turned clockwise.
      await untilPicture(player, "the turned camera", isBlueAboveRed);
      const thumbnail = await (await fetch(`${server.url}thumbnail.jpg?name=/upright`)).arrayBuffer();
      const [width, height] = await player.page.evaluate(async (octets) => {
        const { width, height } = await createImageBitmap(new Blob([new Uint8Array(octets)], { type: "image/jpeg" }));
        return [width, height];
      }, [...new Uint8Array(thumbnail)]);
      assert.ok(height > 1.7 * width, `${width} × ${height}`);
      assert.deepEqual([...live.errors, ...player.errors], []);
    } finally {
      await player?.close();
      await live.close();
    }
  });
});

/** Script that has a tab's camera give pictures as a telephone does that is held upright: as the sensor lies, with a note to turn them. */
const HELD_UPRIGHT = `(() => {
  const Processor = globalThis.MediaStreamTrackProcessor;
  globalThis.MediaStreamTrackProcessor = class {
    constructor(init) {
      const { readable } = new Processor(init);
      const turn = new TransformStream({
        transform(frame, controller) {
          if (!(frame instanceof VideoFrame)) return controller.enqueue(frame);
          controller.enqueue(new VideoFrame(frame, { rotation: 90 }));
          frame.close();
        },
      });
      this.readable = readable.pipeThrough(turn);
    }
  };
})();`;

/** Whether the middle column of an image, as RGBA, is blue above and red below. */
function isBlueAboveRed({ width, height, data }) {
  const at = (share) => 4 * (Math.floor(height * share) * width + Math.floor(width / 4));
  const [above, below] = [at(0.25), at(0.75)].map((place) => data[place + 2] - data[place]);
  return above > 60 && below < -60;
}

/** Waits until the player shows a picture that `check` knows. */
async function untilPicture(player, what, check) {
  const end = Date.now() + TIMEOUT;
  while (!check(await player.picture())) {
    assert.ok(Date.now() < end, `the picture is not ${what}`);
  }
}

/** Whether the last rows of an image, as RGBA, are green. */
function isGreen({ width, height, data }) {
  return [1, 3].every((quarter) => {
    const at = 4 * ((height - 2) * width + Math.floor((quarter * width) / 4));
    return data[at + 1] - data[at] > 80 && data[at + 1] - data[at + 2] > 60;
  });
}

// The last one, as devices stay forbidden.
describe("what is sent", () => {
  test("is said to be gone when it is, and refused when it is not allowed; a screen is seen as it is shared, without H.264, too", async () => {
    const shared = await browser.context.newPage();
    // Blue on the left, red on the right.
    await shared.setContent(`<title>Shared</title><body style="background: linear-gradient(90deg, #2040ff 50%, #ff4020 50%)">`);
    const live = await openLive(browser, links["/screen"], VP8_ALONE);
    let player;
    try {
      await live.goLive();
      await forbid(live.page);
      assert.match(await live.ended(), /^The (camera|microphone) is gone: plug it in/);
      assert.match(await live.refused(), /does not let this page use the camera or microphone/);
      await live.chooseScreen();
      player = await openPage(browser, await live.goLive());
      await player.untilStats("a picture", ({ video }) => video.shown >= 1);
      assert.deepEqual(new Set((await live.figures()).qualities.map(({ codec }) => codec)), new Set(["vp8"]));
      // A browser may capture its own page once before it has painted it.
      const end = Date.now() + TIMEOUT;
      let isShared = false;
      while (!isShared && Date.now() < end) {
        isShared = isBlueAndRed(await player.picture());
      }
      assert.ok(isShared, "the picture is not what is shared");
      await shared.close();
      assert.match(await live.ended(), /^The screen is not shared any more/);
      assert.deepEqual(live.errors, []);
    } finally {
      await player?.close();
      await live.close();
    }
  });
});

/** Takes camera and microphone from pages, as users can at any time. */
async function forbid(page) {
  const session = await page.context().newCDPSession(page);
  for (const name of DEVICES) {
    await session.send("Browser.setPermission", { permission: { name }, setting: "denied" });
  }
}
