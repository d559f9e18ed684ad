import { NO_FACTS, type Evidence, type Facts } from "../shared/facts.ts";
import type { Command, Fault, Options, Publishes, Report } from "../shared/messages.ts";
import type { KnownKey } from "../shared/known-keys.ts";
import { fetchNode, type NodeInfo } from "../shared/node.ts";
import { HLS } from "../shared/package.ts";
import type { Position, Summary } from "../shared/summary.ts";
import { Audio } from "./audio.ts";
import { ClipBuffer } from "./clip-buffer.ts";
import { clockAhead, corrected, failuresOf, meanStages, pathOf, rungsOf, sharesOf, signerOf, type CoreFigures } from "./figures.ts";
import { KeyMemory } from "./key-memory.ts";
import { message, type Link } from "./link.ts";
import { Links } from "./links.ts";
import { LipSync } from "./lip-sync.ts";
import { PlayoutTarget, type Timed } from "./playout-target.ts";
import { Overload } from "./overload.ts";
import { Pump } from "./pump.ts";
import type { Catalogue, DiscontinuityRecord, FrameRecord, RegistrationEvent, Rung, SignerEvent, Stream, TabEvent, TabRecord } from "./records.ts";
import { Travel } from "./travel.ts";
import type { Screen } from "./screen.ts";
import { STREAM_NUMBER, type Core, type PublicationConfig, type Tab, type WatchConfig } from "./tab.ts";
import { Video } from "./video.ts";

type Start = Extract<Command, { type: "start" }>;

/** Target until somebody chooses another, in milliseconds. */
const DEFAULT_TARGET = 100;
/** How often the page gets figures, in milliseconds. */
const SUMMARY_INTERVAL = 250;
/** Figures that shares are taken of: 10 s. */
const RECENT = 40;
/** Most that playback from the past waits for its first frame to be decoded: what comes meanwhile is kept decoded. */
const MAX_LAG = 300;
/** Figures are made in every fourth interval only while the machine is busy. */
const BUSY_INTERVALS = 4;
/** Intervals for each of the figures that a page gets of a player that nobody sees. */
const UNSEEN_INTERVALS = 8;
/** Time between two pictures while the machine has no time for more, in milliseconds. */
const BUSY_PICTURE_INTERVAL = 100;
/** Longest time between two key frames that counts as playing while nothing else is decoded, in milliseconds. */
const KEY_FRAME_INTERVAL = 2_000;
/** What people read in the log. */
const OVERLOAD_STEPS = {
  none: "This machine has time again",
  instruments: "This machine is busy: fewer figures",
  quality: "This machine is busy: lowest quality",
  rate: "This machine is busy: ten pictures a second",
  picture: "This machine is busy: key frames only",
};
/** Codec of captions: each sample is the text that is shown from its time on. */
const CAPTIONS = "text";
/** Name of the data stream that the page publishes, most samples of a second, and octets of a usual one. */
const NOTES = "notes";
const NOTES_PER_SECOND = 10;
const NOTE_SIZE = 100;

/** What a session is opened with. */
export interface Opening {
  start: Start;
  /** Where pictures are shown. */
  screen: Screen;
  report(report: Report): void;
}

/** One stream that is watched: the core, its transports, its decoders. */
export class Session {
  readonly #report: (report: Report) => void;
  readonly #start: Start;
  readonly #core: Core;
  readonly #tab: Tab;
  /** Number of the watch. */
  readonly #watch: number;
  readonly #pump: Pump;
  readonly #links: Links;
  readonly #video: Video;
  readonly #audio: Audio;
  readonly #lipSync = new LipSync();
  readonly #travel = new Travel((missed) => this.#fact({ missed }));
  readonly #name: string;
  readonly #keys: KeyMemory;
  #face: number | undefined;
  #catalogue: Catalogue | undefined;
  /** The chosen target, which the path keeps. */
  #target: number;
  /** The target in use. */
  readonly #playout: PlayoutTarget;
  readonly #overload = new Overload();
  /** The rung that was asked for. */
  #wish: string;
  /** What the core chooses the rung by. */
  #rungInUse: string;
  #ticks = 0;
  /** What the picture waits for the sound, in milliseconds. */
  #held = 0;
  /** What the past is played later than the core thinks, in milliseconds. */
  #lag = 0;
  readonly #intervals: ReturnType<typeof setInterval>[];
  /** When a frame of any stream arrived, and when sound was heard. */
  #arrivedAt: number | undefined;
  #heardAt: number | undefined;
  /** Interests that nodes had refused while frames came. */
  #nacked = 0;
  /** Whether the stream is published as segments. */
  #isPackage = false;
  /** Whether a person can see the picture, and whether sound is played. */
  #isSeen: boolean;
  #hasSound = false;
  /** Since when a picture is due: the connection is up, or the picture was requested again. */
  #soughtAt = performance.now();
  #firstFrame: number | null = null;
  /** Number of the data stream that the page publishes. */
  #publication: number | undefined;
  /** What a clip is made of, if the page wants to make one. */
  readonly #clip: ClipBuffer | undefined;
  #facts: Facts = { ...NO_FACTS, server: "answers" };
  #figures: CoreFigures = {};
  /** The figures of the last while, oldest first, from when something was shown on. */
  #recent: CoreFigures[] = [];

  private constructor({ start, screen, report }: Opening, node: NodeInfo, core: Core, links: Links) {
    this.#start = start;
    this.#isSeen = start.visible;
    this.#clip = start.keepsClip ? new ClipBuffer() : undefined;
    this.#report = report;
    this.#name = start.options.name ?? node.name;
    this.#target = start.options.target ?? DEFAULT_TARGET;
    this.#playout = new PlayoutTarget(this.#target);
    this.#playout.restart(performance.now());
    this.#wish = start.options.rung ?? "auto";
    this.#rungInUse = this.#wish;
    this.#core = core;
    const known = Object.hasOwn(start.known, this.#name) ? start.known[this.#name] : undefined;
    this.#keys = new KeyMemory(known, start.options.key !== undefined);
    this.#tab = core.make();
    this.#watch = this.#tab.watch(JSON.stringify(this.#watchConfig(start.options, node, known)), performance.now());
    this.#pump = new Pump(
      this.#tab,
      (record) => this.#handleRecord(record),
      (late) => this.#handleWake(late),
    );
    this.#video = new Video(screen, start.visible, {
      ...this.#decoderHost("video"),
      decoderReplaced: (kind) => this.#step(`The video decoder is slow: replaced at the next key frame (${kind})`),
      resized: (width, height) => report({ type: "size", width, height }),
      jumpedLate: (late) => this.#jumpedLate(late),
    });
    this.#audio = new Audio({ ...this.#decoderHost("audio"), heard: () => (this.#heardAt = performance.now()), delayed: (delay) => this.#holdPicture(delay) });
    this.#links = links;
    this.#chooseStreams();
    report({ type: "name", name: this.#name });
    this.#publish(start.publishes);
    if (links.link !== undefined) {
      this.#linkUp(links.link, node);
    }
    this.#intervals = [setInterval(() => this.#tick(), SUMMARY_INTERVAL), setInterval(() => void this.#links.watch(), 1_000)];
    this.#pump.run();
  }

  /** Starts as soon as the server has said what there is; undefined if it is not wanted any more by then. */
  static async open(opening: Opening, core: Promise<Core>, signal: AbortSignal): Promise<Session | undefined> {
    const { start, report } = opening;
    const node = start.node ?? (await firstNode(start, report, signal));
    if (node === undefined) {
      return undefined;
    }
    let session: Session | undefined;
    const inside = (act: (session: Session) => void): void => {
      if (session !== undefined) {
        act(session);
      }
    };
    const links = new Links(
      {
        fetchNode: () => fetchNode(start.base),
        up: (link, node) => inside((it) => it.#linkUp(link, node)),
        down: (reason) => inside((it) => it.#linkDown(reason)),
        frame: (octets) => inside((it) => it.#handleFrame(octets)),
        dropped: () => inside((it) => it.#overload.handleDrops(performance.now())),
        step: (text) => report({ type: "step", at: performance.timeOrigin + performance.now(), text }),
      },
      start.options.transport,
    );
    signal.addEventListener("abort", () => links.close(), { once: true });
    // Connecting takes as long as compiling the core.
    void links.connect(node);
    try {
      const loaded = await core;
      session = signal.aborted ? undefined : new Session(opening, node, loaded, links);
      return session;
    } catch (error) {
      links.close();
      throw error;
    }
  }

  /** Ends everything but the picture that is on the canvas. */
  close(): void {
    this.#pump.close();
    this.#intervals.forEach((interval) => clearInterval(interval));
    this.#links.close();
    this.#audio.stop();
    this.#video.close();
    this.#tab.free();
  }

  /** Carries out what the page requests. */
  handle(command: Exclude<Command, Start | { type: "core" | "pause" | "play" }>): void {
    switch (command.type) {
      case "target":
        this.#setTarget(command.target);
        break;
      case "rung":
        this.#wish = command.rung;
        this.#chooseRung();
        break;
      case "seek":
        this.#seek(command.number, command.to);
        break;
      case "visible":
        this.#setSeen(command.visible);
        break;
      case "sound":
        this.#audio.start(command.port);
        this.#hasSound = true;
        this.#chooseStreams();
        break;
      case "soundOff":
        this.#audio.stop();
        this.#hasSound = false;
        this.#chooseStreams();
        break;
      case "publish":
        this.#publish(command.publishes);
        break;
      case "send":
        this.#send(command.sample);
        break;
      case "fetch":
        this.#fetch(command.number, command.name);
        break;
      case "giveUp":
        this.#tab.giveUp(this.#watch, command.number);
        break;
      case "clip":
        void this.#clip?.clip(this.#catalogue).then((report) => this.#report(report));
        break;
      case "fault":
        this.#fault(command.fault);
        break;
    }
    this.#pump.soon();
  }

  #watchConfig(options: Options, node: NodeInfo, known: KnownKey | undefined): WatchConfig {
    const key = options.key ?? (options.name === undefined || options.name === node.name ? node.key : undefined);
    return {
      root: this.#name,
      ...(key === undefined ? {} : { key }),
      ...(known === undefined ? {} : { remembered: known.digest }),
      ...(options.rung === undefined ? {} : { rung: options.rung }),
      ...(options.streams === undefined ? {} : { streams: options.streams }),
      target_ms: this.#target,
      audio: false,
      ...(options.controller === undefined ? {} : { controller: options.controller }),
    };
  }

  #setSeen(isSeen: boolean): void {
    const now = performance.now();
    this.#isSeen = isSeen;
    this.#soughtAt = now;
    this.#video.setVisible(isSeen);
    this.#playout.restart(now);
    if (isSeen && !this.#travel.live) {
      // What was passed over meanwhile is needed to decode the next picture.
      this.#tab.decoderError(this.#watch, STREAM_NUMBER.video, now);
    }
    this.#chooseStreams();
    this.#summarise();
  }

  /** Requests what is seen and heard. In the past all is requested, as playback would start again with each change. */
  #chooseStreams(): void {
    const { live } = this.#travel;
    this.#tab.setWanted(this.#watch, this.#isSeen || !live, this.#hasSound || !live, performance.now());
  }

  #publish(publishes: Publishes | undefined): void {
    if (publishes === undefined || this.#publication !== undefined) {
      return;
    }
    const config: PublicationConfig = { ...publishes, data: [{ name: NOTES, samples_per_second: NOTES_PER_SECOND, sample_size: NOTE_SIZE }] };
    try {
      this.#publication = this.#tab.publish(JSON.stringify(config), performance.now());
    } catch (error) {
      this.#fact({ publishing: `The page cannot publish ${publishes.name}: ${message(error)}` });
    }
  }

  #send(sample: Uint8Array<ArrayBuffer>): void {
    if (this.#publication === undefined) {
      return;
    }
    try {
      this.#tab.send(this.#publication, sample, performance.now());
    } catch (error) {
      this.#fact({ publishing: `A note was not published: ${message(error)}` });
    }
  }

  #fetch(number: number, name: string): void {
    try {
      this.#tab.fetch(this.#watch, number, name, performance.now());
    } catch (error) {
      this.#report({ type: "unfetched", number, why: message(error) });
    }
  }

  #handleRegistration({ name, state, why }: RegistrationEvent): void {
    const advice = "If the node is on another machine, its operator has to set localhop = true in [management].";
    const texts = {
      registered: null,
      unanswered: `The node does not answer the request to publish ${name}. ${advice}`,
      refused: `The node refuses to publish ${name}: ${why ?? ""}. ${advice}`,
    };
    this.#step(state === "registered" ? `Publishing ${name}` : `Publishing ${name}: ${state}`);
    this.#fact({ publishing: texts[state] });
  }

  #decoderHost(stream: "video" | "audio") {
    const number = STREAM_NUMBER[stream];
    return {
      rung: (name: string) => this.#rung(stream, name),
      decoded: (position: number, took: number) => this.#tab.decoded(this.#watch, number, position, took),
      ready: (late: number) => this.#handleReady(stream, late),
      rendered: (position: number) => {
        this.#tab.rendered(this.#watch, number, position, performance.now());
        if (stream === "video" && this.#firstFrame === null) {
          // Decoder, page and core are slow while they start.
          this.#playout.restart(performance.now());
          this.#firstFrame = performance.timeOrigin + performance.now() - this.#start.openedAt;
          this.#step(`First picture ${this.#firstFrame.toFixed(0)} ms after opening the page`);
        }
      },
      decoderLost: (reason: string) => {
        this.#step(`The ${stream} decoder failed and was replaced: ${reason}`);
        this.#tab.decoderError(this.#watch, number, performance.now());
        this.#pump.soon();
      },
      unsupported: (codec: string) => this.#fact(stream === "video" ? { videoCodec: codec } : { audioCodec: codec }),
    };
  }

  #rung(stream: Stream, name: string): Rung | undefined {
    return this.#catalogue?.streams.find((info) => info.kind === stream)?.rungs.find((rung) => rung.name === name);
  }

  #linkUp(link: Link, node: NodeInfo): void {
    this.#face = this.#tab.faceUp(link.transport, link.mtu, node.local, performance.now());
    this.#soughtAt = performance.now();
    this.#step(`Connected by ${link.transport === "webtransport" ? "WebTransport" : "WebSocket"}`);
    // Interests that had no connection were refused here, by no node.
    this.#summarise();
    this.#nacked = this.#figures.interests_nacked ?? 0;
    this.#summarise();
    this.#fact({ server: "answers", link: { isUp: true, lost: null } });
    this.#pump.soon();
  }

  #linkDown(reason: string): void {
    if (this.#face !== undefined) {
      this.#tab.faceDown(this.#face, performance.now());
      this.#face = undefined;
    }
    this.#step(`Connection lost: ${reason}`);
    this.#fact({ link: { isUp: false, lost: reason } });
    this.#pump.soon();
  }

  #handleFrame(octets: Uint8Array): void {
    if (this.#face !== undefined) {
      const { overdue } = this.#pump;
      if (overdue > 0) {
        // The thread was busy, or had no processor: the packet may have waited as long.
        this.#handleWake(overdue);
      }
      this.#tab.handleFrame(this.#face, octets, performance.now());
      this.#pump.soon();
    }
  }

  #handleWake(late: number): void {
    if (!this.#isSeen) {
      // Browsers let timers of hidden pages be late.
      return;
    }
    const now = performance.now();
    this.#overload.handleWake(now, late);
    this.#tab.setWakeDelay(this.#overload.wakeDelay(now));
  }

  /** Gives up, or takes back, what the machine has no time for. */
  #watchOverload(now: number): void {
    this.#overload.handleDecoder(this.#video.decoderAge(now));
    if (this.#overload.update(now)) {
      const { level } = this.#overload;
      this.#step(OVERLOAD_STEPS[level]);
      this.#video.display.minInterval = level === "rate" || level === "picture" ? BUSY_PICTURE_INTERVAL : 0;
      this.#video.keyFramesOnly = level === "picture";
      this.#chooseRung();
    }
  }

  /** What was asked for, unless that is left to the player and the machine has no time for more than the lowest. */
  #chooseRung(): void {
    const { level } = this.#overload;
    const isLow = level !== "none" && level !== "instruments" && this.#wish === "auto";
    const rung = isLow ? "lowest" : this.#wish;
    if (rung !== this.#rungInUse) {
      this.#rungInUse = rung;
      this.#tab.setRung(this.#watch, rung, performance.now());
    }
  }

  #handleRecord(record: TabRecord): void {
    switch (record.kind) {
      case "transmit":
        if (record.face === this.#face) {
          this.#links.send(record.octets);
        }
        break;
      case "frame":
        this.#handleMedia(record);
        break;
      case "discontinuity":
        this.#discontinue(record);
        break;
      case "event":
        this.#handleEvent(record.event);
        break;
      case "fetched": {
        this.#arrivedAt = performance.now();
        const { number, waited, flowed } = record;
        // The octets are a view of a batch that holds more.
        this.#report({ type: "fetched", number, waited, flowed, octets: record.octets.slice() });
        break;
      }
    }
  }

  #discontinue(record: DiscontinuityRecord): void {
    const { stream, jump } = record;
    this.#clip?.discontinue(record);
    if (stream === "video") {
      this.#video.discontinue(jump);
    } else if (stream === "audio") {
      this.#audio.discontinue();
    }
    if (jump) {
      this.#lag = 0;
      this.#soughtAt = performance.now();
      this.#lipSync.reset();
      this.#playout.restart(performance.now());
    }
  }

  #handleMedia(record: FrameRecord): void {
    const dueAt = record.dueAt + this.#lag + this.#playout.margin;
    this.#arrivedAt = performance.now();
    this.#clip?.handle(record);
    if (record.stream === "video") {
      if (!record.decodeOnly) {
        this.#lipSync.handleVideo(record.capturedAt, dueAt);
      }
      this.#video.handleFrame({ ...record, dueAt: dueAt + this.#held });
    } else if (record.stream === "data") {
      this.#handleSample(record, dueAt + this.#held);
    } else {
      this.#audio.handleFrame({ ...record, dueAt: this.#lipSync.soundDueAt(record.capturedAt, dueAt) });
    }
  }

  #handleSample({ position, capturedAt, payload }: FrameRecord, dueAt: number): void {
    this.#tab.rendered(this.#watch, STREAM_NUMBER.data, position, performance.now());
    if (this.#catalogue?.streams.find(({ kind }) => kind === "data")?.codec === CAPTIONS) {
      const text = new TextDecoder().decode(payload);
      setTimeout(() => this.#report({ type: "caption", text }), dueAt - performance.now());
      return;
    }
    // The payload is a view of a batch that holds more.
    this.#report({ type: "sample", sample: { position, capturedAt, octets: payload.slice() } });
  }

  #handleEvent(event: TabEvent): void {
    switch (event.type) {
      case "step":
        this.#step(event.text);
        break;
      case "catalogue":
        this.#catalogue = event.catalogue;
        this.#report({ type: "title", title: event.catalogue.title ?? null });
        this.#remember();
        this.#openPackage(event.catalogue);
        break;
      case "fetching":
      case "unfetched":
        this.#report(event);
        break;
      case "signer":
        this.#handleSigner(event);
        break;
      case "registration":
        this.#handleRegistration(event);
        break;
      default:
        this.#travel.handle(event, performance.now());
        this.#chooseStreams();
        // Whoever moved the rewind bar waits for it.
        this.#summarise();
    }
  }

  #handleSigner(signer: SignerEvent): void {
    this.#step(`Signed by ${signer.name}: ${signer.verdict}`);
    this.#fact({ refusal: this.#keys.handleSigner(signer) });
  }

  /** Has the page play a stream of segments. */
  #openPackage({ streams, version }: Catalogue): void {
    this.#isPackage = streams.some(({ codec }) => codec === HLS);
    if (this.#isPackage) {
      this.#report({ type: "package", info: { name: this.#name, version } });
    }
  }

  /** The core gives the catalogue once it is verified: whoever signed it is remembered. */
  #remember(): void {
    const key = this.#keys.handleVerified(new Date().toISOString().slice(0, 10));
    if (key !== undefined) {
      this.#report({ type: "remember", name: this.#name, key });
    }
  }

  #seek(number: number, to: number | null): void {
    this.#travel.answers = number;
    this.#tab.seek(this.#watch, to ?? Infinity, performance.now());
    this.#pump.run();
    this.#summarise();
  }

  /** Decoding up to the first frame took longer than thought: what follows it waits as well, so that it is seen in peace. */
  #jumpedLate(late: number): void {
    if (!this.#travel.live) {
      const lag = Math.min(late, MAX_LAG);
      this.#lag += lag;
      this.#shift(lag);
    }
  }

  #setTarget(target: number): void {
    const now = performance.now();
    this.#tab.setTarget(this.#watch, target, now);
    this.#target = target;
    const before = this.#playout.current;
    this.#playout.choose(target);
    this.#shift(this.#playout.current - before);
  }

  /** Something could be presented `late` milliseconds after its time. Returns by how much all of it is due later from now on. */
  #handleReady(stream: Timed, late: number): number {
    const now = performance.now();
    const grows = this.#playout.push(stream, now, this.#playout.current + late);
    return grows ? this.#adaptPlayout(now) : 0;
  }

  /** Moves picture and sound to the target that is needed now. Returns by how much. */
  #adaptPlayout(now: number): number {
    const moved = this.#playout.update(now);
    if (moved !== 0) {
      this.#shift(moved);
    }
    return moved;
  }

  /** Moves all that is not presented yet. */
  #shift(milliseconds: number): void {
    this.#video.shift(milliseconds);
    this.#audio.shift(milliseconds);
    this.#lipSync.shift(milliseconds);
  }

  #holdPicture(delay: number): void {
    if (delay !== this.#held) {
      this.#video.shift(delay - this.#held);
      this.#held = delay;
    }
  }

  #fault(fault: Fault): void {
    switch (fault.kind) {
      case "corrupt":
        this.#tab.corrupt(fault.count);
        break;
      case "blackhole":
        this.#links.blackhole(fault.milliseconds);
        break;
      case "disconnect":
        this.#links.disconnect(fault.milliseconds);
        break;
      case "decoder":
        this.#video.breakDecoder();
        break;
    }
  }

  /** What was proved, and how long ago. */
  #evidence(now: number): Evidence {
    const age = (at: number | undefined): number | null => (at === undefined ? null : now - at);
    return {
      shown: age(this.#video.display.shownAt),
      heard: age(this.#heardAt),
      arrived: age(this.#arrivedAt),
      unanswered: this.#links.unanswered(now),
      settled: now - this.#soughtAt,
      refused: (this.#figures.interests_nacked ?? 0) - this.#nacked,
      interval: this.#video.keyFramesOnly ? KEY_FRAME_INTERVAL : this.#video.interval,
      decoding: this.#video.decoderAge(now),
    };
  }

  #summarise(): void {
    this.#figures = JSON.parse(this.#tab.stats(this.#watch, performance.now())) as CoreFigures;
    if (this.#firstFrame !== null) {
      this.#recent.push(this.#figures);
      this.#recent.splice(0, Math.max(0, this.#recent.length - RECENT));
    }
    this.#report({ type: "summary", summary: this.#summary() });
  }

  #tick(): void {
    const now = performance.now();
    if (this.#arrivedAt !== undefined && now - this.#arrivedAt < SUMMARY_INTERVAL) {
      this.#nacked = this.#figures.interests_nacked ?? 0;
    }
    this.#travel.tick(now);
    this.#ticks += 1;
    if (!this.#isSeen) {
      if (this.#ticks % UNSEEN_INTERVALS === 0) {
        this.#summarise();
      }
      return;
    }
    this.#adaptPlayout(now);
    this.#watchOverload(now);
    if (this.#overload.level === "none" || this.#ticks % BUSY_INTERVALS === 0) {
      this.#summarise();
    }
    const shown = this.#video.display.takeShown();
    if (shown.length > 0) {
      this.#report({ type: "shown", shown });
    }
  }

  #summary(): Summary {
    const figures = this.#figures;
    const now = performance.now();
    const ahead = clockAhead(figures);
    const shares = sharesOf(figures, this.#recent[0] ?? figures);
    const { display } = this.#video;
    const video = this.#video.summary();
    const streams = this.#catalogue?.streams ?? [];
    const has = (kind: Stream): boolean => streams.some((stream) => stream.kind === kind);
    const rungs = streams.find(({ kind }) => kind === "video")?.rungs ?? [];
    const { live } = this.#travel;
    return {
      evidence: this.#evidence(now),
      kinds: { video: has("video"), audio: has("audio"), data: has("data") },
      position: this.#position(figures),
      transport: this.#links.link?.transport ?? null,
      latency: live ? corrected(display.latency.spread(), ahead) : null,
      stages: live ? meanStages(display.stages) : null,
      firstFrame: this.#firstFrame,
      join: figures.join_ms ?? null,
      // What the core holds back comes after what it gave already.
      buffer: figures.video ? Math.max(figures.video.buffer_ms ?? 0, this.#video.buffered) : null,
      target: this.#target,
      playout: { target: this.#playout.current, needed: this.#playout.needed, isCapped: this.#playout.isCapped },
      overload: { level: this.#overload.level, delay: this.#overload.meanDelay(now) },
      reorder: figures.reorder_ms ?? 0,
      rtt: figures.rtt_ms ?? null,
      rttMin: figures.rtt_min_ms ?? null,
      lossShare: shares.loss,
      parityShare: shares.parity,
      retransmissionShare: shares.retransmission,
      cacheHitShare: figures.cache_hit_share ?? 0,
      bitrate: figures.goodput_bps ?? 0,
      rung: display.rung,
      requestedRung: figures.rung ?? null,
      rungs: rungsOf(rungs),
      controller: figures.controller ?? null,
      path: pathOf(figures),
      picture: figures.picture ?? null,
      signer: signerOf(figures),
      liveness: figures.liveness ?? "unconfirmed",
      packaged: this.#isPackage,
      recordedFrom: figures.recorded_from_ms ?? null,
      verificationFailures: failuresOf(figures),
      interests: figures.interests_sent ?? 0,
      interestsPending: figures.interests_pending ?? 0,
      clockOffset: figures.clock_offset_ms ?? null,
      coreMemory: this.#core.memory(),
      video,
      audio: this.#audio.summary(display.lateness.mean(), has("audio")),
      consumer: figures as Record<string, unknown>,
    };
  }

  #position(figures: CoreFigures): Position {
    return {
      live: this.#travel.live,
      shown: this.#video.display.capturedAt,
      now: performance.timeOrigin + performance.now() + clockAhead(figures),
      since: figures.kept_since_ms ?? null,
      seeking: this.#travel.seeking,
      answers: this.#travel.answers,
    };
  }

  #step(text: string): void {
    this.#report({ type: "step", at: performance.timeOrigin + performance.now(), text });
  }

  #fact(facts: Partial<Facts>): void {
    const now = { ...this.#facts, ...facts };
    if (JSON.stringify(now) !== JSON.stringify(this.#facts)) {
      this.#facts = now;
      this.#report({ type: "facts", facts });
    }
  }
}

/** Requests the description until the server answers or nobody wants it: the page may be open before the server is back. */
async function firstNode(start: Start, report: (report: Report) => void, signal: AbortSignal): Promise<NodeInfo | undefined> {
  while (!signal.aborted) {
    try {
      const node = await fetchNode(start.base);
      report({ type: "facts", facts: { server: "answers" } });
      return node;
    } catch {
      report({ type: "facts", facts: { server: "silent" } });
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  return undefined;
}
