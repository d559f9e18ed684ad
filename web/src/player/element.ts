import type { Command, Options, Report } from "../shared/messages.ts";
import type { KnownKey } from "../shared/known-keys.ts";
import type { RoomConfig } from "../shared/room.ts";
import { preferred, speak } from "../shared/language.ts";
import type { NodeInfo } from "../shared/node.ts";
import type { Summary } from "../shared/summary.ts";
import { Captions } from "./captions.ts";
import { Clips } from "./clips.ts";
import { browserStore, KnownKeyStore } from "./known-keys.ts";
import { handlePlayerKey, meansKey } from "./keys.ts";
import { DEFAULT_TARGET } from "./latencies.ts";
import { Requirements } from "./missing.ts";
import { clampTarget, readOptions } from "./options.ts";
import { PackagePlayer } from "./package-player.ts";
import { NodeSegments } from "./node-segments.ts";
import { Picture } from "./picture.ts";
import { PipWindow } from "./pip.ts";
import { PlaybackTime } from "./playback-time.ts";
import { keepPreferences, lastingQuality, readPreferences, type Preferences } from "./preferences.ts";
import { qualitiesOf, type Quality } from "./qualities.ts";
import { ranges } from "./ranges.ts";
import { HAVE_NOTHING, Readiness, type PlayerError } from "./readiness.ts";
import { Sound } from "./sound.ts";
import { SoundSwitch } from "./sound-switch.ts";
import { Sight } from "./sight.ts";
import type { PlayerState } from "./state.ts";
import { StateFollower, type StateHost } from "./state-follower.ts";
import { STATE_VIEW, StateView } from "./state-view.ts";
import { STYLE } from "./style.ts";

/** Where pages are rendered on a server there are no elements: importing this file does nothing there. */
const isServer = typeof HTMLElement === "undefined";
const Base = isServer ? (class {} as typeof HTMLElement) : HTMLElement;

/**
 * A live stream of a Namecast node, used like `<video>`:
 * `<namecast-player src="https://node.example/?name=/show&key=…" autoplay muted controls>`.
 */
export class NamecastPlayer extends Base {
  static readonly observedAttributes = ["src", "controls", "muted", "background", "lang"];

  /** A worker that runs already, its core and a description of the node that were requested already: for the first `play`. */
  early: { worker: Worker; core: Promise<WebAssembly.Module>; node: Promise<NodeInfo> } | undefined;
  /** The room whose sealed streams this player may open: set before `src`. */
  room: RoomConfig | undefined;
  /** When the picture was wished for, in milliseconds since 1970. */
  openedAt = performance.timeOrigin + performance.now();

  readonly #frame: HTMLElement;
  readonly #picture: Picture;
  readonly #film: HTMLVideoElement;
  readonly #stateView: StateView;
  readonly #captions: Captions;
  readonly #store = browserStore();
  readonly #knownKeys = new KnownKeyStore(this.#store);
  readonly #package: PackagePlayer;
  readonly #pip: PipWindow;
  readonly #segments = new NodeSegments((report) => this.#handle(report));
  readonly sound = new Sound();
  readonly ended: boolean = false;
  #worker: Worker | undefined;
  readonly #clips = new Clips(() => !this.#paused && this.send({ type: "clip" }));
  readonly #readiness = new Readiness(this, (name) => this.#emit(name));
  #options: Options = {};
  #base: URL | undefined;
  readonly #requirements = new Requirements(() => this.#states.refresh());
  readonly #states = new StateFollower({
    situation: () => this.#situation(),
    presented: () => (this.#picture.isFilm && !this.#package.isOpen ? this.#film.getVideoPlaybackQuality().totalVideoFrames : null),
    follow: (state) => {
      this.#readiness.follow(state);
      this.#wantControls();
    },
    changed: (state) => {
      this.#stateView.show(state);
      this.#showStart();
      this.#emit("statechange");
      this.#readiness.showError(state);
    },
  });
  readonly #switch = new SoundSwitch(this.sound, {
    send: (command, transfer) => this.send(command, transfer),
    isLive: () => {
      // A film of live frames has no sound, and browsers let no other one start by itself.
      this.#film.muted = this.#switch.isMuted || !this.#package.isOpen;
      return !this.#package.isOpen && !this.#paused && this.#worker !== undefined;
    },
    changed: () => {
      this.#emit("volumechange");
      this.#states.refresh();
    },
  });
  /** A click anywhere on the page allows sound. */
  readonly #clicked = (): void => {
    if (this.#switch.needsClick) {
      this.muted = false;
    }
  };
  #target = DEFAULT_TARGET;
  #paused = true;
  readonly #time = new PlaybackTime({
    summary: () => this.#states.summary,
    segments: () => (this.#package.isOpen ? this.#film : undefined),
    send: (command) => this.send(command),
    emit: (name) => this.#emit(name),
  });
  #quality = "auto";
  #name = "";
  #title: string | null = null;
  #hasControls = false;
  /** Until the texts of the language are there. */
  #spoken: Promise<void> = Promise.resolve();
  readonly #sight = new Sight(this, () => this.background || this.#pip.isOpen, (visible) => {
    this.send({ type: "visible", visible });
    this.#states.handleVisibility();
  });

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `<style>${STYLE}</style>
      <div id="frame" part="frame">
        <slot name="picture"></slot>
        <p id="captions" part="captions" hidden></p>
        ${STATE_VIEW}
        <button id="start" type="button" aria-label="Play" hidden><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M8 5v14l11-7Z" /></svg></button>
      </div>`;
    const part = <E extends HTMLElement>(id: string): E => root.getElementById(id) as E;
    this.#frame = part("frame");
    this.#stateView = new StateView(this, root, () => this.act());
    this.addEventListener("keydown", (event) => {
      if (this.#hasControls && meansKey(event) && handlePlayerKey(this, event.key)) {
        event.preventDefault();
      }
    });
    this.#captions = new Captions(part("captions"), () => this.#emit("captionschange"));
    const slot = root.querySelector("slot") as HTMLSlotElement;
    const resized = (): void => this.#emit("resize");
    this.#picture = new Picture(this, slot, { presented: (presentation) => this.send({ type: "presented", presentation }), resized });
    this.#film = this.#picture.film;
    part("start").addEventListener("click", () => void this.play().catch(() => undefined));
    this.#pip = new PipWindow(this.#film, () => this.#picture.canvas, slot, (name) => {
      this.#sight.refresh();
      this.#emit(name);
    });
    this.#package = new PackagePlayer({
      film: this.#film,
      send: (command) => this.send(command),
      qualities: () => this.#emit("qualitychange"),
      step: (text) => this.#report({ type: "step", at: Date.now(), text }),
    });
    for (const name of ["playing", "waiting"]) {
      this.#film.addEventListener(name, () => this.#states.refresh());
    }
  }

  connectedCallback(): void {
    document.addEventListener("click", this.#clicked);
    this.#sight.connect();
    this.#speak();
    this.#showStart();
    this.#playByItself();
    this.#wantControls();
  }

  disconnectedCallback(): void {
    document.removeEventListener("click", this.#clicked);
    this.#sight.disconnect();
    this.#unload();
  }

  attributeChangedCallback(name: string, old: string | null, value: string | null): void {
    if (name === "muted") {
      this.#switch.set(value !== null);
    } else if (name === "controls") {
      this.#wantControls();
    } else if (name === "background") {
      this.#sight.refresh();
    } else if (name === "lang") {
      this.#speak();
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

  get muted(): boolean {
    return this.#switch.isMuted;
  }

  set muted(muted: boolean) {
    this.#switch.needsClick = false;
    this.#switch.set(muted);
    this.#keep({ muted });
  }

  /** Loudness, 0 to 1. */
  get volume(): number {
    return this.sound.volume;
  }

  set volume(volume: number) {
    if (!(volume >= 0 && volume <= 1)) {
      throw new DOMException(`volume is from 0 to 1, not ${volume}`, "IndexSizeError");
    }
    this.#setVolume(volume);
    this.#keep({ volume });
  }

  /** Seconds since `getStartDate()`. Setting it goes there, as far back as the stream is kept. */
  get currentTime(): number {
    return this.#time.current;
  }

  set currentTime(time: number) {
    this.#time.current = time;
  }

  /** When the publisher's clock was at zero of `currentTime`. */
  getStartDate(): Date {
    return this.#time.startDate;
  }

  /** Infinite, as a live stream has no end; NaN as long as nothing is known of it. */
  get duration(): number {
    return this.readyState === HAVE_NOTHING ? NaN : Infinity;
  }

  get seekable(): TimeRanges {
    return this.#time.seekable;
  }

  get buffered(): TimeRanges {
    return ranges([]);
  }

  get readyState(): number {
    return this.#readiness.state;
  }

  get error(): PlayerError | null {
    return this.#readiness.error;
  }

  get videoWidth(): number {
    return this.#picture.size.width;
  }

  get videoHeight(): number {
    return this.#picture.size.height;
  }

  /** As media-chrome has it. */
  get streamType(): "live" | "unknown" {
    return this.readyState === HAVE_NOTHING ? "unknown" : "live";
  }

  /** Infinite if one can go back, as media-chrome has it. */
  get targetLiveWindow(): number {
    return this.#time.liveWindow;
  }

  /** From where on it is live, as media-chrome has it. */
  get liveEdgeStart(): number {
    return this.#time.liveEdgeStart;
  }

  /** Name of the stream; empty until the node has said which one it offers. */
  get streamName(): string {
    return this.#name;
  }

  /** Title of the stream; null: its publisher gave none, or nothing is known of it yet. */
  get streamTitle(): string | null {
    return this.#title;
  }

  /** The qualities that are published, highest first. */
  get qualities(): Quality[] {
    return this.#package.isOpen ? this.#package.qualities() : qualitiesOf(this.#states.summary?.rungs ?? []);
  }

  /** The one chosen, by its name; `auto`: what the connection carries. */
  get quality(): string {
    return this.#quality;
  }

  set quality(quality: string) {
    this.#quality = quality;
    this.#package.choose(quality);
    this.send({ type: "rung", rung: quality });
    this.#emit("qualitychange");
    const lasting = lastingQuality(quality, this.qualities.map(({ name }) => name));
    this.#keep(lasting === undefined ? {} : { quality: lasting });
  }

  /** Playout target in milliseconds, 20 to 1000: least time between the moment a picture could be here and the moment it is shown. */
  get target(): number {
    return this.#target;
  }

  set target(target: number) {
    const clamped = clampTarget(target);
    if (clamped !== undefined && clamped !== this.#target) {
      this.#target = clamped;
      this.send({ type: "target", target: clamped });
      this.#emit("latencychange");
      this.#keep({ target: clamped });
    }
  }

  /** Whether captions have come. */
  get hasCaptions(): boolean {
    return this.#captions.isThere;
  }

  /** Whether captions are shown over the picture, if there are any. */
  get showsCaptions(): boolean {
    return this.#captions.isShown;
  }

  set showsCaptions(shows: boolean) {
    this.#captions.isShown = shows;
  }

  /** What the player does, for people: a badge and a sentence. The event `statechange` follows each change. */
  get state(): PlayerState {
    return this.#states.state;
  }

  /** Does what the state's `action` offers. */
  act(): void {
    if (this.state.action === "forget") {
      this.#knownKeys.forget(this.#name);
      this.pause();
      void this.play().catch(() => undefined);
    } else if (this.state.action === "sound") {
      this.muted = false;
    } else if (this.state.action === "https") {
      this.#requirements.remedy();
    }
  }

  /** All figures, four times a second; undefined before the first. */
  get summary(): Summary | undefined {
    return this.#states.summary;
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
    this.#requirements.check();
    if (this.#base === undefined) {
      throw new DOMException("a player without src has nothing to play", "NotSupportedError");
    }
    this.#paused = false;
    this.#states.begin();
    this.#emit("play");
    this.#emit("waiting");
    this.#showStart();
    this.#picture.play();
    if (this.#worker === undefined) {
      await this.#start(this.#base);
    } else {
      this.send({ type: "play", openedAt: performance.timeOrigin + performance.now(), known: this.#knownKeys.all() });
    }
    this.#time.resume();
    this.#switch.apply();
  }

  /** Ends all traffic; the last picture stays. */
  pause(): void {
    if (this.#paused) {
      return;
    }
    this.#time.pause();
    this.#paused = true;
    this.#clips.handle({ type: "noClip", why: "playback ended" });
    this.sound.stop();
    this.#segments.stop();
    this.#package.close();
    this.#picture.pause();
    this.send({ type: "pause" });
    this.#states.end();
    this.#emit("pause");
    this.#showStart();
  }

  /** Goes to a time of capture (publisher's clock, milliseconds since 1970); null: to live. Returns the number of the wish. */
  seek(to: number | null): number {
    return this.#time.seek(to);
  }

  /** Moves playback by `seconds` from where it is, or is going to, as far as the stream is kept. */
  step(seconds: number): void {
    this.#time.step(seconds);
  }

  /** Shows the picture in a window of its own above all others. */
  requestPictureInPicture(): Promise<PictureInPictureWindow> {
    return this.#pip.open(this.#package.isOpen || this.#picture.isFilm);
  }

  /** The picture that is shown, in its own size, as PNG. Throws `InvalidStateError` before the first one. */
  screenshot(): Promise<Blob> {
    return this.#picture.screenshot(this.#package.isOpen);
  }

  /** The last half minute as MP4, as it was received: nothing is encoded anew. Throws `InvalidStateError` where there is none. */
  clip(): Promise<Blob> {
    return this.#clips.make();
  }

  /** Gives the worker a command; those before the first `play` are lost. Returns whether there is a worker. */
  send(command: Command, transfer: Transferable[] = []): boolean {
    this.#worker?.postMessage(command, transfer);
    return this.#worker !== undefined;
  }

  #load(src: string | null): void {
    this.#unload();
    const base = src === null ? undefined : new URL(src, document.baseURI);
    this.#base = base;
    if (base === undefined) {
      return;
    }
    this.#choose(readOptions(base.searchParams));
    void this.#requirements.find(base);
    this.#states.refresh();
    this.#emit("emptied");
    this.#playByItself();
  }

  #playByItself(): void {
    if (this.autoplay && this.isConnected && this.#base !== undefined) {
      void this.play().catch(() => undefined);
    }
  }

  /** The address goes before what a person chose for all streams, which goes for players with controls. */
  #choose(options: Options): void {
    const kept = this.controls ? readPreferences(this.#store) : {};
    this.#quality = options.rung ?? kept.quality ?? "auto";
    this.#target = options.target ?? kept.target ?? DEFAULT_TARGET;
    this.#time.beginAt(options.at ?? null);
    this.#options = { ...options, ...(this.#quality === "auto" ? {} : { rung: this.#quality }), target: this.#target };
    this.#switch.set(kept.muted ?? this.#switch.isMuted);
    this.#setVolume(kept.volume ?? this.volume);
    this.#emit("latencychange");
  }

  #keep(choices: Preferences): void {
    if (this.controls) {
      keepPreferences(this.#store, choices);
    }
  }

  #setTitle(title: string | null): void {
    if (title !== this.#title) {
      this.#title = title;
      this.#emit("titlechange");
    }
  }

  #setVolume(volume: number): void {
    this.sound.volume = volume;
    this.#film.volume = volume;
    this.#emit("volumechange");
  }

  #unload(): void {
    this.pause();
    if (this.#worker !== undefined) {
      this.#worker.terminate();
      this.#worker = undefined;
      this.#picture.close();
    }
    this.#states.forget();
    this.#time.forget();
    this.#readiness.forget();
    this.#captions.forget();
    this.#setTitle(null);
  }

  async #start(base: URL): Promise<void> {
    this.#emit("loadstart");
    if (this.#requirements.playsSegments) {
      this.early?.worker.terminate();
      this.#segments.start(base, this.#options, this.#knownKeys.all());
      return;
    }
    const { early } = this;
    this.early = undefined;
    const worker = early?.worker ?? new Worker(new URL("../worker/worker.ts", import.meta.url), { type: "module", name: "namecast" });
    this.#worker = worker;
    worker.onmessage = (event: MessageEvent<Report>) => this.#handle(event.data);
    worker.onerror = (event) => this.#states.learn({ failure: event.message || "its worker did not start" });
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
      room: this.room,
      base: base.href,
      origin: location.origin,
      openedAt: this.openedAt,
      visible: this.#sight.isSeen,
      keepsClip: this.controls,
      takesSegments: this.#options.screen === undefined,
    };
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
        this.#states.learn(report.facts);
        break;
      case "name":
        this.#name = report.name;
        break;
      case "title":
        this.#setTitle(report.title);
        break;
      case "remember":
        this.#remember(report.name, report.key);
        break;
      case "size":
      case "source":
      case "screen":
      case "steer":
        this.#picture.handle(report);
        break;
      case "caption":
        this.#captions.handle(report.text);
        break;
      case "clip":
      case "noClip":
        this.#clips.handle(report);
        break;
      case "package":
        this.#picture.giveFilm();
        this.#film.muted = this.#switch.isMuted;
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

  #handleSummary(summary: Summary): void {
    if (this.#paused) {
      return;
    }
    const before = this.#states.summary;
    this.#states.handleSummary(summary);
    const isKnown = this.readyState > HAVE_NOTHING;
    this.#time.handle(summary.position, isKnown ? before?.position : undefined, this.state.isPlaying);
    if (before?.rungs.length !== summary.rungs.length) {
      this.#emit("qualitychange");
    }
  }

  /** Speaks the reader's language, or that of the attribute `lang`. */
  #speak(): void {
    this.#spoken = speak(preferred(this.getAttribute("lang"))).then(() => this.#states.refresh());
  }

  /** Keeps the key of a stream that was met for the first time; another tab may have been first with another one. */
  #remember(name: string, key: KnownKey): void {
    const known = this.#knownKeys.remember(name, key);
    if (known !== undefined && known.digest !== key.digest) {
      this.pause();
      this.#states.learn({ refusal: { why: "changed", signer: this.#states.summary?.signer?.name ?? "", verdict: "", since: known.since } });
    } else {
      const text = known === undefined ? `This browser does not remember the key of ${name}` : `Remembered the key of ${name}: another one will be refused`;
      this.#report({ type: "step", at: Date.now(), text });
    }
  }

  #situation(): ReturnType<StateHost["situation"]> {
    const { origin, host } = this.#base ?? location;
    return {
      name: this.#name || (this.#options.name ?? "the stream"),
      host,
      foreignPage: origin === location.origin ? null : location.origin,
      lack: this.#requirements.lack(),
      hasBegun: this.#worker !== undefined || this.readyState > HAVE_NOTHING,
      paused: this.#paused,
      isSeen: this.#sight.isSeen,
      muted: this.#switch.isMuted,
      soundNeedsClick: this.#switch.needsClick,
      soundFailure: this.#switch.failure,
      segments: this.#package.isOpen ? this.#package.state() : null,
    };
  }

  /** The large button of a player that waits for a person, unless a sentence stands there. */
  #showStart(): void {
    this.shadowRoot?.getElementById("start")?.toggleAttribute("hidden", !this.#paused || this.state.covers);
    this.toggleAttribute("data-paused", this.#paused);
  }

  /** Loads the controls once there is a picture: nothing must delay that. */
  #wantControls(): void {
    if (this.#hasControls || !this.controls || !this.isConnected || (this.readyState === HAVE_NOTHING && this.autoplay)) {
      return;
    }
    this.#hasControls = true;
    void Promise.all([import("./controls.ts"), this.#spoken]).then(([{ addControls }]) => addControls(this, this.#frame));
  }

  #report(report: Report): void {
    this.dispatchEvent(new CustomEvent("report", { detail: report }));
  }

  #emit(name: string): void {
    this.dispatchEvent(new Event(name));
  }
}

if (!isServer && customElements.get("namecast-player") === undefined) {
  customElements.define("namecast-player", NamecastPlayer);
}

declare global {
  interface HTMLElementTagNameMap {
    "namecast-player": NamecastPlayer;
  }
}
