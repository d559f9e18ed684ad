// The page in browsers of other makers: picture, sound, past, what comes after a node that was killed, and going live. How many pictures
// a second are shown is printed, as other programs run, too.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { startFirefox, startWebKit } from "./lib/engines.mjs";
import { linksOf } from "./lib/live.mjs";
import { findBinary, freePort, makeHome, Program, startServer } from "./lib/processes.mjs";

/** Time over which pictures are counted, in milliseconds. */
const SPAN = 5_000;

let home;
let binary;
let demo;
let port;

async function startDemo() {
  demo = new Program(binary, ["demo", "--input", "test", "--port", String(port)], home.directory);
  await demo.until("answer to /node.json", async () => (await fetch(`http://127.0.0.1:${port}/node.json`)).json());
}

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  port = await freePort();
  await startDemo();
});

after(async () => {
  await demo?.end();
  await home?.remove();
});

for (const [name, start, transport] of [["Firefox", startFirefox, "webtransport"], ["WebKit", startWebKit, "websocket"]]) {
  describe(name, async () => {
    let page;
    before(async () => {
      page = await start(home.directory);
      await page?.open(`http://127.0.0.1:${port}/?view=inspect`);
    });
    after(async () => page?.end());

    /** A test that is left out where the browser is missing. */
    const check = (what, body) =>
      test(what, async (context) => {
        if (page === null) {
          context.skip(`${name} is not installed: scripts/install.sh engines`);
          return;
        }
        await body();
      });
    const stats = () => page.run("return globalThis.namecast.stats();");

    check("shows verified pictures in order", async () => {
      await page.until("pictures", "namecast.stats().video.shown > 60");
      const first = await stats();
      const begun = performance.now();
      await new Promise((resolve) => setTimeout(resolve, SPAN));
      const last = await stats();
      const rate = ((last.video.shown - first.video.shown) * 1_000) / (performance.now() - begun);
      console.log(`${name}: ${rate.toFixed(1)} of 30 pictures a second by ${last.transport}`);
      assert.equal(last.transport, transport);
      assert.equal(last.signer?.trusted, true);
      assert.equal(last.verificationFailures, 0);
      assert.equal(last.video.decoderErrors, 0);
      const positions = await page.run("return namecast.shown.map(({ position }) => position);");
      assert.ok(positions.every((position, at) => at === 0 || position > positions[at - 1]), "pictures in order");
    });

    check("shows figures and times", async () => {
      await page.until("a sentence", "/^Live · \\d+p/.test(namecast.state().sentence)");
      const empty = await page.run(`return [...document.querySelectorAll("dd, output")].every((place) => place.textContent === "");`);
      assert.equal(empty, false, "the instruments show something");
    });

    check("plays sound in step", async () => {
      const button = `document.querySelector("namecast-player").shadowRoot.getElementById("sound")`;
      await page.click(button);
      await page.until("sound", `namecast.stats().audio.state === "playing" && namecast.stats().audio.offset !== null`);
      await page.click(button);
      await page.until("silence", `namecast.stats().audio.state === "off"`);
    });

    check("goes back in time, and to live again", async () => {
      const wanted = await page.run("const wanted = Date.now() - 4000; namecast.seek(wanted); return wanted;");
      await page.until("the past", `namecast.state().kind === "past" && Math.abs(namecast.shown.at(-1).capturedAt - ${wanted}) < 4000`);
      await page.run("namecast.seek(null);");
      await page.until("live pictures", "namecast.state().kind === 'live' && Date.now() - namecast.shown.at(-1).capturedAt < 2000");
    });

    check("plays on after the node was killed and came back", async () => {
      await demo.end("SIGKILL");
      await page.until("an end", "namecast.state().kind !== 'live'");
      await startDemo();
      await page.until("live pictures", "namecast.state().kind === 'live' && Date.now() - namecast.shown.at(-1).capturedAt < 2000");
    });

    check("goes live with camera and microphone", async () => {
      const socket = path.join(home.directory, `${name}.sock`);
      const args = ["forwarder", "--udp", "off", "--tcp", "off", "--unix", socket, "--json", "--allow-publish", "/cam"];
      const server = await startServer(binary, args, home.directory);
      const figures = path.join(home.directory, `${name}.jsonl`);
      let watcher;
      try {
        await page.open((await linksOf(server.program))["/cam"]);
        await page.click(`document.getElementById("go")`);
        await page.until("going live", `namecastLive.state === "live" && namecastLive.link !== ""`);
        const key = /key=(\w+)/.exec(await page.run("return namecastLive.link;"))[1];
        watcher = new Program(binary, ["watch", "/cam", "--key", key, "--output", path.join(home.directory, `${name}.mkv`), "--stats", figures, "--connect", `unix://${socket}`], home.directory);
        const last = async () => JSON.parse((await readFile(figures, "utf8")).trimEnd().split("\n").at(-1));
        await watcher.until("two seconds of film", async () => (await last()).video?.rendered >= 60);
        await watcher.end("SIGINT");
        const final = await last();
        console.log(`${name}: ${final.video.rendered} pictures and ${final.audio.rendered} packets of sound`);
        assert.equal(final.video.verification_failures, 0);
        assert.ok(final.audio.rendered > 20, JSON.stringify(final.audio));
      } finally {
        await watcher?.end();
        await server.program.end();
      }
    });
  });
}
