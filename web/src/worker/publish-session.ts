import type { Captured, LiveChange, LiveReport, LiveStart } from "../shared/live.ts";
import { fetchNode, type NodeInfo } from "../shared/node.ts";
import type { RoomConfig, RoomEvent } from "../shared/room.ts";
import { streamOf } from "./captured.ts";
import { message, type Link } from "./link.ts";
import { Links } from "./links.ts";
import { LiveAudio } from "./publish-audio.ts";
import { LiveVideo } from "./publish-video.ts";
import { Pump } from "./pump.ts";
import type { RegistrationEvent, TabRecord } from "./records.ts";
import { loadTab, type LiveFrame, type PublicationConfig, type PublicationCounters, type StreamDescription, type Tab } from "./tab.ts";
import { Uplink } from "./uplink.ts";

/** How often the page gets figures, in milliseconds. */
const FIGURES_INTERVAL = 500;
/** How often the path to the node is looked at, in milliseconds. */
const LOOK_INTERVAL = 200;
/** How long the first picture or sound may take, in milliseconds: people may be asked for their leave. */
const FIRST_LIMIT = 10_000;

const NOTHING: PublicationCounters = { interests: 0, answered_at_once: 0, bytes_out: 0 };

/** What is captured, and the first piece of it. */
interface Source<T> {
  reader: ReadableStreamDefaultReader<T>;
  first: T;
}

/** A stream that this tab sends: the core, its transport, its encoders. It lives as long as its worker. */
export class LiveSession {
  readonly #report: (report: LiveReport) => void;
  readonly #start: LiveStart;
  readonly #links: Links;
  readonly #tab: Tab;
  readonly #pump: Pump;
  /** What is published; empty: the host of the room has not said it yet. */
  #name: string;
  /** Who waits to be a member of the room. */
  #entering: { resolve(): void; reject(error: Error): void } | undefined;
  /** Number of what is published. */
  #publication: number | undefined;
  #uplink: Uplink | undefined;
  #video: LiveVideo | undefined;
  #audio: LiveAudio | undefined;
  /** The transport that is up. */
  #link: Link | undefined;
  #face: number | undefined;
  #waits = -1;
  /** How many of the best qualities are left out. */
  #level = 0;
  /** Counters of the core when the path to the node was looked at. */
  #looked = NOTHING;
  #figuresAt = performance.now();
  #figured = NOTHING;

  private constructor(start: LiveStart, report: (report: LiveReport) => void, tab: Tab) {
    this.#start = start;
    this.#name = start.room === undefined ? start.name : "";
    this.#report = report;
    this.#tab = tab;
    this.#pump = new Pump(tab, (record) => this.#handleRecord(record));
    this.#links = new Links(
      {
        fetchNode: () => fetchNode(start.base),
        up: (link, node) => this.#linkUp(link, node),
        down: (reason) => this.#linkDown(reason),
        frame: (octets) => this.#handleFrame(octets),
        step: (text) => console.info(text),
      },
      undefined,
    );
  }

  /**
   * Goes live with what `start` captures, once the first of it is here: it tells what the stream is like.
   *
   * @throws Error if it cannot be encoded or published.
   */
  static async open(start: LiveStart, report: (report: LiveReport) => void): Promise<LiveSession> {
    const core = await loadTab();
    const session = new LiveSession(start, report, core.make());
    if (start.room !== undefined) {
      session.#begin();
      await session.#enter(start.room);
    }
    await session.change({ video: start.video ?? null, audio: start.audio ?? null });
    if (start.room === undefined) {
      session.#begin();
    }
    return session;
  }

  /**
   * Becomes a member of the room, if need be once its host says so.
   *
   * @throws Error if the host refuses.
   */
  async #enter(room: RoomConfig): Promise<void> {
    const entered = new Promise<void>((resolve, reject) => (this.#entering = { resolve, reject }));
    this.#tab.enter(JSON.stringify(room), performance.now());
    this.#pump.soon();
    await entered;
  }

  #handleRoom({ state, why, certificate }: RoomEvent): void {
    const root = this.#start.room?.root ?? "";
    if (state === "failed") {
      this.#entering?.reject(new Error(why ?? ""));
    } else if (state === "joined" && why !== null && certificate !== null) {
      this.#name = why;
      this.#report({ type: "joined", name: why, certificate });
    } else if (state === "ready" && certificate === null) {
      if (this.#name === "") {
        this.#entering?.reject(new Error(`only members of ${root} go live there: ask its host for a link`));
      }
      this.#entering?.resolve();
    }
    this.#report({ type: "room", root, state });
  }

  /**
   * Sends other pictures, other sound or none from now on, once the first of them is here. Whoever watches joins the new streams.
   *
   * @throws Error if it cannot be encoded.
   */
  async change({ video, audio }: LiveChange): Promise<LiveSession> {
    const [pictures, sound] = await Promise.all([open(video?.frames, "picture"), open(audio ?? undefined, "sound")]);
    const host = {
      publish: (frame: LiveFrame, payload: Uint8Array) => this.#publish(frame, payload),
      isBehind: () => this.#link?.isBehind() === true,
      failed: (text: string) => this.#report({ type: "failed", text }),
    };
    const [newVideo, newAudio] = [pictures && (await LiveVideo.make(host, pictures.first, video?.rate ?? 30)), sound && (await LiveAudio.make(host, sound.first))];
    if (video !== undefined) {
      this.#video?.close();
      [this.#video, this.#level] = [newVideo, 0];
      this.#uplink = newVideo && new Uplink(newVideo.levels);
    } else {
      // Its next picture has to stand alone, as those before are of the streams that end.
      this.#video?.begin(this.#level);
    }
    if (audio !== undefined) {
      this.#audio?.close();
      this.#audio = newAudio;
    }
    this.#publishStreams();
    const running = [pictures && newVideo?.run(pictures.reader, pictures.first), sound && newAudio?.run(sound.reader, sound.first)];
    for (const run of running) {
      run?.catch((error: unknown) => host.failed(`Capturing failed: ${message(error)}. Go live again.`));
    }
    return this;
  }

  #begin(): void {
    void this.#links.connect();
    setInterval(() => void this.#links.watch(), 1_000);
    setInterval(() => this.#look(), LOOK_INTERVAL);
    setInterval(() => this.#figures(), FIGURES_INTERVAL);
  }

  /** Describes what is encoded now to those who watch: who watched before joins it, as after this tab was loaded anew. */
  #publishStreams(): void {
    const streams = [this.#video?.description, this.#audio?.description].filter((stream): stream is StreamDescription => stream !== undefined);
    const now = performance.now();
    if (this.#publication === undefined) {
      const { secret, ticket, title, room } = this.#start;
      const sealed = room === undefined ? {} : { sealed: digits(crypto.getRandomValues(new Uint8Array(32))) };
      const config: PublicationConfig = { name: this.#name, secret, ...sealed, ...(ticket === undefined ? {} : { ticket }), ...(title === undefined ? {} : { title }), streams };
      this.#publication = this.#tab.publish(JSON.stringify(config), now);
      this.#report({ type: "key", digest: this.#tab.keyDigest(this.#publication) });
    } else {
      this.#tab.setStreams(this.#publication, JSON.stringify(streams), now);
    }
    // The core counts anew.
    this.#looked = this.#figured = this.#counters();
    this.#pump.run();
  }

  /** Sends less while the path to the node does not carry what those who watch request. */
  #look(): void {
    if (this.#face === undefined) {
      return;
    }
    const now = performance.now();
    this.#waits = this.#tab.probe(now);
    this.#pump.soon();
    const [counters, before] = [this.#counters(), this.#looked];
    this.#looked = counters;
    const sample = { waits: this.#waits, interests: counters.interests - before.interests, late: counters.answered_at_once - before.answered_at_once };
    const level = this.#uplink?.update(sample, now) ?? 0;
    if (level !== this.#level) {
      this.#level = level;
      this.#video?.begin(level);
      this.#publishStreams();
    }
  }

  #counters(): PublicationCounters {
    return this.#publication === undefined ? NOTHING : (JSON.parse(this.#tab.publicationStats(this.#publication)) as PublicationCounters);
  }

  #publish(frame: LiveFrame, payload: Uint8Array): void {
    if (this.#publication !== undefined) {
      if (this.#tab.publishFrame(this.#publication, JSON.stringify(frame), payload, performance.now())) {
        // A member has left, and what follows is sealed with another key.
        this.#video?.requestKey();
      }
      this.#pump.soon();
    }
  }

  #linkUp(link: Link, node: NodeInfo): void {
    this.#link = link;
    this.#face = this.#tab.faceUp(link.transport, link.mtu, node.local, performance.now());
    this.#pump.soon();
  }

  #linkDown(reason: string): void {
    this.#link = undefined;
    if (this.#face !== undefined) {
      this.#tab.faceDown(this.#face, performance.now());
      this.#face = undefined;
    }
    this.#report({ type: "connection", live: false, text: `The connection is gone (${reason}). Connecting again…` });
    this.#pump.soon();
  }

  #handleFrame(octets: Uint8Array): void {
    if (this.#face !== undefined) {
      this.#tab.handleFrame(this.#face, octets, performance.now());
      this.#pump.soon();
    }
  }

  #handleRecord(record: TabRecord): void {
    if (record.kind === "transmit" && record.face === this.#face) {
      this.#links.send(record.octets);
    } else if (record.kind === "event" && record.event.type === "registration") {
      this.#handleRegistration(record.event);
    } else if (record.kind === "event" && record.event.type === "room") {
      this.#handleRoom(record.event);
    }
  }

  #handleRegistration({ name, state, why }: RegistrationEvent): void {
    switch (state) {
      case "registered":
        this.#report({ type: "connection", live: true, text: `Live as ${name}` });
        break;
      case "unanswered":
        this.#report({ type: "connection", live: false, text: "The server does not answer yet. Trying again…" });
        break;
      case "refused":
        // The node may not have read the rules of the room yet; it is asked again.
        this.#report(this.#start.room === undefined ? { type: "failed", text: refusal(name, why ?? "") } : { type: "connection", live: false, text: refusal(name, why ?? "") });
    }
  }

  #figures(): void {
    const now = performance.now();
    const seconds = (now - this.#figuresAt) / 1_000;
    this.#figuresAt = now;
    const counters = this.#counters();
    const sent = (8 * (counters.bytes_out - this.#figured.bytes_out)) / seconds;
    this.#figured = counters;
    const figures = {
      qualities: this.#video?.figures(seconds) ?? [],
      sound: this.#audio?.bitrate(seconds) ?? null,
      sent,
      dropped: { ...(this.#video?.dropped ?? { encoder: 0, network: 0 }) },
      waits: this.#waits,
      isNarrow: this.#level > 0,
    };
    this.#report({ type: "figures", figures });
  }
}

function digits(octets: Uint8Array): string {
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, "0")).join("");
}

/** Why the server does not let this tab go live, and what to do. Its own words begin with a number, which helps nobody here. */
function refusal(name: string, why: string): string {
  const words = why.replace(/^\d+ /, "");
  if (words.startsWith("there is no management")) {
    return `This server lets nobody go live as ${name} from here. Its operator can start it with --allow-publish ${name} and send you the link that it prints.`;
  }
  return `Not live as ${name}: ${words}.`;
}

/** Waits for the first of what is captured. */
async function open<T extends VideoFrame | AudioData>(source: Captured<T> | undefined, what: string): Promise<Source<T> | undefined> {
  if (source === undefined) {
    return undefined;
  }
  const reader = streamOf(source).getReader();
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error(`no ${what} comes: choose another source`)), FIRST_LIMIT));
  const { value } = await Promise.race([reader.read(), late]);
  if (value === undefined) {
    throw new Error(`there is no ${what} any more: choose another source`);
  }
  return { reader, first: value };
}
