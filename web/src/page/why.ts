import { t } from "../shared/language.ts";
import type { Stage, Summary } from "../shared/summary.ts";
import { percent } from "../player/format.ts";
import type { PlayerState } from "../player/state.ts";

/** Share of the latency from which on a stage is called its main part. */
const MAIN = 0.4;

/** Share of frames that do not come whole in time from which on that is reported. */
export const MISSING = 0.005;

/** Longest time since a picture was shown for which the path brings pictures, in milliseconds. */
const FLOWING = 500;
/** Least playout delay that is recommended, in milliseconds. */
const MIN_ADVICE = 30;

/** Returns why the picture has its quality, in a sentence; empty unless it plays. */
export function whyPicture({ picture, position, rung, requestedRung, evidence }: Summary, { isPlaying }: PlayerState): string {
  if (!isPlaying || rung === null) {
    return "";
  }
  const reason = picture ?? (position.live ? t("as you chose") : t("as recorded"));
  const name = requestedRung === null || requestedRung === rung ? rung : t("{rung}, soon {next}", { rung, next: requestedRung });
  // The core looks at packets of the last round trips, and pictures may have arrived before.
  const isContradicted = reason === "nothing arrives" && evidence.shown !== null && evidence.shown < FLOWING;
  return isContradicted ? t("Quality {name}.", { name }) : t("Quality {name}: {reason}.", { name, reason });
}

/** Returns why the latency is this long, and how to shorten it, in a sentence or two; empty unless it plays. */
export function why(summary: Summary, { isPlaying }: PlayerState): string {
  const { latency, stages, target, reorder } = summary;
  if (isPlaying && !summary.position.live) {
    return t("This is recorded, so it has no latency.");
  }
  if (!isPlaying || latency === null || stages === null) {
    return "";
  }
  const total = Math.max(1, Object.values(stages).reduce((sum, time) => sum + time, 0));
  const share = (stage: Stage): number => stages[stage] / total;
  if (reorder / total > MAIN) {
    return t("B-frames are most of your latency: reordering takes {time} ms. Encode without them to shorten it.", { time: Math.round(reorder) });
  }
  if (share("encode") + share("publish") > MAIN) {
    return t("The publisher takes most of your latency to encode.");
  }
  if (share("network") + share("reassembly") > MAIN) {
    return t("The network takes most of your latency.");
  }
  if (share("decode") + share("display") > MAIN) {
    const cause = t("This device takes most of your latency to decode and draw.");
    return isLowest(summary) ? cause : `${cause} ${t("A lower quality shortens it.")}`;
  }
  if (summary.lossShare > MISSING) {
    const share = percent(summary.lossShare);
    return isLowest(summary)
      ? t("{share} of the last 10 s arrived late or not at all. Increase the latency for repairs.", { share })
      : t("{share} of the last 10 s arrived late or not at all. Increase the latency for repairs, or choose a lower quality.", { share });
  }
  if (summary.playout.target > target) {
    return t("This device and the network need {time} ms at the moment, which is more than the chosen latency.", { time: Math.round(summary.playout.target) });
  }
  if (summary.audio.delay >= 20) {
    return t("The audio device needs {time} ms more than the chosen latency, and the picture waits for it.", { time: Math.round(summary.audio.delay) });
  }
  if (share("buffer") <= MAIN) {
    return t("No single stage takes most of your latency.");
  }
  const needed = neededDelay(summary);
  return target > 2 * needed
    ? t("The buffer is most of your latency. About {time} ms would do here: decrease the latency.", { time: Math.ceil(needed / 10) * 10 })
    : t("The buffer is most of your latency, and this network and device need it.");
}

/** Playout delay that the path and this machine need, by all that is measured, in milliseconds. */
function neededDelay({ rttMin, path, playout }: Summary): number {
  return Math.max(MIN_ADVICE, 3 * (rttMin ?? 0), path.queueing + path.jitter, playout.needed);
}

/** Whether no lower quality exists. */
function isLowest({ rung, rungs }: Summary): boolean {
  return rungs.length < 2 || rungs.at(-1)?.name === rung;
}
