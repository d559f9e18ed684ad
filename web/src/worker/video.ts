import type { Shown } from "../shared/messages.ts";
import type { StageTimes, VideoCounts } from "../shared/summary.ts";
import { RecentFrames } from "./gop.ts";
import type { FrameRecord, Rung } from "./records.ts";
import { FrameQueue, type Timed } from "./schedule.ts";
import { Meter } from "./meter.ts";

/** What `Video` needs of the rest. Times are the worker's, in milliseconds. */
export interface VideoHost {
  /** The rung's entry in the catalogue. */
  rung(name: string): Rung | undefined;
  decoded(position: number, took: number): void;
  rendered(position: number): void;
  /** The decoder is lost: what comes next must stand alone. */
  decoderLost(reason: string): void;
  unsupported(codec: string): void;
  resized(width: number, height: number): void;
  /** The first frame after a jump could be shown only `milliseconds` after its time, as those before it had to be decoded. */
  jumpedLate(milliseconds: number): void;
}

/** Decoded frames that may wait: 720p in I420 is 1.4 MB each. */
const MAX_DECODED = 16;
/** Frames given to the decoder that have not come out; beyond it, a slow machine skips to the next key frame. */
const MAX_DECODING = 90;
/** What is kept while nobody looks: ten seconds between key frames at 30 fps, at more than 3 Mbit/s. */
const MAX_RECENT_FRAMES = 300;
const MAX_RECENT_BYTES = 8 << 20;
/** A frame this much before its time is shown at once: timers are no finer. */
const EARLY = 2;
/** Decoders hold reordered pictures back until others come. Nothing coming for so long, in milliseconds, they give what they have. */
const IDLE = 1_500;
/** Gap between two frames that a person notices as a freeze. */
const FREEZE = 200;
/** Frames that the mean of each stage is taken of: four seconds at 30 fps. */
const MAX_MEASURED = 120;
/** Frames whose showing is remembered until the page asks. */
const MAX_SHOWN = 600;

/** What is known of a frame while it is decoded. */
interface Pending {
  record: FrameRecord;
  dueAt: number;
  /** Its time was over before it was decoded, as when a stream is joined at its newest key frame. */
  cameLate: boolean;
  fedAt: number;
}

interface DecodedFrame extends Timed {
  image: VideoFrame;
  record: FrameRecord;
  cameLate: boolean;
  took: number;
  decodedAt: number;
}

/** Decodes the frames of the stream and draws each on the canvas at its time. */
export class Video {
  readonly #host: VideoHost;
  readonly #canvas: OffscreenCanvas;
  readonly #context: OffscreenCanvasRenderingContext2D;
  readonly #queue = new FrameQueue<DecodedFrame>(MAX_DECODED);
  readonly #recent = new RecentFrames(MAX_RECENT_FRAMES, MAX_RECENT_BYTES);
  readonly #pending = new Map<number, Pending>();
  #decoder: VideoDecoder | undefined;
  #rung = "";
  #waitForKey = true;
  #visible: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #timerAt = Infinity;
  #lastShownAt: number | undefined;
  /** Timestamps, as decoders get them: microseconds of capture, with something added so that what comes later has a higher one. */
  #lastShown = -1;
  #newest = -1;
  #added = 0;
  /** The stream goes on somewhere else with the next frame. */
  #isElsewhere = false;
  #capturedAt: number | null = null;
  #shownRung: string | null = null;
  /** Playback jumped, and nothing was shown since. */
  #jumped = false;
  #refused = new Set<string>();
  #shown: Shown[] = [];
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** Nothing comes any more: what the decoder held back is late, and shown all the same. */
  #isIdle = false;
  /** When the newest frame here is due. */
  #newestDueAt = -Infinity;

  readonly latency = new Meter(300);
  readonly lateness = new Meter(MAX_MEASURED);
  readonly stages: StageTimes[] = [];
  readonly counts = {
    received: 0,
    shown: 0,
    late: 0,
    undecodable: 0,
    decoderErrors: 0,
    freezes: 0,
    longestGap: 0,
  };

  constructor(canvas: OffscreenCanvas, visible: boolean, host: VideoHost) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) {
      throw new Error("this browser draws nothing outside the page's own thread");
    }
    this.#canvas = canvas;
    this.#context = context;
    this.#visible = visible;
    this.#host = host;
  }

  /** Takes an encoded frame. */
  handleFrame(record: FrameRecord): void {
    this.counts.received += 1;
    // A picture may be shown before one that came earlier.
    const isReordered = this.#newestDueAt - record.dueAt <= this.#reorderDelay(record.rung);
    this.#newestDueAt = isReordered ? Math.max(this.#newestDueAt, record.dueAt) : record.dueAt;
    if (this.#visible) {
      this.#decode(record);
    } else {
      this.#recent.push(record);
    }
  }

  /** Stops or takes up showing. While nobody looks nothing is decoded; afterwards the newest picture is back at once. */
  setVisible(visible: boolean): void {
    if (visible === this.#visible) {
      return;
    }
    this.#visible = visible;
    this.#lastShownAt = undefined;
    this.#queue.clear();
    this.#waitForKey = true;
    if (visible) {
      this.#recent.take().forEach((record) => this.#decode(record));
    } else {
      this.#recent.clear();
      this.#closeDecoder();
    }
  }

  /**
   * The stream goes on somewhere else, perhaps with lower positions. What is here already is still shown, unless playback
   * jumped to another time: then the picture stays until the first one from there.
   */
  discontinue(jump: boolean): void {
    this.#waitForKey = true;
    this.#isElsewhere = true;
    if (jump) {
      this.#queue.clear();
      this.#pending.clear();
      this.#recent.clear();
      this.#resetDecoder();
      this.#jumped = true;
      // The first picture is shown however old it is, and the pause before it is no freeze.
      this.#lastShownAt = undefined;
    }
  }

  /** Stops; what was drawn last stays. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#idle);
    this.#queue.clear();
    this.#closeDecoder();
  }

  /** Capture of the newest frame shown, in milliseconds since 1970. */
  get capturedAt(): number | null {
    return this.#capturedAt;
  }

  /** The rung of the newest frame shown. */
  get rung(): string | null {
    return this.#shownRung;
  }

  /** The playout target moved: what is decoded or being decoded moves with it. */
  shift(milliseconds: number): void {
    this.#queue.shift(milliseconds);
    this.#newestDueAt += milliseconds;
    for (const pending of this.#pending.values()) {
      pending.dueAt += milliseconds;
    }
    this.#schedule();
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

  /** How long what is here would last, in milliseconds. */
  get buffered(): number {
    return Math.max(0, this.#newestDueAt - performance.now());
  }

  /** Frames shown since the last call. */
  takeShown(): Shown[] {
    const shown = this.#shown;
    this.#shown = [];
    return shown;
  }

  summary(): VideoCounts {
    return { ...this.counts, overtaken: this.#queue.overtaken, queued: this.#queue.length };
  }

  #decode(record: FrameRecord): void {
    if (record.key) {
      this.#waitForKey = !this.#configure(record.rung);
    }
    if (this.#waitForKey || this.#decoder === undefined) {
      this.counts.undecodable += 1;
      return;
    }
    if (this.#pending.size >= MAX_DECODING && this.#waiting() >= MAX_DECODING) {
      // The machine is too slow, or a frame never came out.
      this.#pending.clear();
      this.#waitForKey = true;
      this.counts.undecodable += 1;
      return;
    }
    const timestamp = this.#timestamp(record);
    const fedAt = performance.now();
    this.#pending.set(timestamp, { record, dueAt: record.dueAt, cameLate: fedAt > record.dueAt, fedAt });
    try {
      this.#decoder.decode(
        new EncodedVideoChunk({ type: record.key ? "key" : "delta", timestamp, data: record.payload }),
      );
    } catch (error) {
      this.#fail(error);
    }
    this.#expectNext(record.rung);
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
    this.#isIdle = false;
    const delay = this.#reorderDelay(rung);
    if (delay > 0) {
      this.#idle = setTimeout(
        () => {
          this.#flush();
          this.#waitForKey = true;
          this.#isIdle = true;
        },
        IDLE + 2 * delay,
      );
    }
  }

  /** Frames in the decoder that are to be shown. */
  #waiting(): number {
    return [...this.#pending.values()].filter(({ record }) => !record.decodeOnly).length;
  }

  /** Makes the decoder ready for a key frame of the rung; false if the browser cannot decode it. */
  #configure(name: string): boolean {
    const isKnown = this.#decoder?.state === "configured" && this.#rung === name;
    if (!isKnown || this.#isElsewhere) {
      this.#flush();
    }
    if (isKnown) {
      return true;
    }
    const rung = this.#host.rung(name);
    const codec = rung?.codec_string;
    if (rung === undefined || codec === undefined || this.#refused.has(codec)) {
      return false;
    }
    try {
      this.#decoder ??= this.#newDecoder();
      this.#decoder.configure({
        codec,
        // Decoders reorder all the same; without it, Chromium's holds a picture more for each of its threads.
        optimizeForLatency: true,
        ...(rung.width && rung.height ? { codedWidth: rung.width, codedHeight: rung.height } : {}),
      });
    } catch (error) {
      this.#fail(error);
      return false;
    }
    this.#rung = name;
    return true;
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
    this.#closeDecoder();
    if (error instanceof DOMException && error.name === "NotSupportedError") {
      const codec = this.#host.rung(this.#rung)?.codec_string ?? "?";
      this.#refused.add(codec);
      this.#host.unsupported(codec);
      return;
    }
    this.counts.decoderErrors += 1;
    this.#host.decoderLost(error instanceof Error ? error.message : String(error));
  }

  #closeDecoder(): void {
    const decoder = this.#decoder;
    this.#decoder = undefined;
    this.#rung = "";
    this.#waitForKey = true;
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
    this.#host.decoded(record.position, now - fedAt);
    const took = now - fedAt;
    if (record.decodeOnly) {
      image.close();
      return;
    }
    this.#queue.push({ image, record, dueAt, cameLate, took, decodedAt: now, close: () => image.close() });
    if (this.#jumped) {
      this.#jumped = false;
      this.#host.jumpedLate(Math.max(0, now - dueAt));
    }
    this.#show();
  }

  /** Draws the newest frame that is due, and sets the timer for the next. */
  #show(): void {
    const now = performance.now();
    const frame = this.#queue.take(now + EARLY);
    if (frame !== undefined) {
      // Better an old picture than none, so the first is shown even if its time is over.
      const late = now - frame.dueAt > FREEZE && this.#lastShownAt !== undefined && !this.#isIdle;
      if (late || frame.image.timestamp <= this.#lastShown) {
        // What was old already when it came was only needed to decode the next.
        this.counts.late += frame.cameLate ? 0 : 1;
      } else {
        this.#draw(frame);
      }
      frame.close();
    }
    this.#schedule();
  }

  #schedule(): void {
    const next = this.#queue.nextAt();
    if (next === undefined || (this.#timer !== undefined && this.#timerAt === next)) {
      return;
    }
    clearTimeout(this.#timer);
    this.#timerAt = next;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#show();
      },
      Math.max(0, next - performance.now()),
    );
  }

  #draw(frame: DecodedFrame): void {
    const { image, record } = frame;
    if (this.#canvas.width !== image.displayWidth || this.#canvas.height !== image.displayHeight) {
      this.#canvas.width = image.displayWidth;
      this.#canvas.height = image.displayHeight;
      this.#host.resized(image.displayWidth, image.displayHeight);
    }
    this.#context.drawImage(image, 0, 0);
    const now = performance.now();
    this.counts.shown += 1;
    if (this.#lastShownAt !== undefined) {
      const gap = now - this.#lastShownAt;
      this.counts.longestGap = Math.max(this.counts.longestGap, gap);
      this.counts.freezes += gap > FREEZE ? 1 : 0;
    }
    this.#lastShownAt = now;
    this.#lastShown = image.timestamp;
    this.#capturedAt = record.capturedAt;
    this.#shownRung = record.rung;
    this.#host.rendered(record.position);
    this.#measure(frame, now);
  }

  #measure(frame: DecodedFrame, now: number): void {
    const { record } = frame;
    const wall = performance.timeOrigin + now;
    this.#remember(frame, wall);
    if (frame.cameLate || record.catchingUp) {
      // An old picture, shown while joining or from an archive, says nothing about the latency of live ones.
      return;
    }
    this.lateness.push(now - frame.dueAt);
    const capturedAt = record.capturedAt - this.#reorderDelay(record.rung);
    this.latency.push(wall - capturedAt);
    const { encode, publish, network, reassembly } = record.stages;
    const display = Math.max(0, now - Math.max(frame.dueAt, frame.decodedAt));
    const known = encode + publish + network + reassembly + frame.took + display;
    const buffer = Math.max(0, wall - capturedAt - known);
    this.stages.push({ capture: 0, encode, publish, network, reassembly, buffer, decode: frame.took, display });
    if (this.stages.length > MAX_MEASURED) {
      this.stages.shift();
    }
  }

  #remember({ record, dueAt }: DecodedFrame, wall: number): void {
    this.#shown.push({
      position: record.position,
      rung: record.rung,
      capturedAt: record.capturedAt,
      dueAt: performance.timeOrigin + dueAt,
      shownAt: wall,
    });
    if (this.#shown.length > MAX_SHOWN) {
      this.#shown.shift();
    }
  }
}
