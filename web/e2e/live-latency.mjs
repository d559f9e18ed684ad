// Glass to glass of a tab that is live beside the native publisher's: same size, rate and machine, in turns.
// NAMECAST_BIN names the binary; the first argument is the number of rounds.

import { openPage, startBrowser } from "./lib/browser.mjs";
import { CLOCK_CAMERA, linksOf, openLive } from "./lib/live.mjs";
import { findBinary, makeHome, startServer } from "./lib/processes.mjs";
import { startPusher } from "./lib/whip.mjs";

/** Time until playback is settled, and time that is measured, in milliseconds. */
const SETTLING = 2_000;
const MEASURED = 8_000;

const rounds = Number(process.argv[2] ?? 3);
const binary = await findBinary();
const home = await makeHome();
const [browser, pusher] = await Promise.all([startBrowser(home.directory), startPusher(home.directory)]);

/** Ages of the pictures when they are seen at `url`. */
async function ages(url) {
  const player = await openPage(browser, `${url}&rung=1M`);
  await player.untilStats("30 frames", ({ video }) => video.shown >= 30);
  await player.page.waitForTimeout(SETTLING);
  const before = (await player.samples()).length;
  await player.page.waitForTimeout(MEASURED);
  const seen = (await player.samples()).slice(before).map(({ time, seenAt }) => seenAt - time);
  await player.close();
  return seen.sort((a, b) => a - b);
}

function print(what, seen) {
  const at = (share) => seen[Math.floor(seen.length * share)].toFixed(0);
  console.log(`${what}: median ${at(0.5)} ms, 95 % ${at(0.95)} ms of ${seen.length} pictures`);
}

try {
  for (let round = 0; round < rounds; round += 1) {
    const demo = await startServer(binary, ["demo", "--ladder", "300k,1M", "--quiet"], home.directory);
    print("native", await ages(`${demo.url}?name=/demo`));
    await demo.program.end();
    const forwarder = ["forwarder", "--udp", "off", "--tcp", "off", "--unix", "off", "--json", "--allow-publish", "/cam"];
    const server = await startServer(binary, forwarder, home.directory);
    const live = await openLive(pusher, (await linksOf(server.program))["/cam"], CLOCK_CAMERA);
    print("tab", await ages(await live.goLive()));
    await live.close();
    await server.program.end();
  }
} finally {
  await browser.close();
  await pusher.close();
  await home.remove();
}
