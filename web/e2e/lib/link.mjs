// A page behind an emulated link whose rate changes, and what the page did about it.

import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { openPage } from "./browser.mjs";
import { freePort, Program, startServer } from "./processes.mjs";

/** Rates of the rungs, in kbit/s, and sizes: small pictures, so that decoding leaves time for the rest on two cores. */
const LADDER = [
  [200, "320x180"],
  [600, "320x180"],
  [2_500, "640x360"],
];
/** Length of the film that is published over and over, in seconds. */
const FILM = 20;
const RATE = { high: 4_000_000, low: 1_000_000 };
/** What of a link's rate video may take: the rest is names, signatures, sound and repair. */
const VIDEO_SHARE = 0.8;
/** Frames that the link queues: some 110 ms at the high rate, four times that at the low one. */
const QUEUE = 50;

/** Encodes a ladder of rates and sizes into files, so that nothing is encoded while something is measured. */
export async function encodeLadder(home, ladder = LADDER) {
  const encode = ([rate, size]) => {
    const file = path.join(home.directory, `${rate}k.mp4`);
    // Noise, so that each rung has the rate that it says.
    const picture = ["-f", "lavfi", "-i", `testsrc2=size=${size}:rate=30,noise=alls=20:allf=t`];
    const sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"];
    const codec = "-c:v libx264 -preset superfast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -g 30 -keyint_min 30 -sc_threshold 0";
    const rates = `-b:v ${rate}k -maxrate ${rate}k -bufsize ${rate / 2}k -c:a libopus -b:a 64k`;
    const output = `${codec} ${rates} -t ${FILM}`.split(" ");
    return promisify(execFile)("ffmpeg", ["-loglevel", "error", ...picture, ...sound, ...output, file]).then(() => file);
  };
  return Promise.all(ladder.map(encode));
}

/** A link on which a page must not make people wait. */
export const SLOW = `[forward]\ndelay = "40ms"\n[backward]\nrate = "5M"\ndelay = "40ms"\nqueue = { kind = "drop-tail", packets = ${QUEUE} }\n`;

/**
 * Starts a publisher and its node, the page's node, and between the nodes a UDP link that is slow towards the page.
 *
 * @param ladder files of `encodeLadder`
 * @param changes when the link's rate changes, in seconds after the link was made, and to what
 * @param link the link itself, instead of that one
 * @param open opens the page of this address
 */
export async function openBehindLink({ binary, browser, home, ladder, changes = [], link = describeLink(changes), open = (url) => openPage(browser, url) }) {
  const name = `link-${await freePort()}`;
  const file = (suffix) => path.join(home.directory, `${name}.${suffix}`);
  const [udp, relay] = [await freePort("udp"), await freePort("udp")];
  const running = [];
  const end = async () => {
    for (const program of running.toReversed()) {
      await program.end();
    }
  };
  try {
    const far = await startServer(binary, ["forwarder", "--udp", `127.0.0.1:${udp}`, "--tcp", "off", "--unix", file("far")], home.directory);
    running.push(far.program);
    const connect = ["--connect", `unix://${file("far")}`];
    const publisher = new Program(binary, ["publish", "/link", "--encoded", ladder.join(","), "--loop", "--json", ...connect], home.directory);
    running.push(publisher);
    const upstream = ["--upstream", `udp4://127.0.0.1:${relay}`];
    const near = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", file("near"), ...upstream], home.directory);
    running.push(near.program);
    // At first without the link, so that the stream is there when the link's time begins.
    await publisher.until("stream", async () => publisher.printed !== "");
    await writeFile(file("toml"), link);
    const madeAt = Date.now();
    running.push(new Program(binary, ["impair", "--listen", `127.0.0.1:${relay}`, "--to", `127.0.0.1:${udp}`, "--config", file("toml"), "--json"], home.directory));
    const player = await open(`${near.url}?name=/link`);
    return { player, madeAt, close: () => player.close().finally(end) };
  } catch (error) {
    await end();
    throw error;
  }
}

function describeLink(changes) {
  const schedule = changes.map(({ at, to }) => `{ at = "${at}s", rate = "${RATE[to]}" }`);
  return `[forward]
delay = "10ms"
[backward]
rate = "${RATE.high}"
delay = "10ms"
queue = { kind = "drop-tail", packets = ${QUEUE} }
schedule = [${schedule.join(", ")}]
`;
}

/**
 * Writes down twice a second what the watcher holds the path for, until `stop` is called, which gives all of it: what to look
 * at when it did not choose what it should have.
 */
export function trace(player, madeAt) {
  const rows = [];
  const timer = setInterval(async () => {
    const stats = await player.stats().catch(() => undefined);
    if (stats !== undefined) {
      const { path: link, rung, requestedRung, picture, rtt, rttMin } = stats;
      const { probes, holding, jitter_ms: jitter, cross } = stats.consumer.path ?? {};
      rows.push({ at: (Date.now() - madeAt) / 1_000, rung, requestedRung, picture, rtt, rttMin, ...link, jitter, cross, holding, probes });
    }
  }, 500);
  return {
    async stop(file) {
      clearInterval(timer);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    },
  };
}

/** The highest of the page's qualities (`rungs`, highest first) that the link carries at its high or low rate. */
export function rightRung(rungs, rate) {
  return (rungs.find(({ bitrate }) => bitrate <= VIDEO_SHARE * RATE[rate]) ?? rungs.at(-1)).name;
}

/** Frames shown between two times, and the longest time without a new one, in milliseconds. */
export function playback(shown, from, to) {
  const times = shown.map(({ shownAt }) => shownAt).filter((at) => at >= from && at < to);
  const edges = [from, ...times, to];
  return { frames: times.length, longest: Math.max(...edges.slice(1).map((at, index) => at - edges[index])) };
}

/** The qualities of the frames shown: each, and since when. */
export function qualities(shown) {
  const starts = shown.filter(({ rung }, index) => rung !== shown[index - 1]?.rung);
  return starts.map(({ shownAt, rung }) => ({ at: shownAt, rung }));
}

/** The quality at a time, by the record of `qualities`. */
export function rungAt(record, time) {
  return record.findLast(({ at }) => at <= time)?.rung;
}

/** How long after `from` the quality was first as `isRight` wants it, by the record of `qualities`; Infinity if never before `to`. */
export function timeTo(isRight, record, from, to = Infinity) {
  if (isRight(rungAt(record, from))) {
    return 0;
  }
  const found = record.find(({ at, rung }) => at > from && at < to && isRight(rung));
  return found === undefined ? Infinity : found.at - from;
}
