import { NO_FACTS, type Facts } from "../shared/facts.ts";
import type { Command, Fault, Options, Report } from "../shared/messages.ts";
import type { KnownKey } from "../shared/known-keys.ts";
import { fetchNode, type NodeInfo } from "../shared/node.ts";
import { HLS } from "../shared/package.ts";
import { isInRoom, type RoomEvent } from "../shared/room.ts";
import type { Summary } from "../shared/summary.ts";
import { Audio } from "./audio.ts";
import { ClipBuffer } from "./clip-buffer.ts";
import type { CoreFigures } from "./figures.ts";
import { KeyMemory } from "./key-memory.ts";
import { message, type Link } from "./link.ts";
import { Links } from "./links.ts";
import { NotesPublication } from "./notes-publication.ts";
import { OverloadResponse } from "./overload-response.ts";
import { Proofs } from "./proofs.ts";
import { Pump } from "./pump.ts";
import type { Catalogue, DiscontinuityRecord, FrameRecord, Rung, SignerEvent, Stream, TabEvent, TabRecord } from "./records.ts";
import type { Screen } from "./screen.ts";
import { summaryOf } from "./session-summary.ts";
import { STREAM_NUMBER, type Core, type Tab, type WatchConfig } from "./tab.ts";
import { Timing } from "./timing.ts";
import { Travel } from "./travel.ts";
import { VideoPath } from "./video-path.ts";
import type { VideoSink } from "./video-sink.ts";

type Start = Extract<Command, { type: "start" }>;

/** Target until somebody chooses another, in milliseconds. */
const DEFAULT_TARGET = 100;
/** How often the page gets figures, in milliseconds. */
const SUMMARY_INTERVAL = 250;
/** Figures that shares are taken of: 10 s. */
const RECENT = 40;
/** Figures are made in every fourth interval only while the machine is busy. */
const BUSY_INTERVALS = 4;
/** Intervals for each of the figures that a page gets of a player that nobody sees. */
const UNSEEN_INTERVALS = 8;
/** Longest time between two key frames that counts as playing while nothing else is decoded, in milliseconds. */
const KEY_FRAME_INTERVAL = 2_000;
/** Codec of captions: each sample is the text that is shown from its time on. */
const CAPTIONS = "text";
/** What a session is opened with. */
export interface Opening {
  start: Start;
  /** Where pictures are shown. */
  screen: Screen;
  report(report: Report, transfer?: Transferable[]): void;
}

/** One stream that is watched: the core, its transports, its decoders. */
export class Session {
  readonly #report: (report: Report, transfer?: Transferable[]) => void;
  readonly #start: Start;
  readonly #core: Core;
  readonly #tab: Tab;
  /** Number of the watch. */
  readonly #watch: number;
  readonly #pump: Pump;
  readonly #links: Links;
  readonly #path: VideoPath;
  readonly #audio: Audio;
  readonly #timing: Timing;
  readonly #proofs = new Proofs();
  readonly #notes: NotesPublication;
  readonly #travel = new Travel((missed) => this.#fact({ missed }));
  readonly #name: string;
  readonly #keys: KeyMemory;
  #face: number | undefined;
  #catalogue: Catalogue | undefined;
  readonly #response: OverloadResponse;
  #ticks = 0;
  readonly #intervals: ReturnType<typeof setInterval>[];
  /** Whether the stream is published as segments. */
  #isPackage = false;
  /** Whether a person can see the picture, and whether sound is played. */
  #isSeen: boolean;
  #hasSound = false;
  #firstFrame: number | null = null;
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
    this.#timing = new Timing(start.options.target ?? DEFAULT_TARGET, {
      shiftVideo: (by) => this.#video.shift(by),
      shiftSound: (by) => this.#audio.shift(by),
    });
    this.#response = new OverloadResponse(start.options.rung ?? "auto", {
      setRung: (rung) => this.#tab.setRung(this.#watch, rung, performance.now()),
      step: (text) => this.#step(text),
    });
    this.#core = core;
    const known = Object.hasOwn(start.known, this.#name) ? start.known[this.#name] : undefined;
    this.#keys = new KeyMemory(known, start.options.key !== undefined);
    this.#tab = core.make();
    if (start.room !== undefined) {
      this.#tab.enter(JSON.stringify(start.room), performance.now());
    }
    this.#watch = this.#tab.watch(JSON.stringify(this.#watchConfig(start.options, node, known)), performance.now());
    this.#notes = new NotesPublication(this.#tab, {
      step: (text) => this.#step(text),
      failed: (publishing) => this.#fact({ publishing }),
    });
    this.#pump = new Pump(
      this.#tab,
      (record) => this.#handleRecord(record),
      (late) => this.#handleWake(late),
    );
    this.#path = new VideoPath(screen, start.visible, start.takesSegments, {
      ...this.#decoderHost("video"),
      decoderReplaced: (kind) => this.#step(`The video decoder is slow: replaced at the next key frame (${kind})`),
      resized: (width, height) => report({ type: "size", width, height }),
      jumpedLate: (late) => !this.#travel.live && this.#timing.handleJumpedLate(late),
      sourced: (handle) => (handle === undefined ? report({ type: "screen" }) : report({ type: "source", handle }, [handle])),
      steer: (steer) => report({ type: "steer", steer }),
      changed: (lead, needsKey) => {
        this.#tab.setDecodeLead(this.#watch, lead, performance.now());
        this.#timing.handlePathChange(performance.now());
        if (needsKey) {
          this.#needKey(STREAM_NUMBER.video);
        }
      },
      step: (text) => this.#step(text),
    });
    this.#audio = new Audio({ ...this.#decoderHost("audio"), heard: () => this.#proofs.handleSound(), delayed: (delay) => this.#timing.hold(delay) });
    this.#links = links;
    this.#chooseStreams();
    report({ type: "name", name: this.#name });
    this.#notes.begin(start.publishes);
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
        dropped: () => inside((it) => it.#response.overload.handleDrops(performance.now())),
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
        this.#response.choose(command.rung);
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
        this.#notes.begin(command.publishes);
        break;
      case "send":
        this.#notes.send(command.sample);
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
      case "presented":
        this.#path.handlePresented(command.presentation);
        break;
      case "fault":
        this.#fault(command.fault);
        break;
    }
    this.#pump.soon();
  }

  #watchConfig(options: Options, node: NodeInfo, known: KnownKey | undefined): WatchConfig {
    const inRoom = this.#start.room !== undefined && isInRoom(this.#name, this.#start.room);
    const key = inRoom ? undefined : (options.key ?? (options.name === undefined || options.name === node.name ? node.key : undefined));
    return {
      root: this.#name,
      ...(key === undefined ? {} : { key }),
      ...(known === undefined || inRoom ? {} : { remembered: known.digest }),
      ...(inRoom ? { in_room: true } : {}),
      ...(options.rung === undefined ? {} : { rung: options.rung }),
      ...(options.streams === undefined ? {} : { streams: options.streams }),
      target_ms: this.#timing.target,
      audio: false,
      ...(options.controller === undefined ? {} : { controller: options.controller }),
    };
  }

  #setSeen(isSeen: boolean): void {
    const now = performance.now();
    this.#isSeen = isSeen;
    this.#proofs.seek();
    this.#path.setVisible(isSeen);
    this.#timing.playout.restart(now);
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

  #fetch(number: number, name: string): void {
    try {
      this.#tab.fetch(this.#watch, number, name, performance.now());
    } catch (error) {
      this.#report({ type: "unfetched", number, why: message(error) });
    }
  }

  #decoderHost(stream: "video" | "audio") {
    const number = STREAM_NUMBER[stream];
    return {
      rung: (name: string) => this.#rung(stream, name),
      decoded: (position: number, took: number) => this.#tab.decoded(this.#watch, number, position, took),
      ready: (late: number) => this.#timing.handleReady(stream, late),
      rendered: (position: number) => {
        this.#tab.rendered(this.#watch, number, position, performance.now());
        if (stream === "video" && this.#firstFrame === null) {
          // Decoder, page and core are slow while they start.
          this.#timing.playout.restart(performance.now());
          this.#firstFrame = performance.timeOrigin + performance.now() - this.#start.openedAt;
          this.#step(`First picture ${this.#firstFrame.toFixed(0)} ms after opening the page`);
        }
      },
      decoderLost: (reason: string) => {
        this.#step(`The ${stream} decoder failed and was replaced: ${reason}`);
        this.#needKey(number);
      },
      unsupported: (codec: string) => this.#fact(stream === "video" ? { videoCodec: codec } : { audioCodec: codec }),
    };
  }

  /** Has the core continue at a frame that stands alone. */
  #needKey(number: number): void {
    this.#tab.decoderError(this.#watch, number, performance.now());
    this.#pump.soon();
  }

  get #video(): VideoSink {
    return this.#path.sink;
  }

  #rung(stream: Stream, name: string): Rung | undefined {
    return this.#catalogue?.streams.find((info) => info.kind === stream)?.rungs.find((rung) => rung.name === name);
  }

  #linkUp(link: Link, node: NodeInfo): void {
    this.#face = this.#tab.faceUp(link.transport, link.mtu, node.local, performance.now());
    this.#proofs.seek();
    this.#step(`Connected by ${link.transport === "webtransport" ? "WebTransport" : "WebSocket"}`);
    // Interests that had no connection were refused here, by no node.
    this.#summarise();
    this.#proofs.forgive(this.#figures.interests_nacked ?? 0);
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
    this.#response.overload.handleWake(now, late);
    this.#tab.setWakeDelay(this.#response.overload.wakeDelay(now));
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
        this.#proofs.handleArrival();
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
      this.#proofs.seek();
      this.#timing.handleJump(performance.now());
    }
  }

  #handleMedia(record: FrameRecord): void {
    this.#proofs.handleArrival();
    this.#clip?.handle(record);
    if (record.stream === "video") {
      this.#video.handleFrame({ ...record, dueAt: this.#timing.videoDueAt(record) });
    } else if (record.stream === "data") {
      this.#handleSample(record, this.#timing.dataDueAt(record));
    } else {
      this.#audio.handleFrame({ ...record, dueAt: this.#timing.soundDueAt(record) });
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
        this.#path.choose(this.#timing.target, event.catalogue);
        break;
      case "fetching":
      case "unfetched":
        this.#report(event);
        break;
      case "signer":
        this.#handleSigner(event);
        break;
      case "room":
        this.#handleRoom(event);
        break;
      case "sealed":
        this.#fact({ sealed: event.why });
        break;
      case "registration":
        this.#notes.handleRegistration(event);
        break;
      default:
        this.#travel.handle(event, performance.now());
        this.#chooseStreams();
        // Whoever moved the rewind bar waits for it.
        this.#summarise();
    }
  }

  #handleRoom({ state, why, certificate }: RoomEvent): void {
    const root = this.#start.room?.root ?? "";
    const isMember = state === "joined" || this.#facts.room?.isMember === true;
    this.#step(`Room ${root}: ${state}${why === null ? "" : ` (${why})`}`);
    this.#fact({ room: { root, state, why, isMember } });
    this.#proofs.seek();
    if (certificate !== null) {
      this.#report({ type: "joined", certificate });
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

  #setTarget(target: number): void {
    this.#tab.setTarget(this.#watch, target, performance.now());
    this.#timing.choose(target);
    this.#path.choose(target, this.#catalogue);
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
    this.#proofs.tick(now, this.#figures.interests_nacked ?? 0);
    this.#travel.tick(now);
    this.#ticks += 1;
    if (!this.#isSeen) {
      if (this.#ticks % UNSEEN_INTERVALS === 0) {
        this.#summarise();
      }
      return;
    }
    this.#timing.adapt(now);
    this.#response.update(now, this.#video);
    if (this.#response.overload.level === "none" || this.#ticks % BUSY_INTERVALS === 0) {
      this.#summarise();
    }
    const shown = this.#video.presented.takeShown();
    if (shown.length > 0) {
      this.#report({ type: "shown", shown });
    }
  }

  #summary(): Summary {
    const now = performance.now();
    const [video, figures] = [this.#video, this.#figures];
    const evidence = this.#proofs.evidence(now, {
      shownAt: video.presented.shownAt,
      unanswered: this.#links.unanswered(now),
      nacked: figures.interests_nacked ?? 0,
      interval: video.keyFramesOnly ? KEY_FRAME_INTERVAL : video.interval,
      decoding: video.decoderAge(now),
    });
    return summaryOf({
      now,
      figures,
      before: this.#recent[0] ?? figures,
      evidence,
      video,
      audio: this.#audio,
      timing: this.#timing,
      overload: this.#response.overload,
      travel: this.#travel,
      catalogue: this.#catalogue,
      transport: this.#links.link?.transport ?? null,
      firstFrame: this.#firstFrame,
      packaged: this.#isPackage,
      coreMemory: this.#core.memory(),
    });
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
