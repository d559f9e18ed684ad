// A page behind an emulated link whose rate changes, and what the page did about it.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { openPage } from "./browser.mjs";
import { freePort, Program, startServer } from "./processes.mjs";

/** Small pictures, so that encoding three of them leaves time for the rest on two cores. */
const LADDER = "200k@320x180,600k@320x180,2500k@640x360";
const RATE = { high: 4_000_000, low: 1_000_000 };
/** What of a link's rate video may take: the rest is names, signatures, sound and repair. */
const VIDEO_SHARE = 0.8;
/** Frames that the link queues: some 110 ms at the high rate, four times that at the low one. */
const QUEUE = 50;

/**
 * Starts a publisher and its node, the page's node, and between the nodes a UDP link that is slow towards the page.
 *
 * @param changes when the link's rate changes, in seconds after the link was made, and to what
 */
export async function openBehindLink({ binary, browser, home, changes = [] }) {
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
    const publisher = new Program(binary, ["publish", "/link", "--input", "test", "--ladder", LADDER, "--json", ...connect], home.directory);
    running.push(publisher);
    const upstream = ["--upstream", `udp4://127.0.0.1:${relay}`];
    const near = await startServer(binary, ["forwarder", "--udp", "off", "--tcp", "off", "--unix", file("near"), ...upstream], home.directory);
    running.push(near.program);
    // At first without the link, so that the stream is there when the link's time begins.
    await publisher.until("stream", async () => publisher.printed !== "");
    await writeFile(file("toml"), describeLink(changes));
    const madeAt = Date.now();
    running.push(new Program(binary, ["impair", "--listen", `127.0.0.1:${relay}`, "--to", `127.0.0.1:${udp}`, "--config", file("toml"), "--json"], home.directory));
    const player = await openPage(browser, `${near.url}?name=/link`);
    await player.recordRungs();
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

/** The quality at a time, by the record of `Player.recordRungs`. */
export function rungAt(record, time) {
  return record.findLast(({ at }) => at <= time)?.rung;
}

/** How long after `from` the quality was first as `isRight` wants it, by the record of `Player.recordRungs`; Infinity if never before `to`. */
export function timeTo(isRight, record, from, to = Infinity) {
  if (isRight(rungAt(record, from))) {
    return 0;
  }
  const found = record.find(({ at, rung }) => at > from && at < to && isRight(rung));
  return found === undefined ? Infinity : found.at - from;
}
