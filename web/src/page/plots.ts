import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Summary } from "../shared/summary.ts";
import { bitrate, milliseconds } from "./format.ts";
import { Series } from "./series.ts";

/** What the plots show, in seconds. */
const SPAN = 60;
const BOUND = 300;
const HEIGHT = 110;

interface Quantity {
  id: string;
  colour: string;
  /** Least upper end of the axis, so that a calm line does not look wild. */
  least: number;
  of(summary: Summary): number | null;
  text(value: number | null): string;
}

const QUANTITIES: readonly Quantity[] = [
  { id: "latency", colour: "--accent", least: 100, of: (summary) => summary.latency?.p50 ?? null, text: milliseconds },
  { id: "bitrate", colour: "--network", least: 200_000, of: (summary) => summary.bitrate, text: bitrate },
  { id: "buffer", colour: "--buffer", least: 100, of: (summary) => summary.buffer, text: milliseconds },
];

/** The small plots of the last minute. */
export class Plots {
  #plots: Plot[] = QUANTITIES.map((quantity) => new Plot(quantity));

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
  readonly #quantity: Quantity;
  readonly #series = new Series(SPAN, BOUND);
  readonly #host: HTMLElement;
  readonly #now: HTMLElement | null;
  #plot: uPlot | undefined;

  constructor(quantity: Quantity) {
    this.#quantity = quantity;
    const host = document.getElementById(`plot-${quantity.id}`);
    if (host === null) {
      throw new Error(`the page has no plot of ${quantity.id}`);
    }
    this.#host = host;
    this.#now = document.getElementById(`plot-${quantity.id}-now`);
    this.build();
  }

  build(): void {
    this.#plot?.destroy();
    const styles = getComputedStyle(document.documentElement);
    const [colour, ink, line] = [this.#quantity.colour, "--soft", "--line"].map((name) => styles.getPropertyValue(name).trim());
    const text = this.#quantity.text;
    const axis = { stroke: ink ?? "", grid: { stroke: line ?? "", width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    this.#plot = new uPlot(
      {
        width: Math.max(80, this.#host.clientWidth),
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        scales: { x: { time: false }, y: { range: () => [0, this.#series.top(this.#quantity.least)] } },
        axes: [
          { ...axis, size: 22, space: 60, values: (plot, splits) => splits.map((at) => `${Math.round(at - (plot.scales["x"]?.max ?? at))} s`) },
          { ...axis, size: 58, space: 34, values: (_, splits) => splits.map((value) => text(value)) },
        ],
        series: [{}, { stroke: colour ?? "", width: 1.75, fill: `${colour}22`, points: { show: false } }],
      },
      this.#series.data(),
      this.#host,
    );
  }

  push(at: number, summary: Summary): void {
    const value = this.#quantity.of(summary);
    this.#series.push(at, value);
    this.#plot?.setData(this.#series.data());
    if (this.#now !== null) {
      this.#now.textContent = this.#quantity.text(value);
    }
  }

  fit(): void {
    this.#plot?.setSize({ width: Math.max(80, this.#host.clientWidth), height: HEIGHT });
  }
}
