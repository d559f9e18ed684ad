// Where a browser's processor time goes: by thread from /proc, by function from Chromium's own profiler.

import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { descendants, TICKS } from "./process-tree.mjs";

/** Interval between two samples, in microseconds. */
const INTERVAL = 200;
/** Functions that are printed of each profile. */
const PRINTED = 25;

/** Processor time of each thread of the process tree so far, in seconds by process kind and thread name. */
export async function threadTimes(root) {
  const times = new Map();
  for (const { pid } of await descendants(root)) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const kind = /--utility-sub-type=([\w.]+)/.exec(command)?.[1] ?? /--type=([\w-]+)/.exec(command)?.[1] ?? "browser";
    for (const thread of await readdir(`/proc/${pid}/task`).catch(() => [])) {
      const stat = await readFile(`/proc/${pid}/task/${thread}/stat`, "utf8").catch(() => "");
      if (stat === "") {
        continue;
      }
      const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const key = `${kind} ${name}`;
      times.set(key, (times.get(key) ?? 0) + (Number(fields[11]) + Number(fields[12])) / TICKS);
    }
  }
  return times;
}

/** Samples the page and its workers for `milliseconds`. Returns a profile for each, as Chromium's developer tools open it. */
export async function profile(page, milliseconds) {
  const session = await page.context().newCDPSession(page);
  const workers = new Map();
  const pending = new Map();
  let number = 0;
  session.on("Target.attachedToTarget", ({ sessionId, targetInfo }) => workers.set(sessionId, targetInfo));
  session.on("Target.receivedMessageFromTarget", ({ message }) => {
    const { id, result } = JSON.parse(message);
    pending.get(id)?.(result);
    pending.delete(id);
  });
  const ask = (sessionId, method, params = {}) => {
    number += 1;
    const answer = new Promise((resolve) => pending.set(number, resolve));
    return session.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id: number, method, params }) }).then(() => answer);
  };
  await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  const targets = [{ name: "page", send: (method, params) => session.send(method, params) }];
  for (const [sessionId, { type, title }] of workers) {
    targets.push({ name: `${type} ${title}`, send: (method, params) => ask(sessionId, method, params) });
  }
  for (const { send } of targets) {
    await send("Profiler.enable");
    await send("Profiler.setSamplingInterval", { interval: INTERVAL });
    await send("Profiler.start");
  }
  await page.waitForTimeout(milliseconds);
  const profiles = [];
  for (const { name, send } of targets) {
    profiles.push({ name, profile: (await send("Profiler.stop")).profile });
    await send("Profiler.disable");
  }
  await session.detach();
  return profiles;
}

/** Time that each function took itself, in milliseconds, the longest first; idle time is left out. */
export function selfTimes({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const times = new Map();
  samples.forEach((id, index) => {
    const { functionName, url } = byId.get(id);
    const key = `${functionName || "(anonymous)"} ${path.basename(url)}`.trim();
    times.set(key, (times.get(key) ?? 0) + (timeDeltas[index] ?? 0) / 1_000);
  });
  times.delete("(idle)");
  return [...times].sort(([, one], [, other]) => other - one);
}

/** Prints the longest of `profiles`, and writes them to `directory` for the developer tools. */
export async function report(profiles, directory, prefix) {
  for (const { name, profile: found } of profiles) {
    const span = (found.endTime - found.startTime) / 1_000;
    const times = selfTimes(found);
    const busy = times.reduce((sum, [, time]) => sum + time, 0);
    console.log(`\n${prefix}: ${name}, ${((100 * busy) / span).toFixed(1)} % of a core`);
    for (const [what, time] of times.slice(0, PRINTED)) {
      console.log(`${((100 * time) / span).toFixed(2).padStart(7)} %  ${what}`);
    }
    await writeFile(path.join(directory, `${prefix}-${name.replaceAll(/\W+/g, "-")}.cpuprofile`), JSON.stringify(found));
  }
}
