// Prints the figures that an idle machine must reach. Nothing of it is part of `npm run e2e`: a busy machine is no defect.
//
//   npm run measure [-- NAME…]      first slow join steady sound restart cut hidden link whip

import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { openPage, startBrowser } from "./lib/browser.mjs";
import { encodeLadder, openBehindLink, SLOW, playback, qualities, rightRung, timeTo } from "./lib/link.mjs";
import { push, startPusher } from "./lib/whip.mjs";
import { findBinary, freePort, makeHome, Program, residentMemory, startServer } from "./lib/processes.mjs";

const JOINS = 7;
const STEADY = 60_000;
const HIDDEN = 60_000;
const CUT = 5_000;
/** What memory may differ by without having grown, in MiB: of JavaScript, of the core, and of all of Chromium's processes. */
const ROOM = { javascript: 4, core: 2, browser: 80 };
/** What the page may add to encoding, decoding and the target, in milliseconds. */
const MARGIN = 40;

const rows = [];

/** Notes a figure, and the bound it should keep. */
function note(what, value, bound, unit = "ms") {
  const digits = unit === "%" ? 2 : 1;
  const ok = bound === undefined ? "" : (bound.max === undefined ? value >= bound.min : value <= bound.max) ? "ok" : "MISSED";
  const limit = bound === undefined ? "" : bound.max === undefined ? `≥ ${bound.min}` : `≤ ${bound.max.toFixed(digits)}`;
  rows.push({ what, value, unit, limit, ok });
  console.log(`${what.padEnd(64)} ${value.toFixed(digits).padStart(9)} ${unit.padEnd(4)} ${limit.padEnd(10)} ${ok}`);
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Opens the page in a browser that has never seen it, and gives its first picture and the steps on the way, in milliseconds. */
async function openFresh(url, view, throttle) {
  const home = await makeHome();
  const browser = await startBrowser(home.directory);
  try {
    await wait(1_000);
    const page = await browser.context.newPage();
    if (throttle !== undefined) {
      await (await page.context().newCDPSession(page)).send("Network.emulateNetworkConditions", { offline: false, ...throttle });
    }
    await page.goto(`${url}${url.includes("?") ? "&" : "?"}view=${view}`);
    await page.waitForFunction(() => globalThis.namecast?.stats()?.firstFrame, undefined, { timeout: 60_000 });
    return await page.evaluate(() => {
      const steps = globalThis.namecast.steps.map(({ at, text }) => [text.replace(/[:/].*/, ""), at - performance.timeOrigin]);
      const files = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".wasm")).map(({ responseEnd }) => ["core fetched", responseEnd]);
      const { responseEnd, domContentLoadedEventStart } = performance.getEntriesByType("navigation")[0];
      return { first: globalThis.namecast.stats().firstFrame, steps: [["page fetched", responseEnd], ["script run", domContentLoadedEventStart], ...files, ...steps] };
    });
  } finally {
    await browser.close();
    await home.remove();
  }
}

/** Fresh browsers on this machine, and where the time of the median goes. */
async function first({ demo }) {
  for (const view of ["watch", "inspect"]) {
    const opened = [];
    for (let round = 0; round < JOINS; round += 1) {
      opened.push(await openFresh(demo.url, view));
    }
    opened.sort((a, b) => a.first - b.first);
    const { steps } = opened[Math.floor(JOINS / 2)];
    note(`first picture in a fresh browser, ${view}, median`, median(opened.map(({ first }) => first)), { max: 300 });
    note(`first picture in a fresh browser, ${view}, least`, opened[0].first);
    console.log(`  ${steps.map(([what, at]) => `${what} ${at.toFixed(0)}`).join(", ")}`);
  }
}

/** The same where media come by a link of 5 Mbit/s and 40 ms, and the page's files as well. */
async function slow({ binary, home }) {
  const ladder = await encodeLadder(home);
  const throttle = { latency: 40, downloadThroughput: 5e6 / 8, uploadThroughput: 5e6 / 8 };
  for (const view of ["watch", "inspect"]) {
    const open = async (url) => ({ opened: [await openFresh(url, view), await openFresh(url, view, throttle)], close: async () => undefined });
    const { player, close } = await openBehindLink({ binary, home, ladder, link: SLOW, open });
    note(`first picture over 5 Mbit/s and 40 ms, ${view}`, player.opened[0].first, { max: 1_200 });
    note(`first picture with the page's files over such a link, too, ${view}`, player.opened[1].first, { max: 1_200 });
    console.log(`  ${player.opened[1].steps.map(([what, at]) => `${what} ${at.toFixed(0)}`).join(", ")}`);
    await close();
  }
}

/** From opening the page to the first picture, each time in a fresh tab. */
async function join({ browser, demo }) {
  const drawn = [];
  const seen = [];
  for (let round = 0; round < JOINS; round += 1) {
    const player = await openPage(browser, demo.url);
    await player.untilStats("a frame", ({ firstFrame }) => firstFrame !== null);
    await player.untilCaptured(0);
    drawn.push((await player.stats()).firstFrame);
    seen.push(await player.page.evaluate(() => globalThis.sampler.samples[0].seenAt - performance.timeOrigin));
    await player.close();
  }
  note("first frame drawn after opening the page, median", median(drawn), { max: 1_000 });
  note("first frame drawn after opening the page, worst", Math.max(...drawn), { max: 1_000 });
  note("first clock read off the canvas, median", median(seen), { max: 1_000 });
}

/** A minute of plain playing. */
async function steady({ browser, demo }) {
  const player = await openPage(browser, `${demo.url}?target=100`);
  await player.untilStats("frames", ({ video }) => video.shown > 90);
  const before = { stats: await player.stats(), at: Date.now() };
  await player.page.evaluate(() => globalThis.sampler.samples.splice(0));
  await wait(STEADY);
  const [stats, samples, shown] = [await player.stats(), await player.samples(), await player.shown()];
  const gaps = samples.slice(1).map((sample, index) => sample.seenAt - samples[index].seenAt);
  note("freezes longer than 200 ms seen on the canvas in 60 s", gaps.filter((gap) => gap > 200).length, { max: 0 }, "");
  note("longest time between two pictures seen", Math.max(...gaps), { max: 200 });
  const frames = shown.filter(({ shownAt }) => shownAt >= before.at);
  const span = frames.at(-1).position - frames[0].position + 1;
  note("share of frames shown", (100 * frames.length) / span, { min: 99.5 }, "%");
  const age = median(samples.map(({ seenAt, time }) => seenAt - time));
  const { encode, decode } = stats.stages;
  note("glass to glass by the burned-in clock, median", age, { max: encode + decode + stats.target + MARGIN });
  note("glass to glass as the panel says, median", stats.latency.p50);
  for (const [stage, time] of Object.entries(stats.stages)) {
    note(`  of it ${stage}`, time);
  }
  note("frames overtaken or late in 60 s", stats.video.overtaken + stats.video.late - before.stats.video.overtaken - before.stats.video.late, undefined, "");
  await player.close();
}

/** Beep against flash, both taken where a person would: at the output of the audio graph, and off the canvas. */
async function sound({ browser, demo }) {
  const player = await openPage(browser, demo.url);
  await player.untilCaptured(0);
  await player.page.click("#sound");
  await player.untilStats("sound", ({ audio }) => audio.state === "playing");
  await wait(3_000);
  const detector = await readFile(path.join(import.meta.dirname, "lib/beep.js"), "utf8");
  await player.page.evaluate(async (detector) => {
    const { context, node } = globalThis.namecast.sound;
    await context.audioWorklet.addModule(URL.createObjectURL(new Blob([detector], { type: "text/javascript" })));
    const ear = new AudioWorkletNode(context, "beep-detector", { numberOfOutputs: 0 });
    node.connect(ear);
    globalThis.beeps = [];
    ear.port.onmessage = ({ data: at }) => {
      const { contextTime, performanceTime } = context.getOutputTimestamp();
      globalThis.beeps.push(performance.timeOrigin + performanceTime + (at - contextTime) * 1_000);
    };
    globalThis.sampler.samples.splice(0);
  }, detector);
  await wait(20_000);
  const [beeps, samples, stats] = [await player.page.evaluate(() => globalThis.beeps), await player.samples(), await player.stats()];
  // A beep belongs to a full second of the wall clock, and so does the picture's own time.
  const pictureAge = median(samples.map(({ seenAt, time }) => seenAt - time));
  const soundAge = beeps.map((at) => at % 1_000);
  note("beeps heard in 20 s", beeps.length, { min: 18 }, "");
  note("age of sound (beep), median", median(soundAge));
  note("age of picture (clock), median", pictureAge);
  note("sound and picture apart, median", Math.abs(median(soundAge) - pictureAge), { max: 45 });
  note("sound and picture apart, worst beep", Math.max(...soundAge.map((age) => Math.abs(age - pictureAge))), { max: 45 });
  const flashes = samples.filter((sample) => sample.flash !== sample.time % 1_000 < 100).length;
  note("pictures whose flash contradicts their clock", flashes, undefined, "");
  note("sound and picture apart, as the panel says", Math.abs(stats.audio.offset), { max: 45 });
  note("underruns of sound", stats.audio.underruns, undefined, "");
  note("jumps of sound", stats.audio.jumps, undefined, "");
  await player.close();
}

/** The publisher's process is killed and started again, behind a forwarder that lives on. */
async function restart({ browser, binary, home }) {
  const tcp = await freePort();
  const forwarder = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", `127.0.0.1:${tcp}`], home.directory);
  const publish = () => new Program(binary, ["publish", "/show", "--input", "test", "--connect", `tcp4://127.0.0.1:${tcp}`], home.directory);
  let publisher = publish();
  const player = await openPage(browser, `${forwarder.url}?name=/show`);
  await player.untilCaptured(0);
  const times = [];
  for (let round = 0; round < 3; round += 1) {
    await wait(3_000);
    await publisher.end("SIGKILL");
    await wait(2_000);
    const begun = Date.now();
    publisher = publish();
    await player.untilCaptured(begun);
    times.push(Date.now() - begun);
  }
  note("playing again after the publisher was started again, median", median(times), { max: 3_000 });
  note("playing again after the publisher was started again, worst", Math.max(...times), { max: 3_000 });
  await player.close();
  await publisher.end();
  await forwarder.program.end();
}

/** Five seconds without a transport. */
async function cut({ browser, demo }) {
  for (const kind of ["blackhole", "disconnect"]) {
    const player = await openPage(browser, demo.url);
    await player.untilStats("frames", ({ video }) => video.shown > 60);
    await player.fault({ kind, milliseconds: CUT });
    const backAt = Date.now() + CUT;
    await player.untilCaptured(backAt);
    note(`playing again after a cut of 5 s (${kind})`, Date.now() - backAt, { max: 3_000 });
    await player.close();
  }
}

/** A minute behind another tab. */
async function hidden({ browser, demo }) {
  const player = await openPage(browser, demo.url);
  await player.untilStats("frames", ({ video }) => video.shown > 300);
  const memory = async () => {
    // Of page and worker together; the browser answers when it next collects garbage, which takes some seconds.
    const { bytes } = await player.page.evaluate(() => performance.measureUserAgentSpecificMemory());
    const { coreMemory } = await player.stats();
    return { javascript: bytes / 2 ** 20, core: coreMemory / 2 ** 20, browser: await residentMemory(browser.pid) };
  };
  const other = await browser.context.newPage();
  await player.page.bringToFront();
  await player.untilCaptured(Date.now());
  const before = await memory();
  await other.bringToFront();
  await player.page.waitForFunction(() => document.hidden);
  await wait(HIDDEN);
  const shownAt = Date.now();
  await player.page.bringToFront();
  // Live: what is seen is no older than usual, with the target of 100 ms.
  let clock = await player.untilCaptured(shownAt - 1_000);
  while (Date.now() - clock.time > 300) {
    clock = await player.untilCaptured(clock.time);
  }
  note("live after having been hidden for 60 s", Date.now() - shownAt, { max: 1_000 });
  const after = await memory();
  for (const part of ["javascript", "core", "browser"]) {
    note(`memory before hiding: ${part}`, before[part], undefined, "MiB");
    note(`memory after 60 s hidden: ${part}`, after[part], { max: before[part] + ROOM[part] }, "MiB");
  }
  await other.close();
  await player.close();
}

/** A link of 4 Mbit/s, first as it is and then with ten seconds of 1 Mbit/s. */
async function link({ browser, binary, home }) {
  const [begin, down, up, end] = [4, 14, 24, 36];
  const ladder = await encodeLadder(home);
  const run = async (changes) => {
    const { player, madeAt, close } = await openBehindLink({ binary, browser, home, ladder, changes });
    try {
      const at = (seconds) => madeAt + seconds * 1_000;
      await wait(at(end) - Date.now());
      const [{ rungs }, shown] = [await player.stats(), await player.shown()];
      const record = qualities(shown);
      const longest = [[begin, down], [down, up], [up, end]].map(([from, to]) => playback(shown, at(from), at(to)).longest);
      const [high, low] = [rightRung(rungs, "high"), rightRung(rungs, "low")];
      console.log(`  qualities: ${record.map(({ at: since, rung }) => `${((since - madeAt) / 1_000).toFixed(2)} s ${rung}`).join(", ")}`);
      const fits = new Set(rungs.slice(rungs.findIndex(({ name }) => name === low)).map(({ name }) => name));
      return { longest, toLow: timeTo((rung) => fits.has(rung), record, at(down), at(up)), toHigh: timeTo((rung) => rung === high, record, at(up)) };
    } finally {
      await close();
    }
  };
  const steady = await run([]);
  const constant = Math.max(...steady.longest);
  note("longest freeze at a constant 4 Mbit/s", constant);
  const stepped = await run([{ at: down, to: "low" }, { at: up, to: "high" }]);
  note("longest freeze from 4 to 1 and back to 4 Mbit/s", Math.max(...stepped.longest), { max: Math.max(500, constant + 300) });
  stepped.longest.forEach((longest, phase) => note(`  of it in phase ${phase + 1}`, longest));
  note("to a quality that fits after the link became slow", stepped.toLow, { max: 2_000 });
  note("to the right quality after the link became fast again", stepped.toHigh, { max: 10_000 });
}

/** A tab pushes by WHIP, another one watches; ten times it comes and is closed without a word. */
async function whip({ browser, binary, home }) {
  const server = await startServer(binary, ["serve", "--whip-port", "0", "--rtmp", "off", "--srt", "off"], home.directory);
  const pusher = await startPusher(home.directory);
  const player = await openPage(browser, `${server.url}?name=/cam&target=100`);
  const times = [];
  for (let round = 0; round < 10; round += 1) {
    const pushed = await push(pusher, server.url, "cam");
    await player.untilCaptured(pushed.postedAt);
    times.push(await player.page.evaluate((after) => globalThis.sampler.samples.find(({ time }) => time > after).seenAt - after, pushed.postedAt));
    await pushed.page.close();
  }
  console.log(`  first pictures: ${times.map((time) => time.toFixed(0)).join(", ")} ms`);
  note("WHIP: first picture seen after the POST, median of ten", median(times), { max: 2_000 });
  note("WHIP: first picture seen after the POST, worst of ten", Math.max(...times), { max: 2_000 });
  await push(pusher, server.url, "cam");
  await player.untilCaptured(Date.now());
  await wait(10_000);
  await player.page.evaluate(() => globalThis.sampler.samples.splice(0));
  await wait(20_000);
  const [stats, samples] = [await player.stats(), await player.samples()];
  const age = median(samples.map(({ seenAt, time }) => seenAt - time));
  note("WHIP: glass to glass by the burned-in clock, median", age, { max: stats.target + 150 });
  note("WHIP: glass to glass as the panel says, median", stats.latency.p50);
  note("WHIP: what the panel does not know of", age - stats.latency.p50, { max: 40 });
  note("WHIP: pictures seen in 20 s", samples.length, undefined, "");
  await player.close();
  await pusher.close();
  await server.program.end();
}

const MEASUREMENTS = { first, slow, join, steady, sound, restart, cut, hidden, link, whip };

const wanted = process.argv.slice(2);
const binary = await findBinary();
const home = await makeHome();
const browser = await startBrowser(home.directory);
const demo = await startServer(binary, ["demo", "--input", "test"], home.directory);
try {
  await wait(3_000);
  for (const [name, measure] of Object.entries(MEASUREMENTS)) {
    if (wanted.length === 0 || wanted.includes(name)) {
      console.log(`\n${name}`);
      await measure({ browser, demo, binary, home });
    }
  }
} finally {
  await demo.program.end();
  await browser.close();
  await home.remove();
}
const artifacts = path.resolve(import.meta.dirname, "artifacts");
await mkdir(artifacts, { recursive: true });
await writeFile(path.join(artifacts, "measure.json"), `${JSON.stringify(rows, null, 1)}\n`);
