import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { t } from "../shared/language.ts";
import type { Summary } from "../shared/summary.ts";
import { bitrate, milliseconds } from "../player/format.ts";
import { plotTop, Series } from "./series.ts";

/** What the plots show, in seconds. */
const SPAN = 60;
const BOUND = 300;
const HEIGHT = 110;

interface Line {
  /** What the legend calls it; plots of a single line have none. */
  name?: string;
  colour: string;
  of(summary: Summary): number | null;
  /** Drawn without an area below it. */
  bare?: true;
  /** Holds its value until the next one. */
  stepped?: true;
  /** Dashed, and where it is far above all else it leaves the plot at the top. */
  limit?: true;
}

interface Chart {
  id: string;
  lines: readonly Line[];
  /** Least upper end of the axis, so that a calm line does not look wild. */
  least: number;
  text(value: number | null): string;
}

const charts = (): readonly Chart[] => [
  {
    id: "rate",
    lines: [
      { name: t("used"), colour: "--network", of: ({ path }) => path.received },
      { name: t("allowed up to"), colour: "--decode", of: ({ path }) => path.allowed, limit: true },
      { name: t("link carries"), colour: "--encode", of: ({ path }) => path.carried, limit: true },
      { name: t("quality"), colour: "--ink", of: ({ rung, rungs }) => rungs.find(({ name }) => name === rung)?.bitrate ?? null, bare: true, stepped: true },
    ],
    least: 200_000,
    text: bitrate,
  },
  { id: "latency", lines: [{ colour: "--accent", of: (summary) => summary.latency?.p50 ?? null }], least: 100, text: milliseconds },
  { id: "buffer", lines: [{ colour: "--buffer", of: (summary) => summary.buffer }], least: 100, text: milliseconds },
];

/** The plots of the last minute. */
export class Plots {
  #plots: Plot[] = charts().map((chart) => new Plot(chart));

  constructor() {
    new ResizeObserver(() => this.#plots.forEach((plot) => plot.fit())).observe(document.body);
  }

  push(at: number, summary: Summary): void {
    this.#plots.forEach((plot) => plot.push(at, summary));
  }

  /** Takes the colours of the theme again. */
  restyle(): void {
    this.#plots.forEach((plot) => plot.build());
  }
}

class Plot {
  readonly #chart: Chart;
  readonly #series: Series;
  readonly #host: HTMLElement;
  /** Where the newest values are written, in the order of the lines. */
  readonly #now: HTMLElement[];
  #plot: uPlot | undefined;

  constructor(chart: Chart) {
    this.#chart = chart;
    this.#series = new Series(SPAN, BOUND, chart.lines.length);
    const host = document.getElementById(`plot-${chart.id}`);
    const caption = document.getElementById(`plot-${chart.id}-now`);
    if (host === null || caption === null) {
      throw new Error(`the page has no plot of ${chart.id}`);
    }
    this.#host = host;
    this.#now = chart.lines.map((line) => legendEntry(caption, line));
    this.build();
  }

  build(): void {
    this.#plot?.destroy();
    const styles = getComputedStyle(document.documentElement);
    const colour = (name: string): string => styles.getPropertyValue(name).trim();
    const { lines, text } = this.#chart;
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    this.#plot = new uPlot(
      {
        width: Math.max(80, this.#host.clientWidth),
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false }, y: { range: () => [0, this.#top()] } },
        axes: [
          { ...axis, size: 22, space: 60, values: (plot, splits) => splits.map((at) => `${Math.round(at - (plot.scales["x"]?.max ?? at))} s`) },
          { ...axis, size: 58, space: 34, values: (_, splits) => splits.map((value) => text(value)) },
        ],
        series: [{}, ...lines.map((line) => seriesOf(line, colour(line.colour)))],
      },
      this.#series.data(),
      this.#host,
    );
  }

  push(at: number, summary: Summary): void {
    const values = this.#chart.lines.map((line) => line.of(summary));
    this.#series.push(at, ...values);
    this.#plot?.setData(this.#series.data());
    this.#now.forEach((now, index) => (now.textContent = this.#chart.text(values[index] ?? null)));
  }

  fit(): void {
    this.#plot?.setSize({ width: Math.max(80, this.#host.clientWidth), height: HEIGHT });
  }

  #top(): number {
    const { lines, least } = this.#chart;
    const largest = (limit: boolean): number => Math.max(0, ...lines.map((line, index) => ((line.limit ?? false) === limit ? this.#series.largest(index) : 0)));
    return plotTop(largest(false), largest(true), least);
  }
}

function seriesOf(line: Line, colour: string): uPlot.Series {
  const stepped = line.stepped ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
  return {
    stroke: colour,
    width: 1.75,
    points: { show: false },
    ...(line.limit || line.bare ? {} : { fill: `${colour}22` }),
    ...(line.limit ? { dash: [6, 4] } : {}),
    ...(stepped === undefined ? {} : { paths: stepped }),
  };
}

/** Adds a line's name and newest value to a plot's caption; returns where the value goes. */
function legendEntry(caption: HTMLElement, line: Line): HTMLElement {
  if (line.name === undefined) {
    return caption;
  }
  const entry = document.createElement("span");
  entry.style.setProperty("--colour", `var(${line.colour})`);
  entry.dataset["dashed"] = String(line.limit ?? false);
  const now = document.createElement("b");
  entry.append(line.name, now);
  caption.append(entry);
  return now;
}
