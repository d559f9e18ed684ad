// The npm package as other projects use it: bundled by Vite, with React, typed in TSX, and imported on a server.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { buildSite, openSite, startSite } from "./lib/embedding.mjs";

const run = promisify(execFile);
const WEB = path.resolve(import.meta.dirname, "..");

const INDEX = '<!doctype html><html lang="en"><title>Site</title><div id="root"></div><script type="module" src="/main.js"></script></html>';

/** Shows the stream of the address; `globalThis.change` sets further properties. */
const MAIN = `
import { createElement, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { NamecastPlayer } from "namecast-player/react";
globalThis.states = [];
globalThis.pauses = [];
function Site() {
  const player = useRef(null);
  const [more, change] = useState({});
  Object.assign(globalThis, { change, player });
  return createElement(NamecastPlayer, {
    ref: player, className: "wide", src: new URLSearchParams(location.search).get("src"), autoplay: true, muted: true, controls: false,
    onStateChange: () => globalThis.states.push(player.current.state.kind), ...more,
  });
}
createRoot(document.getElementById("root")).render(createElement(Site));
`;

const SERVER = `
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import "namecast-player";
import { NamecastPlayer } from "namecast-player/react";
console.log(renderToString(createElement(NamecastPlayer, { id: "show", src: "https://node.example/?name=/show", autoplay: true, onPlay: () => undefined })));
`;

/** Each line under @ts-expect-error is an error that the types must find. */
const TYPED = `
import { createRef } from "react";
import type { NamecastPlayer as Element } from "namecast-player";
import { NamecastPlayer } from "namecast-player/react";
const player = createRef<Element>();
export const component = <NamecastPlayer ref={player} src="https://node.example/?name=/show" autoplay muted className="wide" onStateChange={(event) => event.currentTarget.state.sentence} />;
export const element = <namecast-player ref={player} src="https://node.example/?name=/show" controls />;
export const height: number | undefined = player.current?.videoHeight;
// @ts-expect-error
export const wrongFlag = <NamecastPlayer autoplay="yes" />;
// @ts-expect-error
export const wrongEvent = <NamecastPlayer onStateChanged={() => undefined} />;
// @ts-expect-error
export const wrongElement = <namecast-player src={5} />;
`;

let world;
let project;

before(async () => {
  world = await startSite(async ({ directory }) => {
    project = await buildSite(directory, { "index.html": INDEX, "main.js": MAIN, "server.mjs": SERVER, "typed.tsx": TYPED });
    return project.built;
  });
});

after(() => world?.end());

test("a site that Vite built plays, and follows what React changes", async () => {
  const { page, errors } = await openSite(world);
  try {
    await page.waitForFunction(() => globalThis.player?.current?.readyState === 4 && globalThis.player.current.state.kind === "live", null, { timeout: 60_000 });
    const player = () =>
      page.evaluate(() => {
        const { paused, muted, autoplay, controls, background, className, videoWidth } = globalThis.player.current;
        return { paused, muted, autoplay, controls, background, className, isKnown: videoWidth > 0 };
      });
    const first = { paused: false, muted: true, autoplay: true, controls: false, background: false, className: "wide", isKnown: true };
    assert.deepEqual(await player(), first);
    const states = await page.evaluate(() => globalThis.states);
    assert.equal(states.at(-1), "live", states.join(" "));

    await page.evaluate(() => (globalThis.player.current.muted = false));
    await page.evaluate(() => globalThis.change({ background: true, autoplay: false, onPause: () => globalThis.pauses.push("first") }));
    await page.waitForFunction(() => globalThis.player.current.background);
    assert.deepEqual(await player(), { ...first, background: true, autoplay: false, muted: false }, "sound stays as the person left it");

    await page.evaluate(() => globalThis.change({ onPause: () => globalThis.pauses.push("second"), className: "slim" }));
    await page.waitForFunction(() => globalThis.player.current.className === "slim");
    assert.equal((await player()).background, false, "a property that is gone removes the attribute");
    await page.evaluate(() => globalThis.player.current.pause());
    await page.waitForFunction(() => globalThis.pauses.length > 0);
    assert.deepEqual(await page.evaluate(() => globalThis.pauses), ["second"], "the latest listener alone is called");
    assert.deepEqual(errors, []);
  } finally {
    await page.close();
  }
});

test("sound comes from a site that Vite built", async () => {
  const { page } = await openSite(world);
  try {
    await page.waitForFunction(() => globalThis.player?.current?.readyState === 4, null, { timeout: 60_000 });
    await page.locator("namecast-player").click();
    await page.evaluate(() => (globalThis.player.current.muted = false));
    await page.waitForFunction(() => globalThis.player.current.summary.audio.state === "playing" && globalThis.player.current.summary.audio.offset !== null, null, { timeout: 30_000 });
  } finally {
    await page.close();
  }
});

test("a server imports it, and renders the bare element", async () => {
  const { stdout } = await run(process.execPath, ["server.mjs"], { cwd: project.root });
  assert.equal(stdout.trim(), '<namecast-player id="show"></namecast-player>');
});

test("TSX is typed, as a component and as an element", async () => {
  const args = ["--noEmit", "--strict", "--jsx", "react-jsx", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2023", "--lib", "es2023,dom,dom.iterable", "--types", "", "typed.tsx"];
  await run(path.join(WEB, "node_modules/.bin/tsc"), args, { cwd: project.root }).catch(({ stdout }) => assert.fail(stdout));
});
