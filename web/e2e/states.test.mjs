// Each state of the player that can be made here, on each kind of screen: one badge, one sentence in one place, and a picture that
// nothing covers while it plays. `test/state.test.ts` has the table of all states.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { assertAccessible, SIZES } from "./lib/fits.mjs";
import { encodeFilm } from "./lib/film.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";

const ARTIFACTS = path.resolve(import.meta.dirname, "artifacts");

let binary;
let home;
let browser;
let node;
let connect;
let publisher;
let film;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  await mkdir(ARTIFACTS, { recursive: true });
  browser = await startBrowser(home.directory);
  film = await encodeFilm(home.directory);
  const socket = path.join(home.directory, "states.sock");
  node = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", socket], home.directory);
  connect = ["--connect", `unix://${socket}`];
  publisher = publish();
});

after(async () => {
  await publisher?.end();
  await node?.program.end();
  await browser?.close();
  await home?.remove();
});

const publish = () => new Program(binary, ["publish", "/show", "--encoded", film, "--loop", ...connect], home.directory);
const playing = (player) => player.untilStats("pictures", ({ video, state }) => video.shown > 30 && state.kind === "live");

/** Waits for a state, and looks at it on each screen and in both views. */
async function look(player, kind, badge, sentence) {
  const { page } = player;
  await page.waitForFunction((kind) => globalThis.namecast?.state().kind === kind, kind, { timeout: TIMEOUT });
  await assertSaid(player, kind, badge, sentence);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    for (const view of ["watch", "inspect"]) {
      await page.click(`#view-${view}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${kind} in ${view} at ${width} is ${overflow} wider than the screen`);
      await assertSaid(player, kind, badge, sentence);
      if (view === "watch") {
        await page.screenshot({ path: path.join(ARTIFACTS, `state-${kind}-${width}x${height}.png`) });
      }
    }
  }
  await assertAccessible(page, kind);
}

/** Fails unless the badge and the sentence are as they should be, the sentence in one place, which is not over a picture that plays. */
async function assertSaid(player, kind, badge, sentence) {
  // The cover fades.
  let said = await placeOf(player.page);
  for (let looks = 0; looks < 40 && said.over !== said.covers; looks += 1) {
    await player.page.waitForTimeout(50);
    said = await placeOf(player.page);
  }
  assert.equal(said.kind, kind);
  assert.match(said.badge, badge);
  assert.match(said.sentence, sentence);
  assert.deepEqual([said.over, said.below], [said.covers, !said.covers], `${kind}: one sentence in one place`);
  assert.ok(!(said.isPlaying && said.over), `${kind}: nothing covers the picture`);
}

/** Returns badge and sentence, and where that is seen. */
function placeOf(page) {
  return page.evaluate(() => {
    const host = document.getElementById("player");
    const { kind, covers, isPlaying, sentence } = globalThis.namecast.state();
    const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.textContent.includes(sentence);
    const cover = host.shadowRoot.getElementById("waiting");
    const about = document.getElementById("about");
    return { kind, covers, isPlaying, sentence, badge: document.getElementById("phase").textContent, over: shown(cover), below: shown(about) };
  });
}

/** Opens the page, runs `body` with it, and closes it. */
async function withPage(query, body, prepare = async () => undefined) {
  const player = await openPage(browser, "about:blank", { view: "watch" });
  try {
    await prepare(player.page);
    await player.page.goto(`${node.url}${query}`, { waitUntil: "domcontentloaded", timeout: TIMEOUT });
    await body(player);
  } finally {
    await player.close();
  }
}

describe("the page says what it does", () => {
  test("live, paused, and live again", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      await look(player, "live", /^Live$/, /^Live · \d+p/);
      await player.page.evaluate(() => document.getElementById("player").pause());
      await look(player, "paused", /^Paused$/, /^Paused\. The player receives nothing\.$/);
      await player.page.evaluate(() => void document.getElementById("player").play());
      await look(player, "live", /^Live$/, /^Live · \d+p/);
    }));

  test("hidden", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      const other = await browser.context.newPage();
      await other.bringToFront();
      await player.page.waitForFunction(() => globalThis.namecast.state().kind === "hidden");
      await player.page.bringToFront();
      await other.close();
      await player.untilStats("live", ({ state }) => state.kind === "live");
    }));

  test("nothing published", () => withPage("?name=/nobody", (player) => look(player, "unpublished", /^Not live$/, /^Nobody publishes \/nobody at the moment\. Playback starts when somebody does\.$/)));

  test("a killed publisher, and its return", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      await publisher.end("SIGKILL");
      await look(player, "gone", /^Offline$/, /^The publisher of \/show is offline\. Playback resumes when it returns\.$/);
      publisher = publish();
      await player.untilStats("live", ({ state }) => state.kind === "live");
    }));

  test("a stopped publisher is not called a connection that carries too little", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      process.kill(publisher.pid, "SIGSTOP");
      try {
        await player.untilStats("another state", ({ state }) => state.kind === "unanswered" || state.kind === "interrupted");
        await assertSaid(player, (await player.state()).kind, /^(No answer|Waiting)$/, /the publisher has stopped\.$|sends no new picture\.$/);
      } finally {
        process.kill(publisher.pid, "SIGCONT");
      }
      await player.untilStats("live", ({ state }) => state.kind === "live");
    }));

  test("its own connection cut, and never the publisher gone", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      await player.page.evaluate(() => {
        globalThis.kinds = [];
        document.getElementById("player").addEventListener("statechange", ({ target }) => globalThis.kinds.push(target.state.kind));
      });
      await player.fault({ kind: "disconnect", milliseconds: 8_000 });
      await player.untilStats("cut", ({ state }) => state.kind === "cut");
      await assertSaid(player, "cut", /^Reconnecting$/, /^The connection to 127\.0\.0\.1:\d+ is lost: .*\. Reconnecting…$/);
      await player.page.screenshot({ path: path.join(ARTIFACTS, "state-cut.png") });
      await player.untilStats("live", ({ state }) => state.kind === "live");
      await player.fault({ kind: "blackhole", milliseconds: 4_000 });
      await player.untilStats("no answer", ({ state }) => state.kind === "unanswered");
      await player.untilStats("live", ({ state }) => state.kind === "live");
      const kinds = await player.page.evaluate(() => globalThis.kinds);
      assert.ok(!kinds.includes("gone") && !kinds.includes("unpublished"), `${kinds}`);
    }));

  test("a refused key", () =>
    withPage(`?name=/show&key=${"00".repeat(32)}`, async (player) => {
      await look(player, "refused", /^Refused$/, /^\/show carries the signature of another key than this link names\. Ask the sender for a new link\.$/);
      assert.deepEqual(await player.shown(), []);
    }));

  test("a browser with neither WebCodecs nor Media Source Extensions", () =>
    withPage(
      "?name=/show",
      (player) => look(player, "unsupported", /^Cannot play$/, /^This browser has no WebCodecs/),
      (page) => page.addInitScript(() => ["VideoDecoder", "MediaSource", "ManagedMediaSource"].forEach((name) => delete globalThis[name])),
    ));

  test("a server that does not answer", () =>
    withPage(
      "?name=/show",
      (player) => look(player, "unreachable", /^No answer$/, /^127\.0\.0\.1:\d+ does not answer\. Trying again…$/),
      (page) => page.route("**/node.json", (route) => route.abort()),
    ));

  test("a decoder that gives nothing is no connection that carries too little", () =>
    withPage(
      "?name=/show&rung=lowest",
      async (player) => {
        await player.untilStats("a decoder behind", ({ state, evidence }) => evidence.decoding > 1_500 && state.kind === "busy");
        await look(player, "busy", /^Busy$/, /^This device is too busy: decoding is \d+ s behind\. Close other programs\.$/);
      },
      (page) => page.addInitScript(stuckDecoder),
    ));

  test("copies diagnostics without keys", () =>
    withPage(
      "?name=/show&view=inspect",
      async (player) => {
        const { signer } = await playing(player);
        await player.page.evaluate(() => {
          Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void (globalThis.copied = text) } });
        });
        await player.page.click("#diagnostics");
        const copied = await player.page.waitForFunction(() => globalThis.copied);
        const text = await copied.jsonValue();
        assert.match(text, /^Namecast player: live, "Live"$/m);
        assert.match(text, /First picture \d+ ms after opening the page/);
        assert.ok(!text.includes(signer.digest.slice(0, 16)), "the key is left out");
      },
      // So high that a click scrolls nothing: a player out of sight is hidden.
      (page) => page.setViewportSize({ width: 1_280, height: 3_000 }),
    ));
});

/** Decodes nothing, in the page's workers. An init script. */
function stuckDecoder() {
  const patch = `self.VideoDecoder.prototype.decode = function () {};`;
  const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const Browser = globalThis.Worker;
  globalThis.Worker = class extends Browser {
    constructor(address, settings) {
      super(url(`import ${JSON.stringify(url(patch))}; import ${JSON.stringify(new URL(address, document.baseURI).href)};`), settings);
    }
  };
}
