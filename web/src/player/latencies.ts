/** Playout target until somebody chooses another, in milliseconds. */
export const DEFAULT_TARGET = 100;

/** Latencies to choose from, by their playout target in milliseconds. */
export const LATENCIES: readonly { target: number; label: string }[] = [
  { target: 40, label: "Lowest latency" },
  { target: DEFAULT_TARGET, label: "Balanced" },
  { target: 400, label: "Smooth" },
];
