// Compares the page's player with hls.js in one run: both play what one publisher sends, from one node, in turns.
//
//   scripts/compare-player --help
//
// Ratios within a run count: other work on the machine is in all figures alike.

import { execFile, spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs, promisify } from "node:util";
import { startBrowser } from "./lib/browser.mjs";
import { startNode } from "./lib/embedding.mjs";
import { lateDecoder, watchPictures, watchSound } from "./lib/player-probes.mjs";
import { processorTimes, proportionalMemory, spent, stopPartly } from "./lib/process-tree.mjs";
import { profile, report, threadTimes } from "./lib/profile.mjs";
import { findBinary, makeHome } from "./lib/processes.mjs";

const HLS = path.resolve(import.meta.dirname, "../node_modules/hls.js/dist/hls.min.js");
/** How long a player may take until it plays, and then is left alone before it is measured, in milliseconds. */
const START = 60_000;
const SETTLE = 5_000;
/** A gap between two pictures that people notice, in milliseconds. */
const FREEZE = 200;
/** Length of a profile, in milliseconds, and the least share of a core with which a thread is printed. */
const PROFILE = 5_000;
const THREAD_SHARE = 0.005;
/** Place of the page's player in a window of 1280 × 900: scaling a picture costs more than decoding it, so hls.js gets the same one. */
const PLACE = "position: fixed; left: 24px; top: 64px; width: 1232px; height: 693px; background: #050807";
/** Length of the film, in seconds, which is published over and over. */
const FILM = 20;

const USAGE = `scripts/compare-player [options]
  --turns N          turns of each player; medians are printed (3)
  --seconds S        length of a turn (15)
  --players LIST     of hls, ours, smooth: ours with that latency, canvas: ours drawing on one (hls,ours)
  --loops N          endless loops beside (0)
  --stopped SHARE    share of the time for which the browser is stopped, such as 0.75 (0)
  --late MS          a video decoder that gives each picture this much later, for ours only (0)
  --sound            with sound; share of silence is measured of ours
  --size WxH --fps N --rate KBIT   of the film (1280x720, 30, 3000)
  --json FILE        writes all turns
  --profile DIR      after each turn profiles page and worker for 5 s, prints where the time goes by thread and function, and writes
                     files for the developer tools; with names if the page was built by
                     CARGO_PROFILE_WASM_STRIP=none NAMECAST_NAMES=1 cargo xtask web`;

const { values: options } = parseArgs({
  options: {
    turns: { type: "string", default: "3" },
    seconds: { type: "string", default: "15" },
    players: { type: "string", default: "hls,ours" },
    loops: { type: "string", default: "0" },
    stopped: { type: "string", default: "0" },
    late: { type: "string", default: "0" },
    sound: { type: "boolean", default: false },
    size: { type: "string", default: "1280x720" },
    fps: { type: "string", default: "30" },
    rate: { type: "string", default: "3000" },
    json: { type: "string" },
    profile: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function median(values) {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return known[Math.floor(known.length / 2)] ?? null;
}

/** Encodes the film, so that nothing is encoded while players are measured. */
async function encodeFilm(home) {
  const { size, fps, rate } = options;
  const file = path.join(home.directory, "film.mp4");
  const input = `-f lavfi -i testsrc2=size=${size}:rate=${fps},noise=alls=12:allf=t -f lavfi -i sine=frequency=440:sample_rate=48000`;
  const codec = `-c:v libx264 -preset veryfast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -g ${fps} -keyint_min ${fps} -sc_threshold 0`;
  const rates = `-b:v ${rate}k -maxrate ${rate}k -bufsize ${Number(rate) / 2}k -c:a libopus -b:a 64k -t ${FILM}`;
  await promisify(execFile)("ffmpeg", ["-loglevel", "error", ...`${input} ${codec} ${rates}`.split(" "), file]);
  return file;
}

/** Opens hls.js on an empty page of the node. */
async function openHls(page, node) {
  await page.goto(`${node.url}nothing-here`);
  // As a script of its own it would be refused: the node allows the page's only.
  await page.evaluate(await readFile(HLS, "utf8"));
  await page.evaluate(
    ({ playlist, muted, place }) => {
      const video = document.createElement("video");
      video.muted = muted;
      video.style = place;
      document.body.append(video);
      const hls = new globalThis.Hls({ liveSyncDurationCount: 1 });
      hls.loadSource(playlist);
      hls.attachMedia(video);
      hls.on(globalThis.Hls.Events.MANIFEST_PARSED, () => video.play());
    },
    { playlist: `${node.url}hls/show/index.m3u8`, muted: !options.sound, place: PLACE },
  );
  await page.waitForFunction(() => document.querySelector("video").currentTime > 1, undefined, { timeout: START });
}

/** Opens the page, which plays by itself. */
async function openOurs(page, node, more) {
  await page.goto(`${node.url}?name=/show&${more}`);
  await page.waitForFunction(() => globalThis.namecast?.stats()?.video.shown > 30, undefined, { timeout: START });
  if (options.sound) {
    await page.evaluate(() => (document.getElementById("player").muted = false));
    await page.waitForFunction(() => globalThis.namecast.stats().audio.state === "playing", undefined, { timeout: START });
  }
}

const OPEN = {
  hls: openHls,
  ours: (page, node) => openOurs(page, node, "target=100"),
  smooth: (page, node) => openOurs(page, node, "target=400"),
  canvas: (page, node) => openOurs(page, node, "target=100&screen=canvas"),
};

/** Plays once, in a browser of its own. */
async function turn(player, node) {
  const home = await makeHome();
  const browser = await startBrowser(home.directory, ["--autoplay-policy=no-user-gesture-required"]);
  let release = () => undefined;
  try {
    const page = await browser.context.newPage();
    await page.setViewportSize({ width: 1280, height: 900 });
    if (Number(options.late) > 0 && player !== "hls") {
      await page.addInitScript(lateDecoder, Number(options.late));
    }
    await OPEN[player](page, node);
    if (options.sound && player !== "hls") {
      await page.evaluate(watchSound);
    }
    release = stopPartly(browser.pid, Number(options.stopped));
    await wait(SETTLE);
    await page.evaluate(watchPictures);
    const [threads, before, begun] = [await threadTimes(browser.pid), await processorTimes(browser.pid), performance.now()];
    await wait(Number(options.seconds) * 1_000);
    const after = await processorTimes(browser.pid);
    const seconds = (performance.now() - begun) / 1_000;
    const { pictures, silence, stats } = await page.evaluate(() => ({ pictures: globalThis.pictures, silence: globalThis.silence?.share() ?? null, stats: globalThis.namecast?.stats() ?? null }));
    if (options.profile !== undefined) {
      printThreads(player, threads, await threadTimes(browser.pid), seconds);
      await report(await profile(page, PROFILE), options.profile, player);
    }
    const gaps = pictures.slice(1).map((at, index) => at - pictures[index]);
    return {
      player,
      fps: pictures.length / seconds,
      freezes: gaps.filter((gap) => gap > FREEZE).length,
      longest: Math.max(0, ...gaps),
      cores: spent(before, after) / seconds,
      memory: await proportionalMemory(browser.pid),
      silence,
      latency: stats?.latency?.p50 ?? null,
      target: stats?.playout.target ?? null,
    };
  } finally {
    await release();
    await browser.close();
    await home.remove();
  }
}

/** Prints the shares of a core that threads of the browser took. */
function printThreads(player, before, after, seconds) {
  const shares = [...after].map(([name, time]) => [name, (time - (before.get(name) ?? 0)) / seconds]);
  console.log(`\n${player}: threads, share of a core`);
  for (const [name, share] of shares.filter(([, share]) => share >= THREAD_SHARE).sort(([, one], [, other]) => other - one)) {
    console.log(`${share.toFixed(3).padStart(7)}  ${name}`);
  }
}

const COLUMNS = [
  ["fps", "fps", 1],
  ["freezes", "freezes", 0],
  ["longest", "longest gap, ms", 0],
  ["cores", "cores", 2],
  ["memory", "MiB", 0],
  ["silence", "silence, %", 2],
  ["latency", "latency, ms", 0],
  ["target", "target, ms", 0],
];

function print(cells) {
  console.log(cells.map((cell, index) => (index === 0 ? cell.padEnd(8) : cell.padStart(16))).join(""));
}

async function main() {
  if (options.profile !== undefined) {
    await mkdir(options.profile, { recursive: true });
  }
  const home = await makeHome();
  const node = await startNode(await findBinary(), home.directory, undefined, ["--encoded", await encodeFilm(home), "--loop"]);
  const loops = Array.from({ length: Number(options.loops) }, () => spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" }));
  const turns = [];
  const players = options.players.split(",");
  print(["", ...COLUMNS.map(([, title]) => title)]);
  const line = (name, row) => print([name, ...COLUMNS.map(([field, , digits]) => (row[field] === null ? "–" : row[field].toFixed(digits)))]);
  try {
    for (let round = 0; round < Number(options.turns); round += 1) {
      for (const player of round % 2 === 0 ? players : players.toReversed()) {
        turns.push(await turn(player, node));
        line(player, turns.at(-1));
      }
    }
  } finally {
    loops.forEach((loop) => loop.kill("SIGKILL"));
    await node.end();
    await home.remove();
  }
  console.log(`\nMedians of ${options.turns} turns of ${options.seconds} s, ${options.size} at ${options.fps} fps, ${options.rate} kbit/s, ${options.loops} loops, stopped ${options.stopped} of the time, decoder ${options.late} ms late:`);
  const medians = Object.fromEntries(
    players.map((player) => {
      const own = turns.filter((each) => each.player === player);
      return [player, Object.fromEntries(COLUMNS.map(([field]) => [field, median(own.map((each) => each[field]))]))];
    }),
  );
  Object.entries(medians).forEach(([player, row]) => line(player, row));
  if (options.json !== undefined) {
    await writeFile(options.json, JSON.stringify({ options, medians, turns }, null, 1));
  }
}

if (options.help) {
  console.log(USAGE);
} else {
  await main();
}
