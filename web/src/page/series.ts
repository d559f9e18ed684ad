/** Room above the largest value. */
const ROOM = 1.15;
/** Limits are in the plot up to this many times what stays below them: a link of 1 Gbit/s must not flatten a stream of 3 Mbit/s. */
const LIMIT_ROOM = 2;

/** Values of some quantities over the last while, as uPlot takes them: times in seconds, then values of each, null where unknown. */
export class Series {
  readonly #span: number;
  readonly #bound: number;
  #times: number[] = [];
  readonly #values: (number | null)[][];

  /** @param span seconds to keep; @param bound most values to keep of each of `quantities`. */
  constructor(span: number, bound: number, quantities = 1) {
    this.#span = span;
    this.#bound = bound;
    this.#values = Array.from({ length: quantities }, () => []);
  }

  push(time: number, ...values: (number | null)[]): void {
    const last = this.#times.at(-1);
    if (last !== undefined && time <= last) {
      return;
    }
    this.#times.push(time);
    this.#values.forEach((column, index) => {
      const value = values[index] ?? null;
      column.push(value !== null && Number.isFinite(value) ? value : null);
    });
    while (this.#times.length > this.#bound || time - (this.#times[0] ?? time) > this.#span) {
      this.#times.shift();
      this.#values.forEach((column) => column.shift());
    }
  }

  data(): [number[], ...(number | null)[][]] {
    return [this.#times, ...this.#values];
  }

  /** The largest value of one quantity, 0 if none is known. */
  largest(quantity = 0): number {
    return (this.#values[quantity] ?? []).reduce<number>((top, value) => Math.max(top, value ?? 0), 0);
  }
}

/** Upper end of an axis for values up to `largest`, whose limits are up to `limit`; at least `least`. */
export function plotTop(largest: number, limit: number, least: number): number {
  return Math.max(least, ROOM * largest, Math.min(ROOM * limit, LIMIT_ROOM * Math.max(largest, least)));
}
