import { STAGES, type Stage, type Summary } from "../shared/summary.ts";
import { bitrate, count, milliseconds, percent } from "./format.ts";
import { state, why, whyPicture } from "./why.ts";

type Tone = "" | "warn" | "bad";
/** A figure's name, its text, and whether it is alarming. */
type Figure = [name: string, text: string, tone?: Tone];

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

  show(summary: Summary): void {
    const phase = element("phase");
    const { text, look } = state(summary);
    setText(phase, text);
    phase.dataset["phase"] = look;
    this.#showLatency(summary);
    setText(element("picture-why"), whyPicture(summary));
    this.#showSigner(summary);
    this.#list("network-figures", networkFigures(summary));
    this.#list("playback-figures", playbackFigures(summary));
  }

  #showLatency(summary: Summary): void {
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
    setText(element("why"), why(summary));
  }

  #showSigner(summary: Summary): void {
    const signer = element("signer");
    setText(signer, summary.signer?.name ?? "not known yet");
    signer.dataset["trusted"] = String(summary.signer?.trusted ?? "unknown");
    signer.title = summary.signer ? `SHA-256 of the key: ${summary.signer.digest}` : "";
    setText(element("verdict"), summary.signer ? `${summary.signer.verdict} · key ${summary.signer.digest.slice(0, 16)}…` : "");
    const failures = summary.verificationFailures;
    this.#list("trust-figures", [["Failed verification", count(failures), failures > 0 ? "bad" : ""]]);
  }

  #list(id: string, figures: readonly Figure[]): void {
    const list = element(id);
    for (const [name, text, tone] of figures) {
      const key = `${id}/${name}`;
      let value = this.#figures.get(key);
      if (value === undefined) {
        const term = document.createElement("dt");
        term.textContent = name;
        value = document.createElement("dd");
        list.append(term, value);
        this.#figures.set(key, value);
      }
      setText(value, text);
      value.dataset["tone"] = tone ?? "";
    }
  }
}

function networkFigures(summary: Summary): Figure[] {
  const transports = { webtransport: "WebTransport", websocket: "WebSocket" };
  const { path } = summary;
  return [
    ["Transport", summary.transport ? transports[summary.transport] : "none", summary.transport ? "" : "warn"],
    ["Round trip", milliseconds(summary.rtt)],
    ["Round trip, least", milliseconds(summary.rttMin)],
    ["Waiting in the network", milliseconds(path.queueing), path.queueing > summary.target ? "warn" : ""],
    ["Link carries", bitrate(path.carried)],
    ["Controller", summary.controller ?? "–"],
    ["Rate allowed up to", path.allowed === null ? "no limit" : bitrate(path.allowed)],
    ["Rate used", bitrate(path.received)],
    ["Packets lost", percent(path.loss), path.loss > 0.01 ? "warn" : ""],
    ["Frames lost", percent(summary.lossShare), summary.lossShare > 0.005 ? "warn" : ""],
    ["Repaired by parity", percent(summary.parityShare)],
    ["Repaired by resending", percent(summary.retransmissionShare)],
    ["From caches", percent(summary.cacheHitShare)],
    ["Requests sent", count(summary.interests)],
  ];
}

function playbackFigures(summary: Summary): Figure[] {
  const { video, audio } = summary;
  const sound = { off: "off", none: "none published", unsupported: "not supported", starting: "starting", playing: "on", silent: "silent" };
  const offset = audio.offset === null ? "" : ` (${audio.offset >= 0 ? "+" : "−"}${Math.abs(audio.offset).toFixed(0)} ms to picture)`;
  return [
    ["First picture after", milliseconds(summary.firstFrame)],
    ["Joined in", milliseconds(summary.join)],
    ["Bitrate", bitrate(summary.bitrate)],
    ["Quality", qualityText(summary)],
    ["Buffer", milliseconds(summary.buffer)],
    ["Frames shown", count(video.shown)],
    ["Too late, or overtaken", count(video.late + video.overtaken)],
    ["Freezes", count(video.freezes), video.freezes > 0 ? "warn" : ""],
    ["Decoder errors", count(video.decoderErrors), video.decoderErrors > 0 ? "warn" : ""],
    ["Sound", sound[audio.state] + offset],
    ["Held back for sound", milliseconds(audio.delay)],
  ];
}

function qualityText({ rung, requestedRung }: Summary): string {
  return rung === null || requestedRung === null || requestedRung === rung ? (rung ?? "–") : `${rung}, soon ${requestedRung}`;
}

/** The element with this id, which the page's markup must have. */
export function element<E extends HTMLElement = HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (found === null) {
    throw new Error(`the page has no element #${id}`);
  }
  return found as E;
}

/** Writes only what changed, so that a screen reader is not told four times a second. */
function setText(target: HTMLElement, text: string): void {
  if (target.textContent !== text) {
    target.textContent = text;
  }
}
