import { CaptureClock } from "./capture-clock.ts";
import { PARITY_PERCENT, SEGMENT_SIZE, type LiveFrame, type StreamDescription } from "./tab.ts";

/** What the sound needs of the rest. */
export interface AudioHost {
  publish(frame: LiveFrame, payload: Uint8Array): void;
  failed(text: string): void;
}

/** Samples a second of Opus, whatever the microphone has. */
const SAMPLE_RATE = 48_000;
const BITRATE = 64_000;
const RUNG = "64k";
/** Microseconds of a packet. */
const PACKET = 20_000;
/** As the commands publish sound: two shards for four packets, made where somebody requests them. */
const INTER_FRAME = { samples: 4, parity: 2 };
/** Captured pieces that may wait for the encoder; the next is left out. */
const MAX_QUEUED = 16;

/** Encodes sound with Opus. */
export class LiveAudio {
  readonly description: StreamDescription;
  readonly #host: AudioHost;
  readonly #clock = new CaptureClock();
  readonly #encoder: AudioEncoder;
  #position = 0;
  /** What to add to a timestamp for the time of capture, in milliseconds. */
  #offset = 0;
  #bits = 0;
  #reader: ReadableStreamDefaultReader<AudioData> | undefined;

  private constructor(host: AudioHost, config: AudioEncoderConfig) {
    this.#host = host;
    this.#encoder = new AudioEncoder({
      output: (chunk) => this.#publish(chunk),
      error: (error) => host.failed(`The sound cannot be encoded any more: ${error.message}. Go live again.`),
    });
    this.#encoder.configure(config);
    this.description = {
      name: "audio",
      kind: "audio",
      codec: "opus",
      rungs: [
        {
          name: RUNG,
          bitrate: BITRATE,
          rate: { num: 1_000_000 / PACKET, den: 1 },
          key_interval: 1,
          codec_string: "opus",
          sample_rate: SAMPLE_RATE,
          channels: config.numberOfChannels,
          across: INTER_FRAME,
        },
      ],
      segment_size: SEGMENT_SIZE,
      parity_percent: PARITY_PERCENT,
    };
  }

  /**
   * For sound like `first`.
   *
   * @throws Error if the browser does not encode Opus.
   */
  static async make(host: AudioHost, first: AudioData): Promise<LiveAudio> {
    const config: AudioEncoderConfig = {
      codec: "opus",
      sampleRate: first.sampleRate,
      numberOfChannels: Math.min(2, first.numberOfChannels),
      bitrate: BITRATE,
      opus: { frameDuration: PACKET },
    };
    const { supported } = await AudioEncoder.isConfigSupported(config);
    if (supported !== true) {
      throw new Error("this browser does not encode sound with Opus. Switch the microphone off, or open this link in Chrome, Edge or Firefox.");
    }
    return new LiveAudio(host, config);
  }

  /** Takes and encodes no more. */
  close(): void {
    void this.#reader?.cancel().catch(() => undefined);
    if (this.#encoder.state !== "closed") {
      this.#encoder.close();
    }
  }

  /** Encodes what `reader` gives, `first` before it, until there is no more. */
  async run(reader: ReadableStreamDefaultReader<AudioData>, first: AudioData): Promise<void> {
    this.#reader = reader;
    for (let next: AudioData | undefined = first; next !== undefined; next = (await reader.read()).value) {
      this.#offset = this.#clock.capturedAt(next.timestamp, performance.now()) - next.timestamp / 1_000;
      if (this.#encoder.state === "configured" && this.#encoder.encodeQueueSize < MAX_QUEUED) {
        this.#encoder.encode(next);
      }
      next.close();
    }
  }

  /** Bits a second in the `seconds` since the last call. */
  bitrate(seconds: number): number {
    const rate = this.#bits / seconds;
    this.#bits = 0;
    return rate;
  }

  #publish(chunk: EncodedAudioChunk): void {
    const payload = new Uint8Array(chunk.byteLength);
    chunk.copyTo(payload);
    this.#bits += 8 * payload.length;
    this.#host.publish({ stream: "audio", rung: RUNG, position: this.#position, key: true, captured_at: chunk.timestamp / 1_000 + this.#offset }, payload);
    this.#position += 1;
  }
}
