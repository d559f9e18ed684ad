// The cache trap with a real player: two viewers behind one cache, behind one slow link, each with hls.js in a browser of its own.
//
//   node e2e/cache-trap.mjs [NAME…] [--seconds=300] [--scenario=joining|alone]    plays with these controllers, one after the other, and says what became of it
//   node e2e/cache-trap.mjs draw [NAME…]                                          makes docs/cache-trap.svg of what was played

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { judge, play, recordOf } from "./lib/cache-trap.mjs";
import { drawTrap } from "./lib/trap-figure.mjs";

/** 16 packets of 8 kB, which is what the paper's queue holds. */
const DROP_TAIL = "--queue-bytes 128KiB";
const MARKING = "--queue 120 --codel --mark";

/** Fig. 5 of the paper: the second viewer stays 45 s, and comes again after 15 s. */
const JOINING = { rate: "4M", delay: "30ms", queue: DROP_TAIL, lead: 30, visits: (seconds) => [{ viewer: 1, from: 0, to: seconds }, ...rejoining(seconds)] };
/** Fig. 4 of the paper: one viewer at a time, who finds in the cache what the one before has seen. */
const ALONE = { rate: "3M", delay: "30ms", queue: DROP_TAIL, lead: 30, visits: (seconds) => [{ viewer: 2, from: 0, to: 20 }, { viewer: 1, from: 21, to: seconds }] };

function rejoining(seconds) {
  const visits = [];
  for (let from = 20; from < seconds - 10; from += 60) {
    visits.push({ viewer: 2, from, to: Math.min(from + 45, seconds) });
  }
  return visits;
}

const tagged = (controller) => ({ tags: true, controller });
const untagged = (controller, more = {}) => ({ tags: false, controller, ...more });
const CONTROLLERS = {
  default: tagged(undefined),
  "default-untagged": untagged(undefined),
  copa: tagged("copa"),
  "copa-untagged": untagged("copa"),
  "rfcc-delay": tagged("rfcc-delay"),
  rfcc: tagged("rfcc"),
  "rfcc-swapped": tagged("rfcc-swapped"),
  dpccp: untagged("dpccp"),
  pcon: untagged("pcon", { queue: MARKING }),
  "pcon-aimd": untagged("pcon-aimd", { queue: MARKING }),
  "pcon-bic": untagged("pcon-bic", { queue: MARKING }),
  "pcon-cubic": untagged("pcon-cubic", { queue: MARKING }),
};

const words = process.argv.slice(2);
const option = (name) => words.find((word) => word.startsWith(`--${name}=`))?.split("=")[1];
const seconds = Number(option("seconds") ?? 300);
const scenario = option("scenario") ?? "joining";
const [first, ...others] = words.filter((word) => !word.startsWith("--"));

/** Strips of the picture: without feedback, with RFCC, with ours. */
const DRAWN = ["dpccp", "rfcc-delay", "default"];
const TITLES = {
  default: ["With feedback: Namecast", "its default"],
  "default-untagged": ["Without feedback", "the same, where caches say nothing"],
  dpccp: ["Without feedback", "DPCCP-R, which goes by delay alone"],
  "rfcc-delay": ["With feedback: RFCC", "with a setpoint of 10 ms"],
  rfcc: ["RFCC", "as printed"],
};

async function draw(names) {
  const records = await Promise.all(names.map(async (name) => JSON.parse(await readFile(recordOf(`${scenario}-${name}`), "utf8"))));
  const shown = Math.min(...records.map(({ run }) => run.duration));
  const strips = records.map(({ run, ...record }) => {
    const visits = run.visits.filter(({ from }) => from < shown).map((visit) => ({ ...visit, to: Math.min(visit.to, shown) }));
    const played = { ...record, run: { ...run, visits, duration: shown } };
    const [title, note] = TITLES[run.name] ?? [run.name, ""];
    return { title, note, played, verdict: judge(played) };
  });
  const head = ["The cache trap", "A cache gives the second viewer video faster than the link behind it carries. Then the cache runs dry."];
  await writeFile(path.resolve(import.meta.dirname, "../../docs/cache-trap.svg"), drawTrap(strips, head));
}

async function measure(name) {
  const controller = CONTROLLERS[name];
  if (controller === undefined) {
    throw new Error(`there is no '${name}': write some of ${Object.keys(CONTROLLERS).join(", ")}`);
  }
  const setting = scenario === "alone" ? ALONE : JOINING;
  const run = { name, ...setting, ...controller, duration: seconds, visits: setting.visits(seconds) };
  const played = await play(run);
  await writeFile(recordOf(`${scenario}-${name}`), JSON.stringify(played));
  const { stalls, hiccups, down, best, queue, dropped, load, visits } = judge(played);
  const shown = `${stalls} stalls, ${hiccups} waits for the machine, ${down} switches down, 720 lines ${(100 * best).toFixed(0)} %`;
  const queued = [queue.p50, queue.p95, queue.max].map((value) => value.toFixed(0)).join("/");
  console.log(`${scenario} ${name.padEnd(18)} ${shown}; queue ${queued} ms, ${dropped} lost; load ${load.toFixed(1)}`);
  for (const visit of visits) {
    console.log(`    ${JSON.stringify(visit)}`);
  }
}

if (first === "draw") {
  await draw(others.length > 0 ? others : DRAWN);
} else {
  for (const name of first === undefined ? Object.keys(CONTROLLERS) : [first, ...others]) {
    await measure(name);
  }
}
