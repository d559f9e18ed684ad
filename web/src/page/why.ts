import type { Stage, Summary } from "../shared/summary.ts";
import { duration, percent, timeOfDay } from "../player/format.ts";

/** Share of the latency from which on a stage is called its main part. */
const MAIN = 0.4;

/** Share of frames that do not come whole in time from which on that is reported. */
export const MISSING = 0.005;

/** What plays, in a few words, and how to show them. It is called live only while the publisher itself confirms it. */
export function state({ phase, position, liveness, recordedFrom, packaged }: Summary): { text: string; look: string } {
  if (phase !== "playing") {
    return { text: phase, look: phase };
  }
  if (packaged) {
    return { text: "playing segments", look: "playing" };
  }
  if (!position.live) {
    return { text: `${duration(position.now - (position.shown ?? position.now))} behind live`, look: "past" };
  }
  switch (liveness) {
    case "live":
      return { text: "live", look: "playing" };
    case "recorded":
      return { text: recordedFrom === null ? "recorded" : `recorded from ${timeOfDay(recordedFrom)}`, look: "past" };
    case "unconfirmed":
      return { text: "cannot be confirmed to be live", look: "past" };
  }
}

/** What plays, for people at home: in a sentence. */
export function about(summary: Summary, name: string): string {
  switch (summary.phase) {
    case "connecting":
      return "Connecting…";
    case "joining":
      return `Looking for ${name}…`;
    case "waiting":
      return `${name} has stopped for now.`;
    case "playing": {
      const height = summary.rungs.find((rung) => rung.name === summary.rung)?.height ?? 0;
      const { text } = state(summary);
      return [text.charAt(0).toUpperCase() + text.slice(1), ...(height > 0 ? [`${height}p`] : [])].join(" · ");
    }
  }
}

/** Why the picture has the quality that it has, in a sentence. */
export function whyPicture({ phase, picture, position, rung, requestedRung }: Summary): string {
  if (phase !== "playing" || rung === null) {
    return "";
  }
  const reason = picture ?? (position.live ? "as you chose" : "as it was recorded");
  const next = requestedRung === null || requestedRung === rung ? "" : `, soon ${requestedRung}`;
  return `Quality ${rung}${next}: ${reason}.`;
}

/** Why the latency is what it is, and what to do about it, in a sentence or two. */
export function why(summary: Summary): string {
  const { latency, stages, target, reorder, rttMin } = summary;
  if (summary.phase === "playing" && !summary.position.live) {
    return "This was kept and is not live, so there is no latency to speak of.";
  }
  if (summary.phase !== "playing" || latency === null || stages === null) {
    return "";
  }
  const total = Math.max(1, Object.values(stages).reduce((sum, time) => sum + time, 0));
  const share = (stage: Stage): number => stages[stage] / total;
  if (reorder / total > MAIN) {
    return `B-frames are most of your latency: pictures come in another order than they are shown in, which takes ${Math.round(reorder)} ms. Encode without them to be sooner.`;
  }
  if (share("encode") + share("publish") > MAIN) {
    return "Most of your latency passes before the picture leaves its publisher: encoding there takes long.";
  }
  if (share("network") + share("reassembly") > MAIN) {
    return "Most of your latency is the network: packets take long to come here.";
  }
  if (share("decode") + share("display") > MAIN) {
    return "Most of your latency is this device: it decodes or draws slowly. A smaller picture helps.";
  }
  if (summary.lossShare > MISSING) {
    return `${percent(summary.lossShare)} of the last 10 s did not come whole in time. Turn the knob up to give repairs more time, or choose a smaller picture.`;
  }
  if (summary.audio.delay >= 20) {
    return `Sound needs ${Math.round(summary.audio.delay)} ms more than the knob allows, and the picture waits for it. Without sound it would be sooner.`;
  }
  const needed = Math.max(30, 3 * (rttMin ?? 0));
  if (target > 2 * needed && share("buffer") > MAIN) {
    return `Your latency is mostly buffer: turn the knob down. This network would do with about ${Math.ceil(needed / 10) * 10} ms.`;
  }
  if (share("buffer") > MAIN) {
    return "Your latency is mostly buffer, and the buffer is about what this network needs.";
  }
  return "No single stage stands out: this is about as live as it gets here.";
}
