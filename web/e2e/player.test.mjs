// The component on a page of another site, from the package as npm would have it.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { openExample, serveFiles, startSite } from "./lib/embedding.mjs";
import { assertAccessible, assertFits, SIZES } from "./lib/fits.mjs";

const ARTIFACTS = path.resolve(import.meta.dirname, "artifacts");

let world;
let browser;
let site;
let node;
let unpacked;

before(async () => {
  world = await startSite(({ directory }) => directory);
  ({ browser, site, node, unpacked } = world);
});

after(() => world?.end());

test("the package has what it needs and nothing else", () => {
  const kinds = [/^dist\/namecast-player\.js$/, /^dist\/worker-.*\.js$/, /^dist\/player-.*\.js$/, /^dist\/controls-.*\.js$/, /^dist\/format-.*\.js$/, /^dist\/screenshot-.*\.js$/, /^dist\/clip-.*\.js$/, /^dist\/de-.*\.js$/, /^dist\/i18n-.*\.js$/, /^dist\/hls.*\.js$/, /^dist\/.*\.wasm$/, /^index\.d\.ts$/, /^react\.js$/, /^react\.d\.ts$/, /^README\.md$/, /^package\.json$/, /^LICENSE-(APACHE|MIT)$/, /^example\/index\.html$/];
  for (const kind of kinds) {
    assert.ok(unpacked.files.some((file) => kind.test(file)), `${kind} is in the package`);
  }
  assert.deepEqual(unpacked.files.filter((file) => !kinds.some((kind) => kind.test(file))), []);
});

/** Runs `body` in the page with its players, and gives what it returns. */
const withPlayers = (page, body, argument) => page.evaluate(`(${body})([...document.querySelectorAll("namecast-player")], ${JSON.stringify(argument)})`);
const playing = (page, which) => page.waitForFunction((which) => which.every((index) => document.querySelectorAll("namecast-player")[index]?.readyState === 4), which, { timeout: 60_000 });
/** Faces of pages, and Interests that came from each. */
const faces = async () => (await node.node()).faces.filter(({ remote }) => /^(wss?|webtransport|quic|https?):/.test(remote)).map(({ id, incoming }) => ({ id, interests: incoming.interests }));

test("two play on a page of another origin, and one that is paused costs no network", async () => {
  const { page, errors } = await openExample(browser, site, node);
  try {
    await page.evaluate(() => {
      globalThis.heard = [];
      for (const player of document.querySelectorAll("namecast-player")) {
        for (const name of ["play", "playing", "pause", "waiting", "loadedmetadata", "volumechange", "error"]) {
          player.addEventListener(name, () => globalThis.heard.push(name));
        }
      }
    });
    await playing(page, [0, 1]);
    const state = await withPlayers(page, (players) => players.map(({ paused, muted, volume, readyState, duration, error, videoWidth }) => ({ paused, muted, volume, readyState, isEndless: duration === Infinity, error, isKnown: videoWidth > 0 })));
    assert.deepEqual(state, Array(2).fill({ paused: false, muted: true, volume: 1, readyState: 4, isEndless: true, error: null, isKnown: true }));
    assert.equal((await faces()).length, 2, "each has its own connection");

    await withPlayers(page, (players) => players[0].pause());
    for (let looks = 0; (await faces()).length > 1; looks += 1) {
      assert.ok(looks < 200, "a player that is paused keeps its connection");
      await page.waitForTimeout(50);
    }
    const [before] = await faces();
    const shown = await withPlayers(page, (players) => players.map(({ summary }) => summary.video.shown));
    await page.waitForFunction((shown) => document.querySelectorAll("namecast-player")[1].summary.video.shown > shown + 20, shown[1]);
    const [now, ...more] = await faces();
    assert.deepEqual(more, [], "the one that is paused has no connection");
    assert.ok(now.id === before.id && now.interests > before.interests, "the other goes on");
    assert.equal((await withPlayers(page, (players) => players[0].summary.video.shown)), shown[0], "nothing of the one that is paused is drawn");

    await withPlayers(page, (players) => void players[0].play());
    await playing(page, [0, 1]);
    await withPlayers(page, (players) => (players[1].volume = 0.5));
    assert.equal(await withPlayers(page, (players) => players[0].volume), 1, "volumes are apart");
    const heard = await page.evaluate(() => globalThis.heard);
    for (const name of ["playing", "pause", "play", "volumechange"]) {
      assert.ok(heard.includes(name), `${name} was told: ${heard}`);
    }
    assert.deepEqual(errors, []);
  } finally {
    await page.close();
  }
});

test("all of the picture and the controls are on each screen, and a screen reader stumbles over nothing", async () => {
  const { page } = await openExample(browser, site, node);
  try {
    await playing(page, [0, 1]);
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      await assertFits(page, "namecast-player:first-child", "the first player");
      await assertAccessible(page, "two players");
      await page.screenshot({ path: path.join(ARTIFACTS, `player-${width}x${height}.png`) });
    }
  } finally {
    await page.close();
  }
});

test("a node that does not let the page in is named, with the option that would", async () => {
  const other = await serveFiles(unpacked.directory);
  const { page } = await openExample(browser, other, node);
  try {
    const message = page.locator("namecast-player").first().locator("#sentence");
    await message.filter({ hasText: `add "${other.origin}" to allow-origins in [web]` }).waitFor();
    assert.equal(await withPlayers(page, (players) => players[0].error.code), 2);
  } finally {
    await page.close();
    other.close();
  }
});
