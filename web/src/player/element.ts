import { NO_FACTS, type Facts } from "../shared/facts.ts";
import type { Command, Options, Report } from "../shared/messages.ts";
import type { KnownKey } from "../shared/known-keys.ts";
import type { NodeInfo } from "../shared/node.ts";
import type { Summary } from "../shared/summary.ts";
import { browserStore, KnownKeyStore } from "./known-keys.ts";
import { MediaKeys } from "./media-keys.ts";
import { missing } from "./missing.ts";
import { readOptions } from "./options.ts";
import { PackagePlayer } from "./package-player.ts";
import { Picture } from "./picture.ts";
import { PipWindow } from "./pip.ts";
import { qualitiesOf, type Quality } from "./qualities.ts";
import { Sound } from "./sound.ts";
import { describe, type PlayerState } from "./state.ts";
import { STYLE } from "./style.ts";
import { behind, meant, reach } from "./timeline.ts";
import { WakeLock } from "./wake-lock.ts";

/** States of `readyState`, as HTMLMediaElement has them. */
const [HAVE_NOTHING, HAVE_METADATA, HAVE_CURRENT_DATA, HAVE_ENOUGH_DATA] = [0, 1, 2, 4];

/** What went wrong, as MediaError has it. */
export interface PlayerError {
  /** 2: network, 3: decoding, 4: cannot be played here. */
  code: number;
  message: string;
}

/** Interval in which the state is made anew, as times pass, in milliseconds. */
const STATE_INTERVAL = 500;
/** A sentence is kept for so long if only its figures change, in milliseconds. */
const SENTENCE_SPAN = 3_000;

/**
 * A live stream of a Namecast node, used like `<video>`:
 * `<namecast-player src="https://node.example/?name=/show&key=…" autoplay muted controls>`.
 */
export class NamecastPlayer extends HTMLElement {
  static readonly observedAttributes = ["src", "controls", "muted", "background"];

  /** A worker that runs already, its core and a description of the node that were requested already: for the first `play`. */
  early: { worker: Worker; core: Promise<WebAssembly.Module>; node: Promise<NodeInfo> } | undefined;
  /** When the picture was wished for, in milliseconds since 1970. */
  openedAt = performance.timeOrigin + performance.now();

  readonly #frame: HTMLElement;
  readonly #picture: Picture;
  readonly #film: HTMLVideoElement;
  readonly #sentence: HTMLElement;
  readonly #action: HTMLButtonElement;
  readonly #captions: HTMLElement;
  readonly #store = browserStore();
  readonly #knownKeys = new KnownKeyStore(this.#store);
  readonly #package: PackagePlayer;
  readonly #wakeLock = new WakeLock();
  readonly #pip: PipWindow;
  readonly sound = new Sound();
  #worker: Worker | undefined;
  readonly #mediaKeys = new MediaKeys(this);
  #options: Options = {};
  #base: URL | undefined;
  #facts: Facts = NO_FACTS;
  #summary: Summary | undefined;
  #summaryAt = 0;
  /** Pictures that the `<video>` has presented, and when that number last changed. */
  #presented = { count: 0, at: 0 };
  #soundFailure = "";
  #state: PlayerState | undefined;
  #stateAt = 0;
  #stateTimer: ReturnType<typeof setInterval> | undefined;
  #paused = true;
  #muted = false;
  #size = { width: 0, height: 0 };
  #readyState = HAVE_NOTHING;
  #error: PlayerError | null = null;
  /** Time zero of `currentTime`, in milliseconds since 1970 by the publisher's clock. */
  #origin: number | undefined;
  #liveWindow = 0;
  #seeks = 0;
  #resumeAt: number | null = null;
  #quality = "auto";
  #name = "";
  #hasControls = false;
  #hasCaptions = false;
  #showsCaptions = true;
  /** Whether a part of the element is on the screen, as far as it is known. */
  #isOnScreen = true;
  #isShownVisible: boolean | undefined;
  readonly #visibility = (): void => this.#showVisibility();
  readonly #scrolling = new IntersectionObserver((entries) => {
    this.#isOnScreen = entries.at(-1)?.isIntersecting ?? true;
    this.#showVisibility();
  });

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `<style>${STYLE}</style>
      <div id="frame" part="frame">
        <slot name="picture"></slot>
        <p id="captions" part="captions" hidden></p>
        <div id="waiting" part="waiting"><span class="spinner" aria-hidden="true"></span><p id="sentence" role="status"></p><button id="action" type="button" hidden></button></div>
        <button id="start" type="button" aria-label="Play" hidden><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M8 5v14l11-7Z" /></svg></button>
      </div>`;
    const part = <E extends HTMLElement>(id: string): E => root.getElementById(id) as E;
    this.#frame = part("frame");
    this.#sentence = part("sentence");
    this.#action = part("action");
    this.#action.addEventListener("click", () => this.act());
    this.#captions = part("captions");
    const slot = root.querySelector("slot") as HTMLSlotElement;
    this.#picture = new Picture(this, slot);
    this.#film = this.#picture.film;
    part("start").addEventListener("click", () => void this.play().catch(() => undefined));
    this.#pip = new PipWindow(this.#film, () => this.#picture.canvas, slot, (name) => {
      this.#showVisibility();
      this.#emit(name);
    });
    this.#package = new PackagePlayer({
      film: this.#film,
      send: (command) => this.send(command),
      step: (text) => this.#report({ type: "step", at: Date.now(), text }),
    });
    for (const name of ["playing", "waiting"]) {
      this.#film.addEventListener(name, () => this.#refresh());
    }
  }

  connectedCallback(): void {
    document.addEventListener("visibilitychange", this.#visibility);
    this.#scrolling.observe(this);
    this.#showStart();
    if (this.autoplay && this.#base !== undefined) {
      void this.play().catch(() => undefined);
    }
    this.#wantControls();
  }

  disconnectedCallback(): void {
    document.removeEventListener("visibilitychange", this.#visibility);
    this.#scrolling.disconnect();
    this.#isOnScreen = true;
    this.#unload();
  }

  attributeChangedCallback(name: string, old: string | null, value: string | null): void {
    if (name === "muted") {
      this.#muted = value !== null;
    } else if (name === "controls") {
      this.#wantControls();
    } else if (name === "background") {
      this.#showVisibility();
    } else if (old !== value) {
      this.#load(value);
    }
  }

  /** Address of the stream: that of the node's page, with the name and whatever else its query says. */
  get src(): string {
    return this.getAttribute("src") ?? "";
  }

  set src(src: string) {
    this.setAttribute("src", src);
  }

  get autoplay(): boolean {
    return this.hasAttribute("autoplay");
  }

  set autoplay(autoplay: boolean) {
    this.toggleAttribute("autoplay", autoplay);
  }

  get controls(): boolean {
    return this.hasAttribute("controls");
  }

  set controls(controls: boolean) {
    this.toggleAttribute("controls", controls);
  }

  /** Whether the picture is decoded where nobody sees it, too. */
  get background(): boolean {
    return this.hasAttribute("background");
  }

  set background(background: boolean) {
    this.toggleAttribute("background", background);
  }

  get paused(): boolean {
    return this.#paused;
  }

  get ended(): boolean {
    return false;
  }

  get muted(): boolean {
    return this.#muted;
  }

  set muted(muted: boolean) {
    if (muted !== this.#muted) {
      this.#muted = muted;
      this.#emit("volumechange");
      this.#applySound();
    }
  }

  /** Loudness, 0 to 1. */
  get volume(): number {
    return this.sound.volume;
  }

  set volume(volume: number) {
    if (!(volume >= 0 && volume <= 1)) {
      throw new DOMException(`volume is from 0 to 1, not ${volume}`, "IndexSizeError");
    }
    this.sound.volume = volume;
    this.#film.volume = volume;
    this.#emit("volumechange");
  }

  /** Seconds since `getStartDate()`. Setting it goes there, as far back as the stream is kept. */
  get currentTime(): number {
    if (this.#package.isOpen) {
      return this.#film.currentTime;
    }
    const position = this.#summary?.position;
    return position === undefined || this.#origin === undefined ? 0 : (position.now - behind(position) - this.#origin) / 1_000;
  }

  set currentTime(time: number) {
    const summary = this.#summary;
    if (this.#package.isOpen) {
      this.#film.currentTime = time;
    } else if (summary !== undefined && this.#origin !== undefined) {
      this.seek(meant(summary.position.now - this.#origin - time * 1_000, summary.position));
    }
  }

  /** When the publisher's clock was at zero of `currentTime`. */
  getStartDate(): Date {
    return new Date(this.#origin ?? NaN);
  }

  /** Infinite, as a live stream has no end; NaN as long as nothing is known of it. */
  get duration(): number {
    return this.#readyState === HAVE_NOTHING ? NaN : Infinity;
  }

  get seekable(): TimeRanges {
    if (this.#package.isOpen) {
      return this.#film.seekable;
    }
    const position = this.#summary?.position;
    if (position === undefined || this.#origin === undefined) {
      return ranges([]);
    }
    const end = (position.now - this.#origin) / 1_000;
    return ranges([[end - reach(position) / 1_000, end]]);
  }

  get buffered(): TimeRanges {
    return ranges([]);
  }

  get readyState(): number {
    return this.#readyState;
  }

  get error(): PlayerError | null {
    return this.#error;
  }

  get videoWidth(): number {
    return this.#size.width;
  }

  get videoHeight(): number {
    return this.#size.height;
  }

  /** As media-chrome has it. */
  get streamType(): "live" | "unknown" {
    return this.#readyState === HAVE_NOTHING ? "unknown" : "live";
  }

  /** Infinite if one can go back, as media-chrome has it. */
  get targetLiveWindow(): number {
    const { seekable } = this;
    return seekable.length > 0 && seekable.end(0) > seekable.start(0) ? Infinity : 0;
  }

  /** From where on it is live, as media-chrome has it. */
  get liveEdgeStart(): number {
    const { seekable } = this;
    const end = seekable.length === 0 ? NaN : seekable.end(seekable.length - 1);
    return this.#package.isOpen ? end - 15 : this.#summary?.position.live === false ? end : Math.min(end, this.currentTime);
  }

  /** Name of the stream; empty until the node has said which one it offers. */
  get streamName(): string {
    return this.#name;
  }

  /** The qualities that are published, highest first. */
  get qualities(): Quality[] {
    return qualitiesOf(this.#summary?.rungs ?? []);
  }

  /** The one chosen, by its name; `auto`: what the connection carries. */
  get quality(): string {
    return this.#quality;
  }

  set quality(quality: string) {
    this.#quality = quality;
    this.send({ type: "rung", rung: quality });
    this.#emit("qualitychange");
  }

  /** Whether captions have come. */
  get hasCaptions(): boolean {
    return this.#hasCaptions;
  }

  /** Whether captions are shown over the picture, if there are any. */
  get showsCaptions(): boolean {
    return this.#showsCaptions;
  }

  set showsCaptions(shows: boolean) {
    this.#showsCaptions = shows;
    this.#caption(this.#captions.textContent ?? "");
    this.#emit("captionschange");
  }

  /** What the player does, for people: a badge and a sentence. The event `statechange` follows each change. */
  get state(): PlayerState {
    this.#state ??= this.#describe();
    return this.#state;
  }

  /** Does what the state's `action` offers. */
  act(): void {
    if (this.state.action === "forget") {
      this.#knownKeys.forget(this.#name);
      this.pause();
      void this.play().catch(() => undefined);
    }
  }

  /** All figures, four times a second; undefined before the first. */
  get summary(): Summary | undefined {
    return this.#summary;
  }

  /** What plays segments, for streams that are published so. */
  get package(): PackagePlayer {
    return this.#package;
  }

  /** Keys of streams that this site's browser remembers. */
  get knownKeys(): KnownKeyStore {
    return this.#knownKeys;
  }

  /** Joins the stream. A stream that was paused in the past goes on there, if it is kept so long. */
  async play(): Promise<void> {
    if (!this.#paused) {
      return;
    }
    const lack = missing();
    if (lack !== null) {
      this.#refresh();
      throw new DOMException(lack.sentence, "NotSupportedError");
    }
    if (this.#base === undefined) {
      throw new DOMException("a player without src has nothing to play", "NotSupportedError");
    }
    this.#paused = false;
    this.#facts = NO_FACTS;
    this.#summary = undefined;
    this.#stateTimer = setInterval(() => this.#refresh(), STATE_INTERVAL);
    this.#refresh();
    this.#emit("play");
    this.#emit("waiting");
    this.#showStart();
    this.#picture.play();
    if (this.#worker === undefined) {
      await this.#start(this.#base);
    } else {
      this.send({ type: "play", openedAt: performance.timeOrigin + performance.now(), known: this.#knownKeys.all() });
    }
    if (this.#resumeAt !== null) {
      this.seek(this.#resumeAt);
      this.#resumeAt = null;
    }
    this.#applySound();
  }

  /** Ends all traffic; the last picture stays. */
  pause(): void {
    if (this.#paused) {
      return;
    }
    const position = this.#summary?.position;
    this.#resumeAt = position?.live === false ? position.shown : null;
    this.#paused = true;
    this.sound.stop();
    this.#package.close();
    this.#picture.pause();
    this.send({ type: "pause" });
    clearInterval(this.#stateTimer);
    this.#refresh();
    this.#emit("pause");
    this.#showStart();
  }

  /** Goes to a time of capture (publisher's clock, milliseconds since 1970); null: to live. Returns the number of the wish. */
  seek(to: number | null): number {
    this.#seeks += 1;
    this.send({ type: "seek", number: this.#seeks, to });
    this.#emit("seeking");
    return this.#seeks;
  }

  /** Shows the picture in a window of its own above all others. */
  requestPictureInPicture(): Promise<PictureInPictureWindow> {
    return this.#pip.open(this.#package.isOpen || this.#picture.isTrack);
  }

  /** Gives the worker a command; those before the first `play` are lost. */
  send(command: Command, transfer: Transferable[] = []): void {
    this.#worker?.postMessage(command, transfer);
  }

  #load(src: string | null): void {
    this.#unload();
    this.#base = undefined;
    if (src === null) {
      return;
    }
    const base = new URL(src, document.baseURI);
    this.#base = base;
    this.#options = readOptions(base.searchParams);
    this.#quality = this.#options.rung ?? "auto";
    this.#refresh();
    this.#emit("emptied");
    if (this.autoplay && this.isConnected) {
      void this.play().catch(() => undefined);
    }
  }

  #unload(): void {
    this.pause();
    if (this.#worker !== undefined) {
      this.#worker.terminate();
      this.#worker = undefined;
      this.#picture.close();
    }
    this.#summary = undefined;
    this.#origin = undefined;
    this.#resumeAt = null;
    this.#readyState = HAVE_NOTHING;
    this.#hasCaptions = false;
    this.#caption("");
    this.#emit("captionschange");
  }

  async #start(base: URL): Promise<void> {
    this.#emit("loadstart");
    const { early } = this;
    this.early = undefined;
    const worker = early?.worker ?? new Worker(new URL("../worker/worker.ts", import.meta.url), { type: "module", name: "namecast" });
    this.#worker = worker;
    worker.onmessage = (event: MessageEvent<Report>) => this.#handle(event.data);
    worker.onerror = (event) => this.#learn({ failure: event.message || "its worker did not start" });
    // What was requested and did not come, the worker requests again.
    const node = await early?.node.catch(() => undefined);
    if (worker !== this.#worker) {
      return;
    }
    const screen = this.#picture.open(this.#options.screen);
    const start: Command = {
      type: "start",
      screen,
      compiles: early !== undefined,
      node,
      options: this.#options,
      known: this.#knownKeys.all(),
      publishes: undefined,
      base: base.href,
      origin: location.origin,
      openedAt: this.openedAt,
      visible: this.#isVisible(),
    };
    this.#isShownVisible = start.visible;
    worker.postMessage(start, [screen]);
    early?.core.catch(() => undefined).then((core) => worker.postMessage({ type: "core", core } satisfies Command));
    if (this.#paused) {
      this.send({ type: "pause" });
    }
  }

  #handle(report: Report): void {
    switch (report.type) {
      case "summary":
        this.#handleSummary(report.summary);
        break;
      case "facts":
        this.#learn(report.facts);
        break;
      case "name":
        this.#name = report.name;
        break;
      case "remember":
        this.#remember(report.name, report.key);
        break;
      case "size":
        this.#picture.play();
        this.#size = { width: report.width, height: report.height };
        this.style.setProperty("--ratio", String(report.width / report.height));
        this.#emit("resize");
        break;
      case "caption":
        this.#caption(report.text);
        if (!this.#hasCaptions) {
          this.#hasCaptions = true;
          this.#emit("captionschange");
        }
        break;
      case "package":
        this.#picture.giveFilm();
        this.#film.muted = this.#muted;
        this.#package.open(report.info);
        break;
      case "fetching":
      case "fetched":
      case "unfetched":
        this.#package.handle(report);
        break;
    }
    this.#report(report);
  }

  #caption(text: string): void {
    this.#captions.textContent = text;
    this.#captions.hidden = text === "" || !this.#showsCaptions;
  }

  #handleSummary(summary: Summary): void {
    if (this.#paused) {
      return;
    }
    const before = this.#summary;
    this.#summary = summary;
    this.#summaryAt = performance.now();
    this.#refresh();
    if (!this.#package.isOpen && this.#state?.isPlaying === true) {
      this.#origin ??= summary.position.since ?? summary.position.now;
    }
    if (this.#readyState > HAVE_NOTHING) {
      if (before !== undefined && before.position.seeking !== null && summary.position.seeking === null) {
        this.#emit("seeked");
      }
      this.#emit("timeupdate");
      this.#emit("progress");
    }
    if (before?.rungs.length !== summary.rungs.length) {
      this.#emit("qualitychange");
    }
    if (this.targetLiveWindow !== this.#liveWindow) {
      this.#liveWindow = this.targetLiveWindow;
      this.#emit("targetlivewindowchange");
    }
  }

  #setReady(state: number): void {
    const before = this.#readyState;
    this.#readyState = state;
    if (before < HAVE_METADATA && state >= HAVE_METADATA) {
      this.#emit("loadedmetadata");
      this.#emit("durationchange");
      this.#wantControls();
    }
    if (before < HAVE_ENOUGH_DATA && state === HAVE_ENOUGH_DATA) {
      this.#emit("canplay");
      this.#emit("playing");
    } else if (before === HAVE_ENOUGH_DATA && state < before && !this.#paused) {
      this.#emit("waiting");
    }
    this.#mediaKeys.show(state > HAVE_NOTHING && this.controls);
    this.#wakeLock.want(state === HAVE_ENOUGH_DATA && !this.#paused && this.controls);
  }

  /** Keeps the key of a stream that was met for the first time; another tab may have been first with another one. */
  #remember(name: string, key: KnownKey): void {
    const known = this.#knownKeys.remember(name, key);
    if (known === undefined) {
      this.#report({ type: "step", at: Date.now(), text: `This browser does not remember the key of ${name}` });
    } else if (known.digest !== key.digest) {
      this.pause();
      this.#learn({ refusal: { why: "changed", signer: this.#summary?.signer?.name ?? "", verdict: "", since: known.since } });
    } else {
      this.#report({ type: "step", at: Date.now(), text: `Remembered the key of ${name}: another one will be refused` });
    }
  }

  #learn(facts: Partial<Facts>): void {
    this.#facts = { ...this.#facts, ...facts };
    this.#refresh();
  }

  #describe(): PlayerState {
    const now = performance.now();
    const { origin, host } = this.#base ?? location;
    return describe({
      name: this.#name || (this.#options.name ?? "the stream"),
      host,
      foreignPage: origin === location.origin ? null : location.origin,
      lack: missing(),
      hasBegun: this.#worker !== undefined,
      paused: this.#paused,
      isSeen: this.#isVisible(),
      muted: this.#muted,
      soundNeedsClick: false,
      soundFailure: this.#soundFailure,
      facts: this.#facts,
      summary: this.#summary,
      summaryAge: now - this.#summaryAt,
      presented: this.#presentedAge(now),
      segments: this.#package.isOpen ? this.#package.state() : null,
    });
  }

  /** Time since the `<video>` presented a new picture of a live stream; null: a canvas shows it. */
  #presentedAge(now: number): number | null {
    if (!this.#picture.isTrack || this.#package.isOpen) {
      return null;
    }
    const count = this.#film.getVideoPlaybackQuality().totalVideoFrames;
    if (count !== this.#presented.count) {
      this.#presented = { count, at: now };
    }
    return now - this.#presented.at;
  }

  /** Makes the state anew, and shows it if it is another one. */
  #refresh(): void {
    const [state, before, now] = [this.#describe(), this.#state, performance.now()];
    const isOther = before === undefined || state.kind !== before.kind || state.action !== before.action || state.covers !== before.covers;
    const isOverdue = before?.sentence !== state.sentence && (state.isPlaying || now - this.#stateAt >= SENTENCE_SPAN);
    this.#follow(state);
    if (!isOther && !isOverdue && before.badge === state.badge) {
      return;
    }
    this.#state = state;
    this.#stateAt = now;
    this.dataset["state"] = state.kind;
    this.toggleAttribute("data-covered", state.covers);
    this.toggleAttribute("data-waits", state.look === "wait");
    this.#sentence.textContent = state.covers ? state.sentence : "";
    this.#action.hidden = !state.covers || state.action === null;
    this.#action.textContent = state.action === "forget" ? "Forget the old key" : "";
    this.#emit("statechange");
    this.#showError(state);
  }

  /** What the element reports as a `<video>` does. */
  #follow({ kind, isPlaying }: PlayerState): void {
    if (isPlaying) {
      this.#setReady(HAVE_ENOUGH_DATA);
    } else if (kind !== "hidden") {
      this.#setReady(Math.min(this.#readyState, HAVE_CURRENT_DATA));
    }
  }

  #showError({ error, sentence, kind }: PlayerState): void {
    // A connection that is lost comes back by itself; one that was never made may need a person.
    const code = kind === "cut" && this.#readyState > HAVE_NOTHING ? 0 : error;
    if (code !== (this.#error?.code ?? 0)) {
      this.#error = code === 0 ? null : { code, message: sentence };
      if (code !== 0) {
        this.#emit("error");
      }
    }
  }

  #applySound(): void {
    // A film of live frames has no sound, and browsers let no other one start by itself.
    this.#film.muted = this.#muted || !this.#package.isOpen;
    if (this.#package.isOpen || this.#paused || this.#worker === undefined) {
      return;
    }
    if (this.#muted) {
      this.send({ type: "soundOff" });
      this.sound.stop();
      return;
    }
    void this.#startSound();
  }

  async #startSound(): Promise<void> {
    try {
      const port = await this.sound.start();
      this.send({ type: "sound", port }, [port]);
      this.#soundFailure = "";
    } catch (error) {
      this.#soundFailure = error instanceof Error ? error.message : String(error);
      this.muted = true;
    }
    this.#refresh();
  }

  #isVisible(): boolean {
    return this.background || this.#pip.isOpen || (!document.hidden && this.#isOnScreen);
  }

  #showVisibility(): void {
    const visible = this.#isVisible();
    if (visible === this.#isShownVisible) {
      return;
    }
    this.#isShownVisible = visible;
    this.send({ type: "visible", visible });
    this.#presented.at = performance.now();
    this.#refresh();
  }

  /** The large button of a player that waits for a person. */
  #showStart(): void {
    const root = this.shadowRoot;
    const start = root?.getElementById("start");
    start?.toggleAttribute("hidden", !this.#paused);
    this.toggleAttribute("data-paused", this.#paused);
  }

  /** Loads the controls once there is a picture: nothing must delay that. */
  #wantControls(): void {
    if (this.#hasControls || !this.controls || !this.isConnected || (this.#readyState === HAVE_NOTHING && this.autoplay)) {
      return;
    }
    this.#hasControls = true;
    void import("./controls.ts").then(({ addControls }) => addControls(this, this.#frame));
  }

  #report(report: Report): void {
    this.dispatchEvent(new CustomEvent("report", { detail: report }));
  }

  #emit(name: string): void {
    this.dispatchEvent(new Event(name));
  }
}

function ranges(parts: readonly (readonly [number, number])[]): TimeRanges {
  const at = (index: number, end: 0 | 1): number => {
    const part = parts[index];
    if (part === undefined) {
      throw new DOMException(`there is no range ${index}`, "IndexSizeError");
    }
    return part[end];
  };
  return { length: parts.length, start: (index) => at(index, 0), end: (index) => at(index, 1) };
}

if (customElements.get("namecast-player") === undefined) {
  customElements.define("namecast-player", NamecastPlayer);
}

declare global {
  interface HTMLElementTagNameMap {
    "namecast-player": NamecastPlayer;
  }
}
