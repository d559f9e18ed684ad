import { STAGES, type Stage, type Summary } from "../shared/summary.ts";
import { bitrate, count, milliseconds, percent } from "../player/format.ts";
import type { PlayerState } from "../player/state.ts";
import { element, setText } from "./elements.ts";
import { MISSING, why, whyPicture } from "./why.ts";

type Tone = "" | "warn" | "bad";
/** A figure's name, its text, what it counts, and whether it is alarming. */
type Figure = [name: string, text: string, title: string, tone?: Tone];

/** The numbers beside and below the picture. */
export class Panel {
  readonly #bars = new Map<Stage, HTMLElement>();
  readonly #numbers = new Map<Stage, HTMLElement>();
  readonly #figures = new Map<string, HTMLElement>();

  constructor() {
    const [bar, list] = [element("stage-bar"), element("stage-list")];
    for (const stage of STAGES) {
      const part = document.createElement("i");
      part.style.background = `var(--${stage})`;
      bar.append(part);
      this.#bars.set(stage, part);
      const item = document.createElement("li");
      item.style.setProperty("--colour", `var(--${stage})`);
      const number = document.createElement("b");
      number.textContent = "–";
      item.append(stage, number);
      list.append(item);
      this.#numbers.set(stage, number);
    }
  }

  show(summary: Summary, state: PlayerState): void {
    this.#showLatency(summary, state);
    setText(element("picture-why"), whyPicture(summary, state));
    this.#showSigner(summary);
    this.#list("controller-figures", controllerFigures(summary));
    this.#list("network-figures", networkFigures(summary));
    this.#list("playback-figures", playbackFigures(summary));
  }

  #showLatency(summary: Summary, state: PlayerState): void {
    const { latency, stages } = summary;
    setText(element("latency"), latency === null ? "–" : String(Math.round(latency.p50)));
    setText(element("latency-tail"), latency === null ? "" : `95 % within ${Math.round(latency.p95)} ms, 99 % within ${Math.round(latency.p99)} ms`);
    for (const stage of STAGES) {
      const time = stages?.[stage] ?? 0;
      this.#bars.get(stage)?.style.setProperty("flex", `${Math.max(0, time).toFixed(2)} 0 0`);
      const number = this.#numbers.get(stage);
      if (number !== undefined) {
        setText(number, milliseconds(stages?.[stage] ?? null));
      }
    }
    setText(element("why"), why(summary, state));
  }

  #showSigner(summary: Summary): void {
    const signer = element("signer");
    setText(signer, summary.signer?.name ?? "not known yet");
    signer.dataset["trusted"] = String(summary.signer?.trusted ?? "unknown");
    signer.title = summary.signer ? `SHA-256 of the key: ${summary.signer.digest}` : "";
    setText(element("verdict"), summary.signer ? `${summary.signer.verdict} · key ${summary.signer.digest.slice(0, 16)}…` : "");
    const failures = summary.verificationFailures;
    this.#list("trust-figures", [["Failed verification", count(failures), "Packets since the page was opened that were not what their signer had signed; none of them is shown", failures > 0 ? "bad" : ""]]);
  }

  #list(id: string, figures: readonly Figure[]): void {
    const list = element(id);
    for (const [name, text, title, tone] of figures) {
      const key = `${id}/${name}`;
      let value = this.#figures.get(key);
      if (value === undefined) {
        const term = document.createElement("dt");
        term.textContent = name;
        term.title = title;
        value = document.createElement("dd");
        list.append(term, value);
        this.#figures.set(key, value);
      }
      setText(value, text);
      value.dataset["tone"] = tone ?? "";
    }
  }
}

function controllerFigures(summary: Summary): Figure[] {
  const { path, controller, interestsPending, rtt, rttMin } = summary;
  return [
    ["Controller", controller ?? "–", "The algorithm that bounds how fast Data is requested"],
    ["Rate allowed up to", path.allowed === null ? "no limit" : bitrate(path.allowed), "The most that the controller lets arrive, which may be far above what the stream needs"],
    ["Rate used", bitrate(path.received), "All that arrives, with headers and what was sent in vain, over the last seconds"],
    ["Link carries", bitrate(path.carried), "What the slowest link on the path was measured to carry"],
    ["Window", count(interestsPending), "Interests that wait for their Data now, those for frames that do not exist yet included"],
    ["Round trip", milliseconds(rtt), "From an Interest to its Data, for Data that existed: smoothed"],
    ["Round trip, least", milliseconds(rttMin), "The shortest of the last while: the path with empty queues"],
    ["Waiting in the network", milliseconds(path.queueing), "Time that packets wait in queues now: beyond the least round trip", path.queueing > summary.target ? "warn" : ""],
    ["Jitter", milliseconds(path.jitter), "How unevenly packets come"],
    ["Probes", count(path.probes), "Times since the page was opened that more was requested than needed, to find out what the link carries"],
    ["Climbing", path.holding ? "held back" : "free", "Whether the controller keeps from raising the quality, as the last attempt failed"],
  ];
}

function networkFigures(summary: Summary): Figure[] {
  const transports = { webtransport: "WebTransport", websocket: "WebSocket" };
  const { path } = summary;
  return [
    ["Transport", summary.transport ? transports[summary.transport] : "none", "How packets travel between this page and its node", summary.transport ? "" : "warn"],
    ["Packets lost", percent(path.loss), "Share of the packets requested in the last 3 s that did not come", path.loss > 0.01 ? "warn" : ""],
    ["Frames missing", percent(summary.lossShare), "Share of the frames and sound packets of the last 10 s that did not come whole in time", summary.lossShare > MISSING ? "warn" : ""],
    ["Repaired by parity", percent(summary.parityShare), "Share of the frames of the last 10 s that were completed with parity"],
    ["Repaired by resending", percent(summary.retransmissionShare), "Share of the frames of the last 10 s that were completed by requesting packets again"],
    ["From caches", percent(summary.cacheHitShare), "Share of the frames that others had requested before, since the page was opened"],
    ["Requests sent", count(summary.interests), "Interests since the page was opened"],
  ];
}

function playbackFigures(summary: Summary): Figure[] {
  const { video, audio } = summary;
  const sound = { off: "off", none: "none published", unsupported: "not supported", starting: "starting", playing: "on", silent: "silent" };
  const offset = audio.offset === null ? "" : ` (${audio.offset >= 0 ? "+" : "−"}${Math.abs(audio.offset).toFixed(0)} ms to picture)`;
  return [
    ["First picture after", milliseconds(summary.firstFrame), "From opening the page to the first frame shown"],
    ["Joined in", milliseconds(summary.join), "From the first Interest to the first complete key frame"],
    ["Bitrate", bitrate(summary.bitrate), "Picture and sound that arrive, without headers and parity"],
    ["Quality", qualityText(summary), "The bitrate chosen of those that are published"],
    ["Buffer", milliseconds(summary.buffer), "How long what is here would last"],
    ["Frames shown", count(video.shown), "Frames shown since the page was opened"],
    ["Playout delay", playoutText(summary), "The chosen delay, or more where 95 % of the pictures and sound of the last 10 s needed more to be decoded in time", summary.playout.isCapped ? "warn" : ""],
    ["Machine", overloadText(summary), "Whether this machine has time for what it plays, and by how much the player woke up late in the last second", summary.overload.level === "none" ? "" : "warn"],
    ["Too late, or overtaken", count(video.late + video.overtaken), "Frames since the page was opened that were not shown, as a newer one was due"],
    ["Left out", count(video.skipped), "Frames since the page was opened that were left out, as this machine had no time", video.skipped > 0 ? "warn" : ""],
    ["Freezes", count(video.freezes), "Gaps of more than 200 ms between two frames shown, since the page was opened", video.freezes > 0 ? "warn" : ""],
    ["Decoder errors", count(video.decoderErrors), "Times that the browser's decoder failed and was replaced", video.decoderErrors > 0 ? "warn" : ""],
    ["Sound", sound[audio.state] + offset, "Whether sound plays, and by how much it is heard after its picture"],
    ["Held back for sound", milliseconds(audio.delay), "By how much the picture waits, as the audio device needs it"],
  ];
}

function playoutText({ playout }: Summary): string {
  return `${milliseconds(playout.target)}${playout.isCapped ? `, as much as there is; ${milliseconds(playout.needed)} needed` : ""}`;
}

function overloadText({ overload }: Summary): string {
  const words = { none: "has time", instruments: "busy: fewer figures", quality: "busy: lowest quality", rate: "busy: fewer pictures", picture: "busy: key frames only" };
  return `${words[overload.level]}, ${milliseconds(overload.delay)} late`;
}

function qualityText({ rung, requestedRung }: Summary): string {
  return rung === null || requestedRung === null || requestedRung === rung ? (rung ?? "–") : `${rung}, soon ${requestedRung}`;
}
