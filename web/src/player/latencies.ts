import { t } from "../shared/language.ts";

/** Playout target until somebody chooses another, in milliseconds. */
export const DEFAULT_TARGET = 100;

/** Latencies to choose from, by their playout target in milliseconds. */
export const latencies = (): readonly { target: number; label: string }[] => [
  { target: 40, label: t("Lowest latency") },
  { target: DEFAULT_TARGET, label: t("Balanced") },
  { target: 400, label: t("Smooth") },
];
