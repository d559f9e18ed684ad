// Two players on a page of another origin for minutes, one of them paused half of the time: whether memory stays flat and
// what a paused player costs. Not part of `npm run e2e`.
//
//   node e2e/two-players.mjs [MINUTES]

import { startBrowser } from "./lib/browser.mjs";
import { openExample, serveFiles, startNode, unpackPlayer } from "./lib/embedding.mjs";
import { encodeLadder } from "./lib/link.mjs";
import { findBinary, makeHome, residentMemory } from "./lib/processes.mjs";

const MINUTES = Number(process.argv[2] ?? 10);
const MIB = 2 ** 20;

const home = await makeHome();
const { directory } = await unpackPlayer(home.directory);
const site = await serveFiles(directory);
// Encoded before, so that the processor is the players'.
const input = ["--encoded", (await encodeLadder(home)).join(","), "--loop"];
const [browser, node] = await Promise.all([startBrowser(home.directory), findBinary().then((binary) => startNode(binary, home.directory, site.origin, input))]);
try {
  const { page, errors } = await openExample(browser, site, node);
  const session = await page.context().newCDPSession(page);
  for (let minute = 0; minute <= MINUTES; minute += 0.5) {
    await page.waitForTimeout(minute === 0 ? 15_000 : 30_000);
    const isPaused = Math.floor(minute * 2) % 2 === 1;
    const players = await page.evaluate((isPaused) => {
      const players = [...document.querySelectorAll("namecast-player")];
      const seen = players.map(({ paused, readyState, summary }) => ({ paused, readyState, shown: summary?.video.shown, freezes: summary?.video.freezes, core: summary?.coreMemory }));
      isPaused ? void players[1].play() : players[1].pause();
      return seen;
    }, isPaused);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    const faces = (await node.node()).faces.filter(({ remote }) => /^(wss?|webtransport|quic|https?):/.test(remote)).map(({ incoming }) => incoming.interests);
    const core = players.map((each) => (each.core / MIB).toFixed(1)).join(" and ");
    console.log(
      `${minute.toFixed(1)} min: shown ${players.map(({ shown }) => shown).join(" and ")}, paused ${players.map(({ paused }) => paused).join(" and ")}, page ${(usedSize / MIB).toFixed(1)} MiB, cores ${core} MiB, ` +
        `browser ${(await residentMemory(browser.pid)).toFixed(0)} MiB, Interests of each face ${faces.join(" and ")}`,
    );
  }
  console.log(errors.length === 0 ? "no errors" : errors.join("\n"));
} finally {
  await node.end();
  await browser.close();
  site.close();
  await home.remove();
}
