/** Values of one quantity over the last while, as uPlot takes them: times in seconds, values, null where unknown. */
export class Series {
  readonly #span: number;
  readonly #bound: number;
  #times: number[] = [];
  #values: (number | null)[] = [];

  /** @param span seconds to keep; @param bound most values to keep. */
  constructor(span: number, bound: number) {
    this.#span = span;
    this.#bound = bound;
  }

  push(time: number, value: number | null): void {
    const last = this.#times.at(-1);
    if (last !== undefined && time <= last) {
      return;
    }
    this.#times.push(time);
    this.#values.push(value !== null && Number.isFinite(value) ? value : null);
    while (this.#times.length > this.#bound || time - (this.#times[0] ?? time) > this.#span) {
      this.#times.shift();
      this.#values.shift();
    }
  }

  data(): [number[], (number | null)[]] {
    return [this.#times, this.#values];
  }

  /** Upper end of the axis: room above the largest value, and at least `least`. */
  top(least: number): number {
    return Math.max(least, 1.15 * this.#values.reduce<number>((top, value) => Math.max(top, value ?? 0), 0));
  }
}
