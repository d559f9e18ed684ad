import type { RungInfo } from "../shared/summary.ts";

/** One quality of the picture, in words for a menu. */
export interface Quality {
  /** What `NamecastPlayer.quality` takes. */
  name: string;
  label: string;
}

/** The qualities to choose from, highest first: lines of the picture, and the rate as well where several have as many. */
export function qualitiesOf(rungs: readonly RungInfo[]): Quality[] {
  return rungs.map(({ name, height, bitrate }) => {
    const isOnly = rungs.filter((rung) => rung.height === height).length === 1;
    const rate = `${(bitrate / 1e6).toFixed(1)} Mbit/s`;
    return { name, label: height === 0 ? name : isOnly ? `${height}p` : `${height}p, ${rate}` };
  });
}
