// A Chromium whose tabs are hidden and shown as a person's are, and the page under test in it.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";
import { endChild, startChild } from "./processes.mjs";

const CHROMIUM = process.env["CHROMIUM_BIN"] ?? "/usr/bin/chromium";
const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--remote-debugging-port=0",
  "--window-size=1280,1000",
];

/** How long the page may take for something on a loaded machine, in milliseconds. */
export const TIMEOUT = Number(process.env["E2E_TIMEOUT"] ?? 60_000);

/** What the page's console may say: missing icons and the like are no errors of ours, everything else is. */
const HARMLESS = [/favicon/];

/**
 * Starts Chromium by itself and not through the test library, which would make every tab act as if it were seen.
 */
export async function startBrowser(home, moreFlags = []) {
  const child = startChild(CHROMIUM, [...FLAGS, ...moreFlags, `--user-data-dir=${path.join(home, "browser")}`, "about:blank"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  child.stderr.setEncoding("utf8");
  const endpoint = await new Promise((resolve, reject) => {
    let printed = "";
    const fail = (what) => reject(new Error(`chromium ${what}: ${printed}`));
    setTimeout(() => fail("did not start"), TIMEOUT).unref();
    child.stderr.on("data", (text) => {
      printed = (printed + text).slice(-16_000);
      const found = /DevTools listening on (ws:\S+)/.exec(printed);
      if (found) {
        resolve(found[1]);
      }
    });
    child.once("exit", () => fail("ended"));
    child.once("error", reject);
  });
  const browser = await chromium.connectOverCDP(endpoint, { noDefaults: true });
  const [context] = browser.contexts();
  return {
    pid: child.pid,
    context,
    async close() {
      // A browser that hangs does not answer.
      await Promise.race([browser.close().catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 10_000).unref())]);
      await endChild(child);
    },
  };
}

const CLOCK = (await readFile(path.join(import.meta.dirname, "clock.js"), "utf8")).replaceAll(/^export /gm, "");

/** The element that shows the picture: a `<video>` where the browser plays decoded frames in one, else the canvas. */
const SCREEN = `globalThis.screenOf = () => {
  const film = document.getElementById("film");
  const shown = film !== null && !film.hidden ? film : document.getElementById("picture");
  return { element: shown, width: shown.videoWidth ?? shown.width, height: shown.videoHeight ?? shown.height };
};`;

/** What runs in the page: reads the clock off the picture each time the browser paints. */
const SAMPLER = `(() => {
  ${CLOCK}
  ${SCREEN}
  const samples = [];
  let damaged = 0;
  const reader = new OffscreenCanvas(16, 16);
  const context = reader.getContext("2d", { willReadFrequently: true });
  function sample() {
    const picture = screenOf();
    const { element, width } = picture;
    const rows = clockHeight(width);
    if (rows === 0) return null;
    if (reader.width !== width || reader.height !== rows) {
      reader.width = width;
      reader.height = rows;
    }
    context.drawImage(element, 0, 0, width, rows, 0, 0, width, rows);
    const now = performance.timeOrigin + performance.now();
    const image = context.getImageData(0, 0, width, rows);
    const clock = readClock(image);
    if (clock === null) {
      damaged += image.data.some((value, at) => at % 4 !== 3 && value > 40) ? 1 : 0;
      return null;
    }
    const last = samples.at(-1);
    if (last === undefined || last.time !== clock.time) {
      samples.push({ ...clock, seenAt: now, flash: flash(picture) });
      if (samples.length > 8000) samples.shift();
    }
    return clock;
  }
  const flashReader = new OffscreenCanvas(8, 8);
  const flashContext = flashReader.getContext("2d", { willReadFrequently: true });
  function flash(picture) {
    const { x, y, side } = flashArea(picture.width, picture.height);
    flashContext.drawImage(picture.element, x, y, side, side, 0, 0, 8, 8);
    return flashContext.getImageData(4, 4, 1, 1).data[0] > 128;
  }
  function loop() {
    try { sample(); } catch {}
    requestAnimationFrame(loop);
  }
  addEventListener("DOMContentLoaded", () => requestAnimationFrame(loop));
  globalThis.sampler = { samples, sample, damaged: () => damaged };
})();`;

/** Opens the page in a tab of its own, with all figures and settings unless `view` says `watch`. `errors` gathers what its console complains of. */
export async function openPage(browser, url, options = {}) {
  const address = new URL(url);
  if (address.protocol !== "about:" && options.view !== "watch") {
    address.searchParams.set("view", "inspect");
  }
  const page = await browser.context.newPage();
  const errors = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !HARMLESS.some((pattern) => pattern.test(message.text()))) {
      errors.push(message.text());
    }
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.addInitScript(SAMPLER);
  if (options.colorScheme) {
    await page.emulateMedia({ colorScheme: options.colorScheme });
  }
  if (options.viewport) {
    await page.setViewportSize(options.viewport);
  }
  await page.goto(address.href);
  return new Player(page, errors);
}

/** The page, in the words of the tests. */
export class Player {
  constructor(page, errors) {
    this.page = page;
    this.errors = errors;
  }

  /** All figures; `state` is the player's. */
  stats() {
    return this.page.evaluate(() => {
      const stats = globalThis.namecast?.stats();
      return stats && { ...stats, state: globalThis.namecast.state() };
    });
  }

  steps() {
    return this.page.evaluate(() => globalThis.namecast.steps.map(({ text }) => text));
  }

  /** Frames that the worker showed. */
  shown() {
    return this.page.evaluate(() => globalThis.namecast.shown);
  }

  /** Clocks read off the picture since the page was opened, each once. */
  samples() {
    return this.page.evaluate(() => globalThis.sampler.samples);
  }

  /** Pictures that showed something but no valid clock. */
  damaged() {
    return this.page.evaluate(() => globalThis.sampler.damaged());
  }

  /**
   * Goes to a time of capture (ms since 1970), or with null to live, and waits for the first picture from there.
   *
   * @returns how long that took by the page's own clock, the time that is burned into the picture, and what the worker says
   *   of the first frame it showed from there
   */
  async jump(to) {
    const seen = await this.page.evaluate(async ({ to, timeout }) => {
      const { samples } = globalThis.sampler;
      const begun = performance.timeOrigin + performance.now();
      const isThere = ({ time }) => (to === null ? time > begun - 5_000 : Math.abs(time - to) < 3_000);
      globalThis.namecast.seek(to);
      while (Date.now() < begun + timeout) {
        await new Promise(requestAnimationFrame);
        const first = samples.find((sample) => sample.seenAt > begun && isThere(sample));
        if (first !== undefined) {
          return { begun, took: first.seenAt - begun, time: first.time };
        }
      }
      return null;
    }, { to, timeout: TIMEOUT });
    assert.ok(seen, `no picture from ${to ?? "live"} in ${TIMEOUT} ms`);
    await this.untilStats("two frames", ({ position }) => position.live === (to === null) && position.seeking === null);
    // The worker reports what it showed after it was painted.
    await this.untilShown("the picture that was seen", ({ shownAt, capturedAt }) => shownAt > seen.begun && Math.abs(capturedAt - seen.time) <= 1);
    const since = (await this.shown()).filter(({ shownAt, capturedAt }) => shownAt > seen.begun && Math.abs(capturedAt - seen.time) < 3_000);
    // A busy browser may paint the second frame only.
    const painted = since.find(({ capturedAt }) => Math.abs(capturedAt - seen.time) <= 1);
    return { ...seen, first: since[0], painted };
  }

  /** The picture, as RGBA of half the width and height that the camera of tests has. */
  async picture() {
    const image = await this.page.evaluate(() => {
      const context = new OffscreenCanvas(320, 180).getContext("2d");
      context.drawImage(globalThis.screenOf().element, 0, 0, 320, 180);
      const { width, height, data } = context.getImageData(0, 0, 320, 180);
      return { width, height, data: [...data] };
    });
    return { ...image, data: Uint8ClampedArray.from(image.data) };
  }

  fault(fault) {
    return this.page.evaluate((fault) => globalThis.namecast.fault(fault), fault);
  }

  /** What people read: badge and sentence, and whether that stands in place of the picture. */
  state() {
    return this.page.evaluate(() => globalThis.namecast?.state());
  }

  /** Waits until `check(stats)` holds, and fails with the last figures if it does not. */
  async untilStats(what, check, timeout = TIMEOUT) {
    const deadline = Date.now() + timeout;
    let stats;
    while (Date.now() < deadline) {
      stats = await this.stats();
      if (stats && check(stats)) {
        return stats;
      }
      await this.page.waitForTimeout(100);
    }
    const story = JSON.stringify({ stats, steps: await this.steps(), state: await this.state() }, null, 1);
    throw new Error(`the page did not come to: ${what}\n${story}`);
  }

  /** Waits until the worker showed a frame for which `check` holds. */
  async untilShown(what, check) {
    for (const deadline = Date.now() + TIMEOUT; Date.now() < deadline; ) {
      if ((await this.shown()).some(check)) {
        return;
      }
      await this.page.waitForTimeout(50);
    }
    throw new Error(`never shown: ${what}\n${JSON.stringify({ stats: await this.stats(), state: await this.state() })}`);
  }

  /**
   * Waits until the page shows a picture captured after `time` (ms since 1970), by its own clock.
   *
   * @returns the clock
   */
  async untilCaptured(time, timeout = TIMEOUT) {
    const deadline = Date.now() + timeout;
    let clock = null;
    while (Date.now() < deadline) {
      clock = await this.page.evaluate(() => globalThis.sampler.sample());
      if (clock !== null && clock.time > time) {
        return clock;
      }
      await this.page.waitForTimeout(20);
    }
    const story = JSON.stringify({ clock, steps: await this.steps(), state: await this.state(), stats: await this.stats() }, null, 1);
    throw new Error(`the page never showed a picture captured after ${time}\n${story}`);
  }

  close() {
    return this.page.close();
  }
}

/** The name of the file that a page has the browser save in `directory` as it does `act`. */
export async function savedFile(page, directory, act) {
  const devtools = await page.context().browser().newBrowserCDPSession();
  await devtools.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: directory });
  await act();
  const deadline = Date.now() + TIMEOUT;
  for (;;) {
    const files = await readdir(directory).catch(() => []);
    const done = files.find((file) => !file.endsWith(".crdownload") && !file.startsWith("."));
    if (done !== undefined) {
      return done;
    }
    assert.ok(Date.now() < deadline, `nothing was saved: ${files}`);
    await page.waitForTimeout(50);
  }
}
