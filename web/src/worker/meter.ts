import type { Spread } from "../shared/summary.ts";

/** The last values of a quantity. */
export class Meter {
  readonly #bound: number;
  #values: number[] = [];

  constructor(bound: number) {
    this.#bound = bound;
  }

  push(value: number): void {
    this.#values.push(value);
    if (this.#values.length > this.#bound) {
      this.#values.shift();
    }
  }

  clear(): void {
    this.#values = [];
  }

  mean(): number | null {
    return this.#values.length === 0 ? null : this.#values.reduce((sum, value) => sum + value, 0) / this.#values.length;
  }

  /** Percentiles by nearest rank. */
  spread(): Spread | null {
    if (this.#values.length === 0) {
      return null;
    }
    const sorted = [...this.#values].sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
  }
}
