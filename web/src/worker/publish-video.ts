import type { QualityFigures } from "../shared/live.ts";
import { AnnexB } from "./annex-b.ts";
import { CaptureClock } from "./capture-clock.ts";
import { message } from "./link.ts";
import { qualities, type Quality } from "./publish-ladder.ts";
import { PARITY_PERCENT, SEGMENT_SIZE, type LiveFrame, type StreamDescription } from "./tab.ts";
import { Upright } from "./upright.ts";

/** What the picture needs of the rest. */
export interface VideoHost {
  publish(frame: LiveFrame, payload: Uint8Array): void;
  /** Whether the network takes less than is made. */
  isBehind(): boolean;
  failed(text: string): void;
}

/** Codecs in the order in which they are tried: the first is decoded everywhere, and as the commands publish. */
const CODECS = [
  { codec: "h264", codecString: "avc1.42E01F" },
  { codec: "vp8", codecString: "vp8" },
  { codec: "vp9", codecString: "vp09.00.31.08" },
] as const;

type Codec = (typeof CODECS)[number];

/** Pictures that may wait for an encoder; the next is left out. */
const MAX_QUEUED = 2;
/**
 * A screen on which nothing moves gives no pictures, a camera in the dark fewer than it says. Those who watch request by the rate
 * that the catalogue has, and would take a publisher that pauses for one that is gone: the last picture is sent again where the
 * next is late by half an interval.
 */
const LATE = 1.5;

/** One quality and its encoder. */
interface Rung {
  quality: Quality;
  encoder: VideoEncoder;
  /** Frames in the encoder, by timestamp. */
  inside: Map<number, { position: number; capturedAt: number }>;
  sent: { frames: number; bits: number };
}

/** Encodes pictures in several qualities with key frames at the same pictures, so that who watches can change between them. */
export class LiveVideo {
  readonly dropped = { encoder: 0, network: 0 };
  readonly #host: VideoHost;
  readonly #codec: Codec;
  readonly #qualities: Quality[];
  readonly #rate: number;
  readonly #clock = new CaptureClock();
  readonly #upright = new Upright();
  #rungs: Rung[];
  #position = 0;
  #wantsKey = false;
  #lastTimestamp = -1;
  #last: VideoFrame | undefined;
  #reader: ReadableStreamDefaultReader<VideoFrame> | undefined;
  /** When the last picture came, or should have. */
  #lastAt = 0;

  private constructor(host: VideoHost, codec: Codec, all: Quality[], rate: number) {
    this.#host = host;
    this.#codec = codec;
    this.#qualities = all;
    this.#rate = rate;
    this.#rungs = this.#encoders(0);
  }

  /** How many qualities there are. */
  get levels(): number {
    return this.#qualities.length;
  }

  /** What is sent, for the catalogue. */
  get description(): StreamDescription {
    const qualities = this.#rungs.map(({ quality }) => quality).toReversed();
    return {
      name: "video",
      kind: "video",
      codec: this.#codec.codec,
      rungs: qualities.map(({ name, bitrate, width, height }) => ({
        name,
        bitrate,
        width,
        height,
        rate: { num: this.#rate, den: 1 },
        key_interval: this.#rate,
        codec_string: this.#codec.codecString,
      })),
      segment_size: SEGMENT_SIZE,
      parity_percent: PARITY_PERCENT,
    };
  }

  /** Leaves out so many of the best qualities from now on, and encodes the others as another stream, which has to be published as one. */
  begin(left: number): void {
    this.#closeEncoders();
    this.#rungs = this.#encoders(left);
    this.#position = 0;
  }

  /** Makes the next picture one that stands alone. */
  requestKey(): void {
    this.#wantsKey = true;
  }

  #closeEncoders(): void {
    this.#rungs.filter(({ encoder }) => encoder.state !== "closed").forEach(({ encoder }) => encoder.close());
  }

  /**
   * For pictures like `first`.
   *
   * @throws Error if the browser encodes none of the codecs.
   */
  static async make(host: VideoHost, first: VideoFrame, rate: number): Promise<LiveVideo> {
    const sizes = qualities(first.displayWidth, first.displayHeight);
    for (const codec of CODECS) {
      const supported = await Promise.all(sizes.map((quality) => isSupported(encoderConfig(codec, quality, rate))));
      if (supported.every(Boolean)) {
        return new LiveVideo(host, codec, sizes, rate);
      }
    }
    throw new Error("this browser encodes neither H.264 nor VP8 nor VP9. Open this link in Chrome, Edge or Firefox.");
  }

  /** Takes and encodes no more. */
  close(): void {
    void this.#reader?.cancel().catch(() => undefined);
    this.#closeEncoders();
    this.#rungs = [];
  }

  /** Encodes what `reader` gives, `first` before it, until there is no more. */
  async run(reader: ReadableStreamDefaultReader<VideoFrame>, first: VideoFrame): Promise<void> {
    this.#reader = reader;
    const repeating = setInterval(() => this.#repeat(), this.#interval / 2);
    try {
      for (let next: VideoFrame | undefined = first; next !== undefined; next = (await reader.read()).value) {
        this.#take(next);
      }
    } finally {
      clearInterval(repeating);
      this.#last?.close();
    }
  }

  /** What was sent in the `seconds` since the last call. */
  figures(seconds: number): QualityFigures[] {
    return this.#rungs.map(({ quality, sent }) => {
      const { name, width, height } = quality;
      const figures = { name, codec: this.#codec.codec, width, height, bitrate: sent.bits / seconds, rate: sent.frames / seconds };
      [sent.frames, sent.bits] = [0, 0];
      return figures;
    });
  }

  #encoders(left: number): Rung[] {
    return this.#qualities.slice(left).map((quality) => this.#rung(quality));
  }

  #rung(quality: Quality): Rung {
    const inside: Rung["inside"] = new Map();
    const sent = { frames: 0, bits: 0 };
    let annexB: AnnexB | undefined;
    const encoder = new VideoEncoder({
      output: (chunk, metadata) => {
        const description = this.#codec.codec === "h264" ? metadata?.decoderConfig?.description : undefined;
        annexB = description === undefined ? annexB : new AnnexB(octetsOf(description));
        const frame = inside.get(chunk.timestamp);
        if (frame === undefined) {
          return;
        }
        // Encoders that are short of bits leave pictures out without a word.
        [...inside.keys()].filter((timestamp) => timestamp <= chunk.timestamp).forEach((timestamp) => inside.delete(timestamp));
        const encoded = new Uint8Array(chunk.byteLength);
        chunk.copyTo(encoded);
        const payload = annexB?.convert(encoded, chunk.type === "key") ?? encoded;
        sent.frames += 1;
        sent.bits += 8 * payload.length;
        this.#publish({ stream: "video", rung: quality.name, position: frame.position, key: chunk.type === "key", captured_at: frame.capturedAt }, payload);
      },
      error: (error) => this.#host.failed(`The picture cannot be encoded any more: ${error.message}. Go live again.`),
    });
    encoder.configure(encoderConfig(this.#codec, quality, this.#rate));
    return { quality, encoder, inside, sent };
  }

  #publish(frame: LiveFrame, payload: Uint8Array): void {
    try {
      this.#host.publish(frame, payload);
    } catch (error) {
      // What follows needs it, so all begins anew.
      this.#wantsKey = true;
      console.warn(`a picture was not published: ${message(error)}`);
    }
  }

  #take(captured: VideoFrame): void {
    const now = performance.now();
    const frame = this.#upright.turn(captured);
    this.#last?.close();
    this.#last = frame.clone();
    this.#lastAt = now;
    const timestamp = Math.max(frame.timestamp, this.#lastTimestamp + 1);
    this.#encode(frame, timestamp, this.#clock.capturedAt(frame.timestamp, now));
  }

  #repeat(): void {
    const now = performance.now();
    if (this.#last !== undefined && now - this.#lastAt >= LATE * this.#interval) {
      // In the rhythm of the pictures before it, unless this thread stood still for longer.
      this.#lastAt = Math.max(this.#lastAt + this.#interval, now - this.#interval);
      this.#encode(this.#last.clone(), this.#lastTimestamp + Math.round(1_000 * this.#interval), now);
    }
  }

  /** Between two pictures, in milliseconds. */
  get #interval(): number {
    return 1_000 / this.#rate;
  }

  /** Encodes one picture in all qualities, or, while an encoder or the network has too much waiting, in none: viewers could not change between qualities there. */
  #encode(frame: VideoFrame, timestamp: number, capturedAt: number): void {
    const behind = this.#behind();
    if (behind !== undefined) {
      this.dropped[behind] += 1;
      frame.close();
      return;
    }
    const stamped = frame.timestamp === timestamp ? frame : new VideoFrame(frame, { timestamp });
    const position = this.#position;
    const keyFrame = this.#wantsKey || position % this.#rate === 0;
    this.#wantsKey = false;
    this.#position += 1;
    this.#lastTimestamp = timestamp;
    for (const { encoder, inside } of this.#rungs) {
      if (encoder.state === "configured") {
        inside.set(timestamp, { position, capturedAt });
        encoder.encode(stamped, { keyFrame });
      }
    }
    stamped.close();
    frame.close();
  }

  #behind(): "encoder" | "network" | undefined {
    if (this.#rungs.some(({ encoder }) => encoder.encodeQueueSize >= MAX_QUEUED)) {
      return "encoder";
    }
    return this.#host.isBehind() ? "network" : undefined;
  }
}

function octetsOf(source: AllowSharedBufferSource): Uint8Array {
  return ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
}

function encoderConfig({ codecString }: Codec, { width, height, bitrate }: Quality, rate: number): VideoEncoderConfig {
  const annexB = codecString.startsWith("avc1") ? { avc: { format: "annexb" as const } } : {};
  return { codec: codecString, width, height, bitrate, framerate: rate, latencyMode: "realtime", bitrateMode: "constant", ...annexB };
}

async function isSupported(config: VideoEncoderConfig): Promise<boolean> {
  try {
    return (await VideoEncoder.isConfigSupported(config)).supported === true;
  } catch {
    return false;
  }
}
