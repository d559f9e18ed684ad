// What all processes of a program cost, from /proc.

import { readdir, readFile } from "node:fs/promises";

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Clock ticks of a second in /proc, as Linux has it on all machines. */
export const TICKS = 100;

/** Processes whose ancestor is `root`, and itself. */
export async function descendants(root) {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")));
  const all = stats.filter((stat) => stat !== "").map((stat) => {
    // The name may have spaces and brackets in it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { pid: Number.parseInt(stat, 10), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
  });
  const found = new Map();
  const visit = (pid) => {
    const own = all.find((each) => each.pid === pid);
    if (own !== undefined && !found.has(pid)) {
      found.set(pid, own);
      all.filter(({ parent }) => parent === pid).forEach((child) => visit(child.pid));
    }
  };
  visit(root);
  return [...found.values()];
}

/** Processor time of each process of the tree so far, in seconds by process id. */
export async function processorTimes(root) {
  return new Map((await descendants(root)).map(({ pid, ticks }) => [pid, ticks / TICKS]));
}

/** Processor time that the processes of `after` took since `before`, in seconds. One that ended between counts up to `before`. */
export function spent(before, after) {
  return [...after].reduce((sum, [pid, time]) => sum + time - (before.get(pid) ?? 0), 0);
}

/** Period in which processes are stopped and go on, in milliseconds. */
const PERIOD = 200;

/** Stops the tree for a share of the time, as if the machine had no more for it. Returns what ends that. */
export function stopPartly(root, share) {
  let isOver = share === 0;
  const signal = (pids, name) => {
    for (const pid of pids) {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended.
      }
    }
  };
  const run = async () => {
    while (!isOver) {
      const pids = (await descendants(root)).map(({ pid }) => pid);
      signal(pids, "SIGSTOP");
      await wait(PERIOD * share);
      signal(pids, "SIGCONT");
      await wait(PERIOD * (1 - share));
    }
  };
  const running = run();
  return () => {
    isOver = true;
    return running;
  };
}

/** Memory of the tree in MiB; what processes share counts once. */
export async function proportionalMemory(root) {
  const sizes = (await descendants(root)).map(async ({ pid }) => {
    const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
    return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1_024;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
