import type { VideoCounts } from "../shared/summary.ts";
import { DecoderChoice } from "./decoder-choice.ts";
import { Display } from "./display.ts";
import type { Presented } from "./presented.ts";
import type { FrameRecord, Rung } from "./records.ts";
import type { Screen } from "./screen.ts";
import type { VideoSink } from "./video-sink.ts";

/** What `Video` needs of the rest. Times are the worker's, in milliseconds. */
export interface VideoHost {
  /** The rung's entry in the catalogue. */
  rung(name: string): Rung | undefined;
  decoded(position: number, took: number): void;
  rendered(position: number): void;
  /** A frame could be shown `milliseconds` after its time; negative: before it. */
  ready(milliseconds: number): void;
  /** The decoder is lost: what comes next must stand alone. */
  decoderLost(reason: string): void;
  /** The decoder is slow, and one of another kind takes its place. */
  decoderReplaced(kind: string): void;
  unsupported(codec: string): void;
  resized(width: number, height: number): void;
  /** The first frame after a jump could be shown only `milliseconds` after its time, as those before it had to be decoded. */
  jumpedLate(milliseconds: number): void;
}

/** Decoded frames that may wait while more are decoded: each holds a buffer of the decoder. */
const MAX_AHEAD = 12;
/** Frames that wait for the decoder while enough decoded ones wait: four seconds at 60 fps. */
const MAX_WAITING = 240;
/** A decoder that is this much behind is given nothing until it has caught up, in milliseconds. */
const MAX_BEHIND = 2_000;
/** A frame that does not come out of the decoder for so long never will, in milliseconds. */
const STUCK = 5_000;
/** Decoders hold reordered pictures back until others come. Nothing coming for so long, in milliseconds, they give what they have. */
const IDLE = 1_500;

/** A frame on its way through the decoder, or to it. */
interface Encoded {
  record: FrameRecord;
  dueAt: number;
  /** Its time was over when it came, as when a stream is joined at its newest key frame. */
  cameLate: boolean;
}

interface Pending extends Encoded {
  fedAt: number;
}

/** Decodes the frames of the stream, for a display that shows each at its time. */
export class Video implements VideoSink {
  readonly #host: VideoHost;
  readonly #choice = new DecoderChoice();
  /** Frames that wait for the decoder, as enough decoded ones wait for their time. */
  readonly #waiting: Encoded[] = [];
  readonly #pending = new Map<number, Pending>();
  #decoder: VideoDecoder | undefined;
  #rung = "";
  #preference: HardwareAcceleration = "no-preference";
  #waitForKey = true;
  #visible: boolean;
  /** Timestamps, as decoders get them: microseconds of capture, with something added so that what comes later has a higher one. */
  #newest = -1;
  #added = 0;
  /** The stream goes on somewhere else with the next frame. */
  #isElsewhere = false;
  /** The decoder is too far behind: it is given nothing until it has caught up. */
  #isBehind = false;
  /** Playback jumped, and nothing was shown since. */
  #jumped = false;
  #refused = new Set<string>();
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** When the newest frame here is due. */
  #newestDueAt = -Infinity;
  readonly #counts = { received: 0, undecodable: 0, decoderErrors: 0 };

  keyFramesOnly = false;
  readonly presented: Presented;
  readonly display: Display;

  constructor(screen: Screen, visible: boolean, presented: Presented, host: VideoHost) {
    this.#visible = visible;
    this.#host = host;
    this.presented = presented;
    this.display = new Display(screen, presented, {
      rendered: (position) => host.rendered(position),
      resized: (width, height) => host.resized(width, height),
      taken: () => this.#feed(),
      expectsMore: () => this.#pending.size > 0 || this.#waiting.length > 0,
    });
  }

  get minInterval(): number {
    return this.display.minInterval;
  }

  set minInterval(milliseconds: number) {
    this.display.minInterval = milliseconds;
  }

  /** Takes an encoded frame. */
  handleFrame(record: FrameRecord): void {
    this.#counts.received += 1;
    // A picture may be shown before one that came earlier.
    const isReordered = this.#newestDueAt - record.dueAt <= this.#reorderDelay(record.rung);
    this.#newestDueAt = isReordered ? Math.max(this.#newestDueAt, record.dueAt) : record.dueAt;
    if (this.#visible) {
      this.#take(record);
    }
  }

  /** Stops or resumes showing. While nobody looks nothing is decoded; afterwards the next key frame is. */
  setVisible(visible: boolean): void {
    if (visible === this.#visible) {
      return;
    }
    this.#visible = visible;
    this.display.interrupt();
    this.#waiting.length = 0;
    this.#waitForKey = true;
    if (!visible) {
      this.#closeDecoder();
    }
  }

  /**
   * The stream goes on somewhere else, perhaps with lower positions. What is here already is still shown, unless playback
   * jumped to another time: then the picture stays until the first one from there.
   */
  discontinue(jump: boolean): void {
    if (jump) {
      this.#waiting.length = 0;
      this.#pending.clear();
      this.#resetDecoder();
      this.#jumped = true;
      // The first picture is shown however old it is, and the pause before it is no freeze.
      this.display.interrupt();
    }
    // Frames from before are decoded as what they are.
    this.#waiting.splice(0).forEach((frame) => this.#decode(frame));
    this.#waitForKey = true;
    this.#isElsewhere = true;
  }

  /** Stops; the picture on the screen stays. */
  close(): void {
    clearTimeout(this.#idle);
    this.#waiting.length = 0;
    this.display.close();
    this.#closeDecoder();
  }

  /** The playout target moved: what is decoded or being decoded moves with it. */
  shift(milliseconds: number): void {
    this.#newestDueAt += milliseconds;
    for (const frame of [...this.#waiting, ...this.#pending.values()]) {
      frame.dueAt += milliseconds;
    }
    this.display.shift(milliseconds);
  }

  /** Gives the decoder something it cannot decode. */
  breakDecoder(): void {
    const nonsense = new Uint8Array(64).fill(0xa5);
    try {
      this.#decoder?.decode(new EncodedVideoChunk({ type: "delta", timestamp: -1, data: nonsense }));
      void this.#decoder?.flush().catch(() => undefined);
    } catch {
      // Then it is broken already.
    }
  }

  /** Time between two pictures of the rung, in milliseconds. */
  get interval(): number {
    const { num, den } = this.#host.rung(this.#rung)?.rate ?? { num: 0, den: 1 };
    return num > 0 ? (1_000 * den) / num : 0;
  }

  /** How long what is here would last, in milliseconds. */
  get buffered(): number {
    return Math.max(0, this.#newestDueAt - performance.now());
  }

  /** Age of the oldest frame in the decoder, in milliseconds; pictures that are reordered wait for others there. */
  decoderAge(now: number): number {
    const [oldest] = this.#pending.values();
    return oldest === undefined ? 0 : Math.max(0, now - oldest.fedAt - this.#reorderDelay(oldest.record.rung));
  }

  summary(): VideoCounts {
    const { counts, overtaken, queued } = this.display;
    return { ...this.#counts, ...this.presented.counts, ...counts, overtaken, queued };
  }

  #take(record: FrameRecord): void {
    const frame = { record, dueAt: record.dueAt, cameLate: performance.now() > record.dueAt };
    if (this.#waiting.length === 0 && this.display.queued < MAX_AHEAD) {
      this.#decode(frame);
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) {
      this.#waiting.splice(0).forEach((waiting) => this.#decode(waiting));
    }
    // A copy: the payload is a view of a batch that would be kept alive whole.
    this.#waiting.push({ ...frame, record: { ...record, payload: record.payload.slice() } });
  }

  /** Decodes what waits, as far as there is room for decoded frames. */
  #feed(): void {
    while (this.display.queued + this.#pending.size < MAX_AHEAD) {
      const frame = this.#waiting.shift();
      if (frame === undefined) {
        return;
      }
      this.#decode(frame);
    }
  }

  #decode(frame: Encoded): void {
    const { record } = frame;
    this.#watchDecoder();
    if (record.key) {
      this.#waitForKey = this.#isBehind || !this.#configure(record.rung);
    }
    if (this.keyFramesOnly && !record.key) {
      this.display.counts.skipped += 1;
      this.#waitForKey = true;
      return;
    }
    if (this.#waitForKey || this.#decoder === undefined) {
      this.#counts.undecodable += 1;
      return;
    }
    const timestamp = this.#timestamp(record);
    this.#pending.set(timestamp, { ...frame, fedAt: performance.now() });
    try {
      this.#decoder.decode(
        new EncodedVideoChunk({ type: record.key ? "key" : "delta", timestamp, data: record.payload }),
      );
    } catch (error) {
      this.#fail(error);
    }
    this.#expectNext(record.rung);
  }

  /** Finds out whether the decoder keeps up. One that does not is given nothing until all it has is decoded, and then a key frame. */
  #watchDecoder(): void {
    const age = this.decoderAge(performance.now());
    if (age > STUCK) {
      this.#fail(new Error("it gives nothing back"));
    } else if (age > MAX_BEHIND) {
      this.#isBehind = true;
      this.#waitForKey = true;
    } else if (this.#pending.size === 0) {
      this.#isBehind = false;
    }
  }

  /** The frame's timestamp: decoders give pictures in this order. */
  #timestamp(record: FrameRecord): number {
    const captured = Math.round(record.capturedAt * 1_000);
    // What is earlier than reordering explains is of another clock, or comes again at another rung.
    const isEarlier = captured + this.#added < this.#newest - this.#reorderDelay(record.rung) * 1_000;
    if (this.#isElsewhere || isEarlier) {
      this.#isElsewhere = false;
      this.#added = this.#newest + 1 - captured;
    }
    this.#newest = Math.max(this.#newest, captured + this.#added);
    return captured + this.#added;
  }

  /** By how much a picture of the rung is shown after it could be decoded, at most, in milliseconds. */
  #reorderDelay(rung: string): number {
    return (this.#host.rung(rung)?.reorder_delay ?? 0) / 1_000;
  }

  /** Has the decoder give the pictures that it holds back for others. The next frame must be a key frame. */
  #flush(): void {
    if (this.#decoder?.state === "configured" && this.#pending.size > 0 && this.#reorderDelay(this.#rung) > 0) {
      void this.#decoder.flush().catch(() => undefined);
    }
  }

  /** Waits for the frame after this one: the last of a film would never be shown else. */
  #expectNext(rung: string): void {
    clearTimeout(this.#idle);
    const delay = this.#reorderDelay(rung);
    if (delay > 0) {
      this.#idle = setTimeout(
        () => {
          this.#flush();
          this.#waitForKey = true;
        },
        IDLE + 2 * delay,
      );
    }
  }

  /** Makes the decoder ready for a key frame of the rung; false if the browser cannot decode it. */
  #configure(name: string): boolean {
    const { preference } = this.#choice;
    const isKnown = this.#decoder?.state === "configured" && this.#rung === name && this.#preference === preference;
    if (!isKnown || this.#isElsewhere) {
      this.#flush();
    }
    if (isKnown) {
      return true;
    }
    const config = this.#config(name);
    if (config === undefined || this.#refused.has(config.codec)) {
      return false;
    }
    this.#rung = name;
    this.#preference = preference;
    try {
      this.#decoder ??= this.#newDecoder();
      this.#decoder.configure({ ...config, hardwareAcceleration: preference });
    } catch (error) {
      this.#fail(error);
      return false;
    }
    return true;
  }

  #config(name: string): VideoDecoderConfig | undefined {
    const rung = this.#host.rung(name);
    if (rung?.codec_string === undefined) {
      return undefined;
    }
    return {
      codec: rung.codec_string,
      // Decoders reorder all the same; without it, Chromium's holds a picture more for each of its threads.
      optimizeForLatency: true,
      ...(rung.width && rung.height ? { codedWidth: rung.width, codedHeight: rung.height } : {}),
    };
  }

  #newDecoder(): VideoDecoder {
    const decoder: VideoDecoder = new VideoDecoder({
      output: (image) => (this.#decoder === decoder ? this.#handleImage(image) : image.close()),
      error: (error) => {
        if (this.#decoder === decoder) {
          this.#fail(error);
        }
      },
    });
    return decoder;
  }

  #fail(error: unknown): void {
    const codec = this.#config(this.#rung)?.codec ?? "?";
    this.#closeDecoder();
    // The other kind may not decode what the first one did.
    if (error instanceof DOMException && error.name === "NotSupportedError" && !this.#choice.giveUp()) {
      this.#refused.add(codec);
      this.#host.unsupported(codec);
      return;
    }
    this.#counts.decoderErrors += 1;
    this.#host.decoderLost(error instanceof Error ? error.message : String(error));
  }

  #closeDecoder(): void {
    const decoder = this.#decoder;
    this.#decoder = undefined;
    this.#rung = "";
    this.#waitForKey = true;
    this.#isBehind = false;
    this.#pending.clear();
    if (decoder !== undefined && decoder.state !== "closed") {
      decoder.close();
    }
  }

  /** Forgets what the decoder was given; the next key frame configures it again. */
  #resetDecoder(): void {
    this.#rung = "";
    if (this.#decoder?.state === "configured") {
      this.#decoder.reset();
    }
  }

  #handleImage(image: VideoFrame): void {
    const pending = this.#pending.get(image.timestamp);
    if (pending === undefined) {
      image.close();
      return;
    }
    // Decoders give frames in order, so earlier ones that are still here will never come.
    for (const timestamp of this.#pending.keys()) {
      if (timestamp <= image.timestamp) {
        this.#pending.delete(timestamp);
      }
    }
    const now = performance.now();
    const { record, dueAt, cameLate, fedAt } = pending;
    const took = now - fedAt;
    this.#host.decoded(record.position, took);
    this.#watchSpeed(now, took - this.#reorderDelay(record.rung));
    if (record.decodeOnly) {
      image.close();
      return;
    }
    this.display.add({ image, record, dueAt, cameLate, took, decodedAt: now, close: () => image.close() });
    // Either may move all that waits, this frame included.
    if (this.#jumped) {
      this.#jumped = false;
      this.#host.jumpedLate(Math.max(0, now - dueAt));
    } else if (!record.catchingUp) {
      this.#host.ready(now - dueAt);
    }
    this.display.show();
  }

  /** Replaces a decoder that is late for long by one of the other kind. */
  #watchSpeed(now: number, took: number): void {
    const config = this.#config(this.#rung);
    if (config === undefined || !this.#choice.handleDecoded(now, took)) {
      return;
    }
    void this.#choice.replace(config).then((kind) => {
      if (kind !== undefined) {
        this.#host.decoderReplaced(kind);
      }
    });
  }
}
