// The picture of the cache trap: for each run what the viewers saw, and how long packets queued at the slow link.

const WIDTH = 960;
const [LEFT, RIGHT, TOP, BOTTOM] = [92, 20, 92, 44];
/** Heights of a strip: its title, qualities, queue, and what separates it from the next. */
const STRIP = { title: 30, quality: 76, gap: 12, queue: 62, space: 26 };
const STRIP_HEIGHT = Object.values(STRIP).reduce((sum, height) => sum + height, 0);
const HEIGHTS = [240, 480, 720];
/** Without a picture for so long it counts as a stall here, in seconds. */
const MIN_STALL = 0.75;

/** Colours of Okabe and Ito, which people with any kind of colour vision tell apart; lighter on a dark ground. */
const STYLE = `
  .ground { fill: #ffffff } .ink { fill: #1d242b } .soft { fill: #5b6670 } .grid { stroke: #d9dee3 } .visit { fill: #eef3f7 }
  .one { stroke: #0072b2 } .two { stroke: #d55e00 } .stall { fill: #b3261e } .queue { fill: #5b6670 }
  .one-text { fill: #005a8f } .two-text { fill: #a84a00 } .bad { fill: #b3261e } .good { fill: #00734f }
  text { font: 15px system-ui, "Segoe UI", Roboto, sans-serif } .title { font-size: 17px; font-weight: 600 } .head { font-size: 21px; font-weight: 600 }
  .one, .two { fill: none; stroke-width: 3; stroke-linejoin: round } .two { stroke-dasharray: 7 3 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1a2027 } .ink { fill: #e3e8ec } .soft { fill: #a8b3bd } .grid { stroke: #39434d } .visit { fill: #242e38 }
    .one { stroke: #56b4e9 } .two { stroke: #e69f00 } .stall { fill: #ff8a80 } .queue { fill: #8793a0 }
    .one-text { fill: #7cc4f5 } .two-text { fill: #f0b53c } .bad { fill: #ff8a80 } .good { fill: #4fd1a1 }
  }`;

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const round = (value) => Number(value.toFixed(1));

/**
 * @param strips `title`, `note` and what `play` and `judge` gave of each run, from above
 * @param head what the picture is of, in one line, and what is to be seen, in another
 */
export function drawTrap(strips, head) {
  const seconds = Math.min(...strips.map(({ played }) => played.run.duration));
  const longest = Math.max(20, ...strips.flatMap(({ played }) => played.link.filter(({ at }) => at > 0 && at < seconds).map(({ queue }) => queue)));
  const ceiling = Math.ceil(longest / 50) * 50;
  const height = TOP + strips.length * STRIP_HEIGHT + BOTTOM;
  const x = (at) => round(LEFT + ((WIDTH - LEFT - RIGHT) * Math.min(seconds, Math.max(0, at))) / seconds);
  const parts = strips.map((strip, index) => drawStrip(strip, TOP + index * STRIP_HEIGHT, { x, seconds, ceiling }));
  const ticks = Array.from({ length: Math.floor(seconds / 30) + 1 }, (_, index) => index * 30);
  const axis = ticks.map((at) => `<text class="soft" x="${x(at)}" y="${height - 20}" text-anchor="middle">${at}${at === 0 ? " s" : ""}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escape(head[0])}</title>
<style>${STYLE}</style>
<rect class="ground" width="${WIDTH}" height="${height}"/>
<text class="ink head" x="20" y="34">${escape(head[0])}</text>
<text class="soft" x="20" y="58">${escape(head[1])}</text>
${legend(80)}
${parts.join("\n")}
${axis.join("\n")}
</svg>
`;
}

function legend(y) {
  const line = (name, at, text) => `<path class="${name}" d="M${at} ${y - 5}h34"/><text class="${name}-text" x="${at + 42}" y="${y}">${text}</text>`;
  return `${line("one", 20, "first viewer")}${line("two", 180, "second viewer, who comes and goes")}
<rect class="stall" x="540" y="${y - 13}" width="14" height="14"/><text class="bad" x="561" y="${y}">picture stands still</text>
<rect class="visit" x="730" y="${y - 13}" width="14" height="14"/><text class="soft" x="751" y="${y}">both watch</text>`;
}

function drawStrip({ title, note, played, verdict }, top, { x, seconds, ceiling }) {
  const quality = top + STRIP.title;
  const queue = quality + STRIP.quality + STRIP.gap;
  const y = (height) => round(quality + STRIP.quality - 10 - ((STRIP.quality - 22) * HEIGHTS.indexOf(height)) / (HEIGHTS.length - 1));
  const bottom = queue + STRIP.queue;
  const down = (value) => round(bottom - (STRIP.queue * Math.min(ceiling, Math.max(0, value))) / ceiling);
  const visits = played.run.visits.filter(({ viewer }) => viewer === 2).map(({ from, to }) => {
    return `<rect class="visit" x="${x(from)}" y="${quality}" width="${round(x(to) - x(from))}" height="${bottom - quality}"/>`;
  });
  const grid = HEIGHTS.map((height) => `<path class="grid" d="M${LEFT} ${y(height)}H${WIDTH - RIGHT}"/><text class="soft" x="${LEFT - 8}" y="${y(height) + 5}" text-anchor="end">${height}p</text>`);
  const scale = [0, ceiling].map((value) => `<path class="grid" d="M${LEFT} ${down(value)}H${WIDTH - RIGHT}"/><text class="soft" x="${LEFT - 8}" y="${down(value) + 5}" text-anchor="end">${value} ms</text>`);
  const link = played.link.filter(({ at }) => at >= 0 && at <= seconds);
  const area = link.map(({ at, queue: waited }) => `L${x(at)} ${down(waited)}`).join("");
  const outcome = `${count(verdict.stalls, "stall")}, quality lowered ${count(verdict.down, "time")}`;
  return `<g>
<text class="ink title" x="20" y="${top + 18}">${escape(title)}<tspan class="soft" font-size="15" font-weight="400" dx="10">${escape(note)}</tspan></text>
<text class="${verdict.stalls + verdict.down > 0 ? "bad" : "good"}" x="${WIDTH - RIGHT}" y="${top + 18}" text-anchor="end">${outcome}</text>
${visits.join("")}
${grid.join("")}${scale.join("")}
<path class="queue" d="M${x(link[0]?.at ?? 0)} ${bottom}${area}L${x(link.at(-1)?.at ?? 0)} ${bottom}Z"/>
<text class="soft" x="${LEFT - 8}" y="${queue + STRIP.queue / 2 + 5}" text-anchor="end">in queue</text>
${[1, 2].map((viewer) => drawViewer(played, viewer, { x, y })).join("\n")}
</g>`;
}

const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

/** The qualities that a viewer saw, as steps, and when the picture stood still. */
function drawViewer(played, viewer, { x, y }) {
  const paths = [];
  const stalls = [];
  for (const { from, to } of played.run.visits.filter((visit) => visit.viewer === viewer)) {
    const rows = played.rows.filter((row) => row.viewer === viewer && row.at >= from && row.at < to && row.height > 0);
    // The two lie a little apart where they see the same.
    const shift = viewer === 1 ? -2.5 : 2.5;
    const steps = rows.map(({ at, height }, index) => {
      const level = y(height) + shift;
      return index === 0 ? `M${x(at)} ${level}` : rows[index - 1].height === height ? `H${x(at)}` : `H${x(at)}V${level}`;
    });
    paths.push(`<path class="${viewer === 1 ? "one" : "two"}" d="${steps.join("")}"/>`);
    for (const [since, until] of standstills(rows)) {
      const level = y(rows.find(({ at }) => at >= since).height) + shift;
      stalls.push(`<rect class="stall" x="${x(since)}" y="${level - 7}" width="${Math.max(4, round(x(until) - x(since)))}" height="14"/>`);
    }
  }
  return [...paths, ...stalls].join("");
}

/** When playback had begun and did not go on. */
export function standstills(rows) {
  const found = [];
  let since;
  let hasBegun = false;
  rows.forEach(({ at, time }, index) => {
    const before = rows[index - 1];
    const goesOn = before !== undefined && before.time > 0 && time - before.time > 0.2 * (at - before.at);
    hasBegun ||= goesOn;
    const stands = hasBegun && !goesOn;
    if (stands) {
      since ??= before.at;
    }
    if (since !== undefined && (!stands || index === rows.length - 1)) {
      if (at - since > MIN_STALL) {
        found.push([since, at]);
      }
      since = undefined;
    }
  });
  return found;
}
