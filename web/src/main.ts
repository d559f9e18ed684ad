import "./player/element.ts";
import { handlePlayerKey, meansKey } from "./player/keys.ts";
import { DEFAULT_TARGET } from "./player/latencies.ts";
import { browserStore } from "./player/known-keys.ts";
import { readOptions, withOption } from "./player/options.ts";
import type { PackageFigures } from "./player/package-player.ts";
import type { Sound } from "./player/sound.ts";
import type { PlayerState } from "./player/state.ts";
import type { Inspect } from "./page/inspect.ts";
import { Notes } from "./page/notes.ts";
import { ownSecret } from "./page/own-key.ts";
import { diagnostics } from "./page/diagnostics.ts";
import { StepLog } from "./page/log.ts";
import { element, setText } from "./page/elements.ts";
import { keepCertificate, roomOf } from "./page/room.ts";
import { Share } from "./page/share.ts";
import { Streams } from "./page/streams.ts";
import { translatePage } from "./page/translate.ts";
import { Theme } from "./page/theme.ts";
import type { Fault, ReceivedSample, Report, Shown } from "./shared/messages.ts";
import { fetchNode, readNode } from "./shared/node.ts";
import { readableName } from "./shared/readable-name.ts";
import type { Summary } from "./shared/summary.ts";
import { t } from "./shared/language.ts";

/** How long the instruments wait for the first picture, which needs the processor more than they do, in milliseconds. */
const PICTURE_FIRST = 1_000;
/** Frames whose showing the page remembers, for tests: half a minute at 60 a second. */
const MAX_SHOWN = 2_000;

/** What tests and the curious reach from the console. */
export interface Handle {
  stats(): Summary | undefined;
  /** What people read. */
  state(): PlayerState;
  /** Steps of joining and incidents, oldest first. */
  readonly steps: readonly { at: number; text: string }[];
  /** The last frames that went to the canvas. */
  readonly shown: readonly Shown[];
  readonly sound: Sound;
  /** Figures of a stream that is published as segments. */
  package(): PackageFigures;
  /** The last samples of the data stream that plays. */
  readonly samples: readonly ReceivedSample[];
  /** Publishes a sample, once publishing was begun by its button. */
  send(sample: Uint8Array<ArrayBuffer>): void;
  setTarget(milliseconds: number): void;
  /** Goes to what was captured at a time (publisher's clock, milliseconds since 1970); null: to live. */
  seek(to: number | null): void;
  /** Causes a fault on purpose. */
  fault(fault: Fault): void;
}

declare global {
  interface Window {
    /** What the page's head began before this script was here; not while the page is worked on. */
    early?: { worker: Worker; core: Promise<WebAssembly.Module>; node: Promise<Response> };
    namecast: Handle;
  }
}

type View = "watch" | "inspect";

const randomOctets = (): Uint8Array => crypto.getRandomValues(new Uint8Array(32));

class Page {
  readonly #options = readOptions(new URLSearchParams(location.search));
  readonly #player = element<HTMLElementTagNameMap["namecast-player"]>("player");
  readonly #notes = new Notes(
    this.#options.publish,
    (name) => this.#publish(name),
    (sample) => this.#player.send({ type: "send", sample }),
  );
  readonly #log = new StepLog(performance.timeOrigin);
  readonly #share = new Share();
  readonly #streams = new Streams();
  readonly #shown: Shown[] = [];
  #inspect: Inspect | undefined;
  readonly #theme = new Theme(() => this.#inspect?.restyle());
  #name = "";
  #view: View = "watch";
  #hasInstruments = false;
  /** Instruments are written once, in the language of the reader. */
  #translated: Promise<void> = Promise.resolve();

  /** The room that the address leads to. */
  readonly #room = roomOf(location.hash, browserStore(), randomOctets);

  constructor() {
    this.#player.room = this.#room;
    this.#player.addEventListener("report", (event) => this.#handle((event as CustomEvent<Report>).detail));
    this.#player.addEventListener("statechange", () => this.#showState());
    this.#player.addEventListener("latencychange", () => this.#keepTarget());
    this.#player.openedAt = performance.timeOrigin;
    const { early } = window;
    if (early !== undefined) {
      this.#player.early = { ...early, node: early.node.then((answer) => readNode(answer, location.href)) };
    }
    const lang = new URLSearchParams(location.search).get("lang");
    if (lang !== null) {
      this.#player.lang = lang;
    }
    this.#translated = translatePage();
    void this.#begin();
    // What a browser lacks is known before anybody listens.
    this.#showState();
    window.namecast = this.#makeHandle();
    element("diagnostics").addEventListener("click", () => void this.#copyDiagnostics());
    element("theme").addEventListener("click", () => this.#theme.toggle());
    for (const view of ["watch", "inspect"] as const) {
      element(`view-${view}`).addEventListener("click", () => this.#showView(view));
    }
    document.addEventListener("keydown", (event) => this.#handleKey(event));
    setTimeout(() => this.#allowInstruments(), PICTURE_FIRST);
    this.#showView(new URLSearchParams(location.search).get("view") === "inspect" ? "inspect" : "watch");
  }

  /** Plays the stream that the address names, or else the one that the node offers; where it offers none, there is a list. */
  async #begin(): Promise<void> {
    if (this.#options.name === undefined && this.#room !== undefined) {
      // The player joins the room; the list has what its members send.
      this.#player.src = withOption(location.href, "name", this.#room.root);
      element("streams").hidden = false;
      this.#streams.start();
      return;
    }
    if (this.#options.name === undefined) {
      const node = await (this.#player.early?.node ?? fetchNode(location.href)).catch(() => undefined);
      if (node?.hasName === false) {
        this.#player.early?.worker.terminate();
        document.body.dataset["front"] = "";
        setText(element("streams-title"), t("Live here"));
        setText(element("about"), "");
        element("streams").hidden = false;
        this.#streams.start();
        return;
      }
    }
    this.#player.src = location.href;
  }

  #publish(name: string): void {
    const secret = ownSecret(name, browserStore(), randomOctets);
    this.#player.send({ type: "publish", publishes: { name, secret } });
  }

  #handle(report: Report): void {
    switch (report.type) {
      case "summary":
        this.#showSummary(report.summary);
        break;
      case "step":
        this.#log.push(report.at, report.text);
        break;
      case "name":
        this.#name = report.name;
        element("name").textContent = report.name;
        this.#showState();
        this.#streams.follow(report.name);
        this.#showTitle(null);
        break;
      case "title":
        this.#showTitle(report.title);
        break;
      case "joined":
        this.#keepMembership(report.certificate);
        break;
      case "facts":
        if (report.facts.publishing !== undefined) {
          this.#notes.showFailure(report.facts.publishing);
        }
        break;
      case "sample":
        this.#notes.push(report.sample);
        break;
      case "package":
        document.body.dataset["package"] = "hls";
        break;
      case "shown":
        this.#shown.push(...report.shown);
        this.#shown.splice(0, Math.max(0, this.#shown.length - MAX_SHOWN));
        break;
    }
  }

  /** Keeps the certificate, and takes the token from the address, so that a copied address invites nobody. */
  #keepMembership(certificate: string): void {
    const hash = this.#room && keepCertificate(this.#room, certificate, browserStore());
    if (hash !== undefined) {
      history.replaceState(null, "", hash);
    }
  }

  #showTitle(title: string | null): void {
    element("title").textContent = title;
    document.title = `${title ?? readableName(this.#name)} · Namecast`;
  }

  /** The badge, and under the picture the sentence, unless that stands in place of the picture. */
  #showState(): void {
    const { badge, look, sentence, covers } = this.#player.state;
    const pill = element("phase");
    setText(pill, badge);
    pill.dataset["look"] = look;
    setText(element("about"), covers ? this.#name : sentence);
  }

  async #copyDiagnostics(): Promise<void> {
    const { state, summary } = this.#player;
    const text = diagnostics({ state, summary, steps: this.#log.steps, openedAt: performance.timeOrigin, address: location.href, browser: navigator.userAgent });
    const button = element("diagnostics");
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = t("Copied");
    } catch {
      button.textContent = t("The browser does not allow copying");
    }
    setTimeout(() => (button.textContent = t("Copy diagnostics")), 2_000);
  }

  #showSummary(summary: Summary): void {
    if (document.hidden) {
      return;
    }
    this.#share.follow(this.#name, this.#player.streamTitle, summary);
    if (summary.video.shown > 0) {
      this.#allowInstruments();
      this.#streams.start();
    }
    if (this.#view === "inspect") {
      this.#inspect?.show(summary, this.#player.state);
    }
  }

  /** A reload or a copied address keeps the latency that was chosen. */
  #keepTarget(): void {
    const { target } = this.#player;
    const chosen = new URLSearchParams(location.search).get("target");
    if (chosen === null ? target !== DEFAULT_TARGET : chosen !== String(target)) {
      history.replaceState(null, "", withOption(location.href, "target", String(target)));
    }
  }

  #showView(view: View): void {
    this.#view = view;
    document.body.dataset["view"] = view;
    for (const each of ["watch", "inspect"]) {
      element(`view-${each}`).setAttribute("aria-pressed", String(each === view));
    }
    if (view === "inspect" || new URL(location.href).searchParams.has("view")) {
      history.replaceState(null, "", withOption(location.href, "view", view));
    }
    if (view === "inspect") {
      void this.#loadInspect();
    }
  }

  #allowInstruments(): void {
    if (!this.#hasInstruments) {
      this.#hasInstruments = true;
      if (this.#view === "inspect") {
        void this.#loadInspect();
      }
    }
  }

  /** The instruments weigh more than the picture needs, so they come when somebody looks at them. */
  async #loadInspect(): Promise<void> {
    if (!this.#hasInstruments) {
      return;
    }
    const [{ Inspect }] = await Promise.all([import("./page/inspect.ts"), this.#translated]);
    this.#inspect ??= new Inspect(this.#player);
    const { summary } = this.#player;
    if (summary !== undefined) {
      this.#inspect.show(summary, this.#player.state);
    }
  }

  #handleKey(event: KeyboardEvent): void {
    if (!meansKey(event)) {
      return;
    }
    if (handlePlayerKey(this.#player, event.key)) {
      event.preventDefault();
      return;
    }
    switch (event.key.toLowerCase()) {
      case "s":
        this.#share.toggle();
        break;
      case "t":
        this.#theme.toggle();
        break;
      case "v":
        this.#showView(this.#view === "watch" ? "inspect" : "watch");
        break;
    }
  }

  #makeHandle(): Handle {
    const player = this.#player;
    return {
      stats: () => player.summary,
      state: () => player.state,
      steps: this.#log.steps,
      shown: this.#shown,
      sound: player.sound,
      package: () => player.package.figures(),
      samples: this.#notes.received,
      send: (sample) => player.send({ type: "send", sample }),
      setTarget: (milliseconds) => (player.target = milliseconds),
      seek: (to) => player.seek(to),
      fault: (fault) => player.send({ type: "fault", fault }),
    };
  }
}

new Page();
