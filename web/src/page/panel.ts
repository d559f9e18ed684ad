import { STAGES, type Stage, type Summary } from "../shared/summary.ts";
import { bitrate, count, milliseconds, percent } from "../player/format.ts";
import type { PlayerState } from "../player/state.ts";
import { t } from "../shared/language.ts";
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
      item.append(stageName(stage), number);
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
    setText(element("latency-tail"), latency === null ? "" : t("95 % within {p95} ms, 99 % within {p99} ms", { p95: Math.round(latency.p95), p99: Math.round(latency.p99) }));
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
    setText(signer, summary.signer?.name ?? t("not known yet"));
    signer.dataset["trusted"] = String(summary.signer?.trusted ?? "unknown");
    signer.title = summary.signer ? t("SHA-256 of the key: {digest}", { digest: summary.signer.digest }) : "";
    setText(element("verdict"), summary.signer ? t("{verdict} · key {digest}…", { verdict: summary.signer.verdict, digest: summary.signer.digest.slice(0, 16) }) : "");
    const failures = summary.verificationFailures;
    this.#list("trust-figures", [[t("Failed verification"), count(failures), t("Packets since the page was opened that were not what their signer had signed; none of them is shown"), failures > 0 ? "bad" : ""]]);
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
    [t("Controller"), controller ?? "–", t("The algorithm that bounds how fast Data is requested")],
    [t("Rate allowed up to"), path.allowed === null ? t("no limit") : bitrate(path.allowed), t("The most that the controller lets arrive, which may be far above what the stream needs")],
    [t("Rate used"), bitrate(path.received), t("All that arrives, with headers and what was sent in vain, over the last seconds")],
    [t("Link carries"), bitrate(path.carried), t("What the slowest link on the path was measured to carry")],
    [t("Window"), count(interestsPending), t("Interests that wait for their Data now, those for frames that do not exist yet included")],
    [t("Round trip"), milliseconds(rtt), t("From an Interest to its Data, for Data that existed: smoothed")],
    [t("Round trip, least"), milliseconds(rttMin), t("The shortest of the last while: the path with empty queues")],
    [t("Waiting in the network"), milliseconds(path.queueing), t("Time that packets wait in queues now: beyond the least round trip"), path.queueing > summary.target ? "warn" : ""],
    [t("Jitter"), milliseconds(path.jitter), t("How unevenly packets come")],
    [t("Probes"), count(path.probes), t("Times since the page was opened that more was requested than needed, to find out what the link carries")],
    [t("Climbing"), path.holding ? t("held back") : t("free"), t("Whether the controller keeps from raising the quality, as the last attempt failed")],
  ];
}

function networkFigures(summary: Summary): Figure[] {
  const transports = { webtransport: "WebTransport", websocket: "WebSocket" };
  const { path } = summary;
  return [
    [t("Transport"), summary.transport ? transports[summary.transport] : t("none"), t("How packets travel between this page and its node"), summary.transport ? "" : "warn"],
    [t("Packets lost"), percent(path.loss), t("Share of the packets requested in the last 3 s that did not come"), path.loss > 0.01 ? "warn" : ""],
    [t("Frames missing"), percent(summary.lossShare), t("Share of the frames and sound packets of the last 10 s that did not come whole in time"), summary.lossShare > MISSING ? "warn" : ""],
    [t("Repaired by parity"), percent(summary.parityShare), t("Share of the frames of the last 10 s that were completed with parity")],
    [t("Repaired by resending"), percent(summary.retransmissionShare), t("Share of the frames of the last 10 s that were completed by requesting packets again")],
    [t("From caches"), percent(summary.cacheHitShare), t("Share of the frames that others had requested before, since the page was opened")],
    [t("Requests sent"), count(summary.interests), t("Interests since the page was opened")],
  ];
}

function playbackFigures(summary: Summary): Figure[] {
  const { video, audio } = summary;
  const sound = { off: t("off"), none: t("none published"), unsupported: t("not supported"), starting: t("starting"), playing: t("on"), silent: t("silent") };
  const offset = audio.offset === null ? "" : ` ${t("({offset} ms to picture)", { offset: `${audio.offset >= 0 ? "+" : "−"}${Math.abs(audio.offset).toFixed(0)}` })}`;
  return [
    [t("First picture after"), milliseconds(summary.firstFrame), t("From opening the page to the first frame shown")],
    [t("Joined in"), milliseconds(summary.join), t("From the first Interest to the first complete key frame")],
    [t("Bitrate"), bitrate(summary.bitrate), t("Picture and sound that arrive, without headers and parity")],
    [t("Quality"), qualityText(summary), t("The bitrate chosen of those that are published")],
    [t("Buffer"), milliseconds(summary.buffer), t("How long what is here would last")],
    [t("Frames shown"), count(video.shown), t("Frames shown since the page was opened")],
    [t("Playout delay"), playoutText(summary), t("The chosen delay, or more where 95 % of the pictures and sound of the last 10 s needed more to be decoded in time"), summary.playout.isCapped ? "warn" : ""],
    [t("Machine"), overloadText(summary), t("Whether this machine has time for what it plays, and by how much the player woke up late in the last second"), summary.overload.level === "none" ? "" : "warn"],
    [t("Too late, or overtaken"), count(video.late + video.overtaken), t("Frames since the page was opened that were not shown, as a newer one was due")],
    [t("Left out"), count(video.skipped), t("Frames since the page was opened that were left out, as this machine had no time"), video.skipped > 0 ? "warn" : ""],
    [t("Freezes"), count(video.freezes), t("Gaps of more than 200 ms between two frames shown, since the page was opened"), video.freezes > 0 ? "warn" : ""],
    [t("Decoder errors"), count(video.decoderErrors), t("Times that the browser's decoder failed and was replaced"), video.decoderErrors > 0 ? "warn" : ""],
    [t("Sound"), sound[audio.state] + offset, t("Whether sound plays, and by how much it is heard after its picture")],
    [t("Held back for sound"), milliseconds(audio.delay), t("By how much the picture waits, as the audio device needs it")],
  ];
}

function playoutText({ playout }: Summary): string {
  const target = milliseconds(playout.target);
  return playout.isCapped ? t("{target}, as much as there is; {needed} needed", { target, needed: milliseconds(playout.needed) }) : target;
}

function overloadText({ overload }: Summary): string {
  const words = { none: t("has time"), instruments: t("busy: fewer figures"), quality: t("busy: lowest quality"), rate: t("busy: fewer pictures"), picture: t("busy: key frames only") };
  return t("{state}, {delay} late", { state: words[overload.level], delay: milliseconds(overload.delay) });
}

function qualityText({ rung, requestedRung }: Summary): string {
  return rung === null || requestedRung === null || requestedRung === rung ? (rung ?? "–") : t("{rung}, soon {next}", { rung, next: requestedRung });
}

/** A stage of the latency, for people. */
function stageName(stage: Stage): string {
  const names: Record<Stage, string> = {
    capture: t("capture"),
    encode: t("encode"),
    publish: t("publish"),
    network: t("network"),
    reassembly: t("reassembly"),
    buffer: t("buffer"),
    decode: t("decode"),
    display: t("display"),
  };
  return names[stage];
}
