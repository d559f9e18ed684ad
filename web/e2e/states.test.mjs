// Each state of the player that can be made here, on each kind of screen: one badge, one sentence in one place, and a picture that
// nothing covers while it plays. `test/state.test.ts` has the table of all states.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, open, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openPage, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { assertAccessible, SIZES } from "./lib/fits.mjs";
import { encodeFilm } from "./lib/film.mjs";
import { encodeLadder, openBehindLink } from "./lib/link.mjs";
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
  browser = await startBrowser(home.directory, ["--host-resolver-rules=MAP elsewhere.test 127.0.0.1"]);
  film = await encodeFilm(home.directory);
  const socket = path.join(home.directory, "states.sock");
  const config = path.join(home.directory, "states.toml");
  await writeFile(config, `listen = { udp = [], tcp = [], unix = ["${socket}"] }\n[web]\nhost-names = ["elsewhere.test"]\n`);
  node = await startServer(binary, ["forwarder", "--config", config], home.directory);
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

/** Publishes another stream while `body` runs. */
async function withStream(words, body) {
  const other = new Program(binary, ["publish", ...words, ...connect], home.directory);
  try {
    await body(other);
  } finally {
    await other.end();
  }
}
const playing = (player) => player.untilStats("pictures", ({ video, state }) => video.shown > 30 && state.kind === "live");

/** Waits for a state, and looks at it on each screen and in both views. */
async function look(player, kind, badge, sentence) {
  const { page } = player;
  await page.waitForFunction((kind) => globalThis.namecast?.state().kind === kind, kind, { timeout: TIMEOUT });
  await assertSaid(player, kind, badge, sentence);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    // A page that grew may be scrolled, and a player out of sight is hidden.
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForFunction((kind) => globalThis.namecast.state().kind === kind, kind, { timeout: TIMEOUT });
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
  assert.ok(!(said.over && said.hasStart), `${kind}: nothing covers the sentence`);
  assert.ok(!(said.isPlaying && said.over && said.hasPicture), `${kind}: nothing covers the picture`);
}

/** Returns badge and sentence, and where that is seen. */
function placeOf(page) {
  return page.evaluate(() => {
    const host = document.getElementById("player");
    const { kind, covers, isPlaying, sentence } = globalThis.namecast.state();
    const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.textContent.includes(sentence);
    const cover = host.shadowRoot.getElementById("waiting");
    const about = document.getElementById("about");
    const hasPicture = globalThis.namecast.stats()?.kinds.video !== false;
    const hasStart = host.shadowRoot.getElementById("start").checkVisibility();
    return { kind, covers, isPlaying, hasPicture, hasStart, sentence, badge: document.getElementById("phase").textContent, over: shown(cover), below: shown(about) };
  });
}

/** Opens the page, runs `body` with it, and closes it. */
async function withPage(query, body, prepare = async () => undefined, base = node.url) {
  const player = await openPage(browser, "about:blank", { view: "watch" });
  try {
    await prepare(player.page);
    await player.page.goto(`${base}${query}`, { waitUntil: "domcontentloaded", timeout: TIMEOUT });
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

  test("hidden and shown, ten times", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      const other = await browser.context.newPage();
      for (let turn = 0; turn < 10; turn += 1) {
        await other.bringToFront();
        await player.page.waitForFunction(() => globalThis.namecast.state().kind === "hidden");
        await player.page.bringToFront();
        await player.untilStats("live", ({ state }) => state.kind === "live");
      }
      await other.close();
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
      (page) => page.addInitScript(patchWorker, "self.VideoDecoder.prototype.decode = function () {};"),
    ));

  test("a stream of sound only, muted and heard", async () => {
    const sound = path.join(home.directory, "sound.wav");
    await promisify(execFile)("ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=5", sound]);
    await withStream(["/radio", "--input", sound, "--loop"], () =>
      withPage("?name=/radio", async (player) => {
        await look(player, "muted", /^Sound only$/, /^This stream has sound only\. Turn the sound on to listen\.$/);
        await player.page.mouse.click(5, 5);
        await player.page.evaluate(() => (document.getElementById("player").muted = false));
        await look(player, "live", /^Live$/, /^Live · sound only$/);
      }),
    );
  });

  test("a stream of data only", async () => {
    const pipe = path.join(home.directory, "notes");
    await promisify(execFile)("mkfifo", [pipe]);
    await withStream(["/data", "--data", `notes=${pipe}`], async () => {
      const notes = await open(pipe, "w");
      const timer = setInterval(() => void notes.write("a note\n"), 200);
      try {
        await withPage("?name=/data", (player) => look(player, "data", /^Data$/, /^This stream has data only\.$/));
      } finally {
        clearInterval(timer);
        await notes.close();
      }
    });
  });

  test("segments", () =>
    withStream(["/tv", "--encoded", film, "--loop", "--package", "hls", "--segment", "1s"], () =>
      withPage("?name=/tv", (player) => look(player, "segments", /^Segments$/, /^Plays segments · 180p( · \d+ s behind the publisher)?$/)),
    ));

  test("the past, and a time that is not kept", () =>
    withStream(["/kept", "--encoded", film, "--loop"], async () => {
      const archive = new Program(binary, ["archive", "/kept", "--store", path.join(home.directory, "kept"), ...connect], home.directory);
      try {
        await withPage("?name=/kept", async (player) => {
          await player.untilStats("a past", ({ position, state }) => state.kind === "live" && position.since !== null && position.now - position.since > 12_000);
          await player.page.evaluate(() => globalThis.namecast.seek(Date.now() - 3_600_000));
          await player.untilStats("a reason", ({ state }) => /^The archive starts at .* Playback stays live\.$/.test(state.sentence));
          await player.page.evaluate(() => globalThis.namecast.seek(Date.now() - 8_000));
          await player.untilStats("the past", ({ position, state }) => !position.live && position.seeking === null && state.kind === "past");
          await look(player, "past", /^0:\d\d behind$/, /^0:\d\d behind live · 180p$/);
        });
      } finally {
        await archive.end();
      }
    }));

  test("a page by plain http from another machine", () =>
    withPage(
      "?name=/show",
      (player) => look(player, "insecure", /^Cannot play$/, /this one came by plain http\. Open it by https/),
      undefined,
      node.url.replace("127.0.0.1", "elsewhere.test"),
    ));

  test("a codec that the browser cannot decode", () =>
    withPage(
      "?name=/show",
      (player) => look(player, "codec", /^Cannot play$/, /^This browser cannot decode avc1\.\w+\. Try another browser, or publish with another codec\.$/),
      (page) => page.addInitScript(patchWorker, `self.VideoDecoder.prototype.configure = () => { throw new DOMException("no such codec", "NotSupportedError"); };`),
    ));

  test("another key than the remembered one, which a person may forget", () =>
    withPage("?name=/show", async (player) => {
      await playing(player);
      await player.page.evaluate(() => {
        const entry = "namecast-key:/show";
        localStorage.setItem(entry, localStorage.getItem(entry).replace(/[0-9a-f]{64}/, "00".repeat(32)));
      });
      await player.page.reload();
      await look(player, "refused", /^Refused$/, /^\/show carries the signature of another key than the one remembered on \d{4}-\d\d-\d\d\. If the publisher has a new key, forget the old one\.$/);
      await player.page.getByRole("button", { name: "Forget the old key" }).click();
      await player.untilStats("live", ({ state }) => state.kind === "live");
    }));

  test("a worker that fails", () =>
    withPage(
      "?name=/show",
      (player) => look(player, "failed", /^Failed$/, /^The player failed: .+\. Reload the page to try again\.$/),
      (page) => page.addInitScript(patchWorker, `self.OffscreenCanvas.prototype.getContext = () => null; self.WebAssembly.instantiate = () => Promise.reject(new Error("out of memory"));`),
    ));

  test("a link that carries less than the lowest quality", async () => {
    const link = `[forward]\ndelay = "10ms"\n[backward]\nrate = "100k"\ndelay = "10ms"\nqueue = { kind = "drop-tail", packets = 20 }\n`;
    const { player, close } = await openBehindLink({ binary, browser, home, ladder: await encodeLadder(home), link });
    try {
      await player.page.waitForFunction(() => {
        const { kind, badge, sentence } = globalThis.namecast?.state() ?? {};
        return kind === "slow" && badge === "Too slow" && /^The connection carries \d+ kbit\/s; the lowest quality needs 200 kbit\/s\.$/.test(sentence);
      }, undefined, { timeout: TIMEOUT });
      await player.page.screenshot({ path: path.join(ARTIFACTS, "state-slow.png") });
    } finally {
      await close();
    }
  });

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

/** Runs `patch` in the page's workers before their own script. An init script. */
function patchWorker(patch) {
  const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const Browser = globalThis.Worker;
  globalThis.Worker = class extends Browser {
    constructor(address, settings) {
      super(url(`import ${JSON.stringify(url(patch))}; import ${JSON.stringify(new URL(address, document.baseURI).href)};`), settings);
    }
  };
}
