// Two viewers behind one cache behind one slow link, and what happens to them.

import { execFile } from "node:child_process";
import { access, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { startBrowser } from "./browser.mjs";
import { findBinary, freePort, makeHome, Program, startServer } from "./processes.mjs";

const ARTIFACTS = path.resolve(import.meta.dirname, "../artifacts/cache-trap");
/** Bitrates in kbit/s, and pictures. */
const LADDER = [
  [400, "426x240"],
  [1_200, "854x480"],
  [2_500, "1280x720"],
];
/** Length of the film that is published over and over, in seconds: a whole number of segments. */
const FILM = 40;
/** Content of a packet in octets: what controllers count in packets means what it means in the paper. */
const PACKET = 8_000;
/** How often figures are taken, in milliseconds. */
const INTERVAL = 500;
/** A player that waits with so much buffered, in seconds, waits for the machine and not for the network. */
const BUFFERED = 5;
const NAME = "/trap";

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Encodes the ladder into files unless they are there, so that nothing is encoded while something is measured. */
async function encodeLadder() {
  await mkdir(ARTIFACTS, { recursive: true });
  const files = [];
  for (const [rate, size] of LADDER) {
    const file = path.join(ARTIFACTS, `${rate}k.mp4`);
    files.push(file);
    if (await access(file).then(() => false, () => true)) {
      // Noise, so that each quality has the bitrate that it says.
      const picture = ["-f", "lavfi", "-i", `testsrc2=size=${size}:rate=30,noise=alls=12:allf=t`];
      const codec = "-c:v libx264 -preset veryfast -tune zerolatency -profile:v baseline -pix_fmt yuv420p -g 30 -keyint_min 30 -sc_threshold 0";
      const rates = `-b:v ${rate}k -maxrate ${rate}k -bufsize ${rate}k -t ${FILM}`;
      await promisify(execFile)("ffmpeg", ["-y", "-loglevel", "error", ...picture, ...`${codec} ${rates}`.split(" "), `${file}.part.mp4`]);
      await rename(`${file}.part.mp4`, file);
    }
  }
  return files;
}

/**
 * Publisher, slow link, and a node with a content store.
 *
 * @param run what `RUNS` of `cache-trap.mjs` says
 */
async function startNetwork(binary, home, run) {
  const file = (suffix) => path.join(home.directory, suffix);
  const [udp, relay] = [await freePort("udp"), await freePort("udp")];
  const hops = run.tags ? '["rate-feedback", "path-labels"]' : "[]";
  // The nodes are on one machine, and neighbours all the same: nobody tells applications of his own what a path carries.
  const node = async (place, listen, more) => {
    const config = `hops = ${hops}\n[listen]\nudp = [${listen}]\ntcp = []\nunix = ["${file(`${place}.sock`)}"]\n[udp]\nloopback-is-local = false\n${more}`;
    await writeFile(file(`${place}.toml`), config);
    return startServer(binary, ["forwarder", "--config", file(`${place}.toml`)], home.directory);
  };
  const ladder = await encodeLadder();
  const running = [];
  const end = async () => {
    for (const program of running.toReversed()) {
      await program.end();
    }
  };
  try {
    const far = await node("far", `"127.0.0.1:${udp}"`, "");
    running.push(far.program);
    const published = ["publish", NAME, "--package", "hls", "--encoded", ladder.join(","), "--loop", "--segment-size", String(PACKET)];
    const publisher = new Program(binary, [...published, "--json", "--connect", `unix://${file("far.sock")}`], home.directory);
    running.push(publisher);
    await publisher.until("stream", async () => publisher.printed !== "");
    const link = `--rate ${run.rate} --delay ${run.delay} ${run.queue}`.split(" ");
    running.push(
      new Program(binary, ["impair", "--listen", `127.0.0.1:${relay}`, "--to", `127.0.0.1:${udp}`, ...link, "--stats", file("link.jsonl"), "--quiet"], home.directory),
    );
    const upstream = `"udp4://127.0.0.1:${relay}"`;
    const near = await node("near", "", `[[face]]\nuri = ${upstream}\n[[route]]\nprefix = "${NAME}"\nface = ${upstream}\n`);
    running.push(near.program);
    return { url: near.url, link: file("link.jsonl"), end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** What runs in the page: notes what is fetched, and what came of it. Times are milliseconds since 1970. */
const FETCH_LOG = `(() => {
  const log = [];
  const names = new Map();
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message, ...more) {
    if (message.type === "start") {
      this.addEventListener("message", ({ data }) => {
        if (data.type === "fetched" || data.type === "unfetched") {
          const { name, begun } = names.get(data.number);
          log.push({ name, begun, ended: Date.now(), why: data.why, waited: data.waited, flowed: data.flowed, octets: data.octets?.length });
        }
      });
    } else if (message.type === "fetch") {
      names.set(message.number, { name: message.name, begun: Date.now() });
    } else if (message.type === "giveUp") {
      log.push({ ...names.get(message.number), ended: Date.now(), why: "given up" });
    }
    return postMessage.call(this, message, ...more);
  };
  globalThis.fetchLog = log;
})();`;

/** A viewer: a browser of its own, as a tab behind another one is slowed down. */
async function startViewer(number, url, run, home) {
  const profile = path.join(home.directory, `viewer-${number}`);
  const browser = await startBrowser(profile, ["--autoplay-policy=no-user-gesture-required"]);
  const address = `${url}?name=${NAME}${run.controller === undefined ? "" : `&controller=${run.controller}`}`;
  let page;
  return {
    async join() {
      page = await browser.context.newPage();
      await page.addInitScript(FETCH_LOG);
      await page.goto(address);
    },
    async leave() {
      const left = page;
      page = undefined;
      await left?.close();
    },
    /** What the page says of itself; undefined: nobody watches. */
    figures: async () =>
      page?.evaluate(() => {
        const { namecast } = globalThis;
        return { ...namecast.package(), path: namecast.stats()?.consumer.files ?? null, log: globalThis.fetchLog.splice(0) };
      }),
    close: () => browser.close(),
  };
}

/** Mean time in the queue and losses of each second, from the link's own figures, which count from its start. */
async function readLink(file, begun) {
  const lines = (await readFile(file, "utf8")).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const total = ({ dropped }) => Object.values(dropped).reduce((sum, count) => sum + count, 0);
  return lines.slice(1).map((line, index) => {
    const [now, before] = [line.backward, lines[index].backward];
    const delivered = now.delivered - before.delivered;
    const queued = now.queue_ms_mean * now.delivered - before.queue_ms_mean * before.delivered;
    const span = line.seconds - lines[index].seconds;
    return {
      at: begun(line.seconds),
      queue: delivered > 0 ? queued / delivered : 0,
      waiting: now.queue_packets,
      rate: ((now.delivered_bytes - before.delivered_bytes) * 8) / span,
      dropped: total(now) - total(before),
      disturbed: line.recent_error_ms.p99,
    };
  });
}

/**
 * Plays for `run.duration` seconds: the first viewer from the beginning, others as `run.visits` says.
 *
 * @returns rows of each viewer, twice a second, and of the link, once a second; times are seconds
 */
export async function play(run) {
  const binary = await findBinary();
  const home = await makeHome();
  const viewers = [];
  let network;
  try {
    network = await startNetwork(binary, home, run);
    const startedAt = Date.now();
    // The first viewer finds a playlist that is as long as it will ever be.
    await wait(run.lead * 1_000);
    viewers.push(...(await Promise.all([1, 2].map((number) => startViewer(number, network.url, run, home)))));
    const begunAt = Date.now();
    const now = () => (Date.now() - begunAt) / 1_000;
    const rows = [];
    const fetches = [];
    const events = run.visits.flatMap(({ viewer, from, to }) => [
      { at: from, viewer, what: "join" },
      { at: to, viewer, what: "leave" },
    ]);
    events.sort((a, b) => a.at - b.at);
    while (now() < run.duration) {
      while (events.length > 0 && events[0].at <= now()) {
        const { viewer, what } = events.shift();
        await viewers[viewer - 1][what]();
      }
      await Promise.all(
        viewers.map(async (viewer, index) => {
          const figures = await viewer.figures().catch(() => undefined);
          if (figures !== undefined) {
            const { log, ...row } = figures;
            rows.push({ at: now(), viewer: index + 1, load: os.loadavg()[0], ...row });
            fetches.push(...log.map(({ begun, ended, ...fetch }) => ({ viewer: index + 1, begun: (begun - begunAt) / 1_000, ended: (ended - begunAt) / 1_000, ...fetch })));
          }
        }),
      );
      await wait(INTERVAL - ((Date.now() - begunAt) % INTERVAL));
    }
    const link = await readLink(network.link, (seconds) => seconds - (begunAt - startedAt) / 1_000);
    const node = await (await fetch(`${network.url}status.json`)).json();
    return { run, rows, fetches, link, node };
  } finally {
    await Promise.all(viewers.map((viewer) => viewer.close()));
    await network?.end();
    await home.remove();
  }
}

/** What became of each viewer's visits. */
export function judge({ run, rows, link }) {
  const visits = run.visits.map(({ viewer, from, to }) => {
    const seen = rows.filter((row) => row.viewer === viewer && row.at >= from && row.at < to);
    const last = seen.at(-1);
    const heights = last?.switches.map(({ height }) => height) ?? [];
    const down = heights.filter((height, index) => height < (heights[index - 1] ?? 0)).length;
    const at = (height) => seen.filter((row) => row.height === height).length / Math.max(1, seen.length);
    const waits = seen.filter((row, index) => row.stalls > (seen[index - 1]?.stalls ?? 0)).map(({ buffer }) => buffer);
    const stalls = waits.filter((buffer) => buffer < BUFFERED).length;
    return { viewer, from, to, stalls, hiccups: waits.length - stalls, down, best: at(720), played: last?.time ?? 0, errors: last?.errors ?? {} };
  });
  const during = link.filter(({ at }) => at > 0);
  const queues = during.map(({ queue }) => queue).sort((a, b) => a - b);
  return {
    stalls: visits.reduce((sum, { stalls }) => sum + stalls, 0),
    hiccups: visits.reduce((sum, { hiccups }) => sum + hiccups, 0),
    down: visits.reduce((sum, { down }) => sum + down, 0),
    best: visits.reduce((sum, { best, from, to }) => sum + best * (to - from), 0) / visits.reduce((sum, { from, to }) => sum + to - from, 0),
    queue: { p50: queues[Math.floor(queues.length / 2)] ?? 0, p95: queues[Math.floor(queues.length * 0.95)] ?? 0, max: queues.at(-1) ?? 0 },
    dropped: during.reduce((sum, { dropped }) => sum + dropped, 0),
    load: Math.max(0, ...rows.map((row) => row.load)),
    visits,
  };
}

/** Where the rows of a run are kept. */
export const recordOf = (name) => path.join(ARTIFACTS, `${name}.json`);
