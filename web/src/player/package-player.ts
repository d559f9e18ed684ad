import type Hls from "hls.js";
import type { ErrorData, Events } from "hls.js";
import type { Command } from "../shared/messages.ts";
import { playlistOf, type FetchReport, type PackageInfo } from "../shared/package.ts";
import { NamedFetches, type FetchCounters } from "./named-fetches.ts";
import { namedLoader } from "./named-loader.ts";
import { qualitiesOf, type Quality } from "./qualities.ts";
import type { SegmentsState } from "./state.ts";
import { t } from "../shared/language.ts";

/** Pause before what failed is tried again: doubles from the first to the last, in milliseconds. */
const FIRST_PAUSE = 1_000;
const LAST_PAUSE = 30_000;
/** Times that the browser's decoder is started again before the stream is given up. */
const MAX_RECOVERIES = 3;
/** What the player needs of the rest. */
export interface PackageHost {
  /** Where the picture goes. */
  readonly film: HTMLVideoElement;
  send(command: Command): void;
  step(text: string): void;
  /** The qualities to choose from are known. */
  qualities(): void;
}

/** Figures of a package, for people and tests. */
export interface PackageFigures {
  /** Height of the picture that is loaded, and of all that there are, in lines. */
  height: number;
  heights: number[];
  /** Bitrate of that picture with its sound, and what Data flows at, in bits a second. */
  bitrate: number;
  throughput: number;
  /** Playing time, time buffered ahead of it, and time behind what is published, in seconds. */
  time: number;
  buffer: number;
  behind: number;
  /** Times that playback had to wait after it had begun, and that the quality changed. */
  stalls: number;
  switches: { at: number; height: number }[];
  /** Errors, by what went wrong. */
  errors: Record<string, number>;
  fetches: FetchCounters;
}

/** Plays a package with hls.js, which fetches by name. */
export class PackagePlayer {
  readonly #host: PackageHost;
  readonly #fetches: NamedFetches;
  readonly #film: HTMLVideoElement;
  #info: PackageInfo | undefined;
  #hls: Hls | undefined;
  #pause = FIRST_PAUSE;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #recoveries = 0;
  #stalls = 0;
  #switches: { at: number; height: number }[] = [];
  readonly #errors: Record<string, number> = {};
  #quality = "auto";
  #failure: SegmentsState["failure"] = null;
  #time = { played: 0, since: performance.now() };

  constructor(host: PackageHost) {
    this.#host = host;
    this.#film = host.film;
    this.#fetches = new NamedFetches((command) => host.send(command));
    this.#film.addEventListener("waiting", () => {
      // Not the wait for the first picture, or for the end of a jump.
      this.#stalls += this.#film.currentTime > 0 && !this.#film.seeking ? 1 : 0;
    });
  }

  /** Plays this; anew if the publisher was started again. */
  open(info: PackageInfo): void {
    const known = this.#info;
    this.#info = info;
    if (known?.name === info.name && known.version === info.version) {
      return;
    }
    this.#host.step(`${info.name} is HLS${info.address === undefined ? "" : " of the node"}: playing its segments with hls.js`);
    void this.#start();
  }

  /** Fetches nothing any more, until it is opened again. */
  close(): void {
    clearTimeout(this.#retry);
    this.#info = undefined;
    this.#failure = null;
    this.#hls?.destroy();
    this.#hls = undefined;
  }

  handle(report: FetchReport): void {
    this.#fetches.handle(report);
  }

  /** Whether something plays here, and not as frames. */
  get isOpen(): boolean {
    return this.#info !== undefined;
  }

  /** Qualities to choose from, highest first. */
  qualities(): Quality[] {
    const levels = this.#hls?.levels ?? [];
    return qualitiesOf(levels.map(({ width, height, bitrate }, index) => ({ name: String(index), width, height, bitrate }))).toReversed();
  }

  /** Plays the quality of this name from the next segment on; `auto`: whichever the connection carries. */
  choose(quality: string): void {
    this.#quality = quality;
    if (this.#hls !== undefined) {
      this.#hls.nextLevel = levelOf(this.#hls, quality);
    }
  }

  /** How it plays now. */
  state(): SegmentsState {
    const { currentTime, paused, videoHeight } = this.#film;
    const now = performance.now();
    if (currentTime !== this.#time.played || paused) {
      this.#time = { played: currentTime, since: now };
    }
    const { currentLevel = -1, levels = [], latency = 0 } = this.#hls ?? {};
    // A playlist of one quality says nothing of its size.
    return { height: levels[currentLevel]?.height || videoHeight, failure: this.#failure, still: now - this.#time.since, behind: latency, hasBegun: currentTime > 0, isOfNode: this.#info?.address !== undefined };
  }

  figures(): PackageFigures {
    const hls = this.#hls;
    const level = hls?.levels[hls.currentLevel];
    return {
      height: level?.height ?? 0,
      heights: hls?.levels.map(({ height }) => height) ?? [],
      bitrate: level?.bitrate ?? 0,
      throughput: hls?.bandwidthEstimate ?? 0,
      time: this.#film.currentTime,
      buffer: this.#buffered,
      behind: hls?.latency ?? 0,
      stalls: this.#stalls,
      switches: this.#switches,
      errors: this.#errors,
      fetches: this.#fetches.counters,
    };
  }

  /** Time buffered ahead of what plays, in seconds. */
  get #buffered(): number {
    const { buffered, currentTime } = this.#film;
    const last = buffered.length - 1;
    return last >= 0 && buffered.start(last) <= currentTime ? Math.max(0, buffered.end(last) - currentTime) : 0;
  }

  async #start(): Promise<void> {
    clearTimeout(this.#retry);
    this.#hls?.destroy();
    this.#hls = undefined;
    const info = this.#info;
    const { default: Player } = await import("hls.js/light");
    if (info === undefined || info !== this.#info) {
      return;
    }
    if (!Player.isSupported()) {
      this.#failure = { sentence: t("This browser cannot play segments, as it has no Media Source Extensions. Try another browser."), isFinal: true };
      return;
    }
    const hls = new Player({ ...(info.address === undefined ? { loader: namedLoader(this.#fetches) } : {}), backBufferLength: 30 });
    this.#hls = hls;
    hls.on(Player.Events.ERROR, (_: Events.ERROR, data: ErrorData) => this.#handleError(data, Player.ErrorTypes.MEDIA_ERROR));
    hls.on(Player.Events.MANIFEST_PARSED, () => {
      const level = levelOf(hls, this.#quality);
      if (level >= 0) {
        // `nextLevel` would stop the first segment.
        hls.loadLevel = level;
      }
      this.#host.qualities();
    });
    let hasBegun = false;
    hls.on(Player.Events.FRAG_BUFFERED, () => {
      this.#pause = FIRST_PAUSE;
      this.#failure = null;
      this.#recoveries = 0;
      // The player begins somewhere in its first segment: what is left of that may be over before the next one is here.
      const segment = hls.latestLevelDetails?.targetduration ?? 0;
      if (!hasBegun && this.#buffered >= segment) {
        hasBegun = true;
        void this.#film.play().catch(() => undefined);
      }
    });
    hls.on(Player.Events.LEVEL_SWITCHED, (_, { level }) => {
      const height = hls.levels[level]?.height ?? 0;
      this.#switches.push({ at: Date.now(), height });
      this.#host.step(`Quality ${height} lines`);
    });
    hls.attachMedia(this.#film);
    hls.loadSource(info.address ?? playlistOf(info.name));
  }

  /** hls.js tries everything a few times before it calls an error fatal; from then on it is our turn. */
  #handleError({ fatal, details, type, error }: ErrorData, media: string): void {
    this.#errors[details] = (this.#errors[details] ?? 0) + 1;
    if (!fatal) {
      return;
    }
    const name = this.#info?.name ?? "";
    if (type === media && this.#recoveries < MAX_RECOVERIES) {
      this.#recoveries += 1;
      this.#hls?.recoverMediaError();
      return;
    }
    if (type === media) {
      this.#hls?.destroy();
      this.#failure = { sentence: t("This browser cannot play the codec of {name} ({details}). Try another browser, or publish with another codec.", { name, details }), isFinal: true };
      return;
    }
    const seconds = this.#pause / 1_000;
    this.#failure = { sentence: t("Fetching {name} failed ({cause}). Trying again in {seconds} s…", { name, cause: error.message.replace(/\.$/, ""), seconds }), isFinal: false };
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#start(), this.#pause);
    this.#pause = Math.min(LAST_PAUSE, this.#pause * 2);
  }
}

/** Index of the level of this quality; -1: hls.js chooses. */
function levelOf({ levels }: Hls, quality: string): number {
  const last = levels.length - 1;
  const level = { auto: -1, lowest: 0, highest: last }[quality] ?? Number.parseInt(quality, 10);
  return level >= 0 && level <= last ? level : -1;
}
