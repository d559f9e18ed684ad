import type { PcmMessage, PlayerCommand, PlayerReport } from "../shared/sound.ts";
import type { AudioCounts } from "../shared/summary.ts";
import { message } from "./link.ts";
import type { FrameRecord, Rung } from "./records.ts";

/** What `Audio` needs of the rest. */
export interface AudioHost {
  /** The rung's entry in the catalogue. */
  rung(name: string): Rung | undefined;
  decoded(position: number, took: number): void;
  rendered(position: number): void;
  /** Sound could be given to the device `milliseconds` after its time; negative: before it. Returns by how much all sound is due later from now on. */
  ready(milliseconds: number): number;
  decoderLost(reason: string): void;
  unsupported(codec: string): void;
  /** The device played sound. */
  heard(): void;
  /** The device needs all of it to be so much later, in milliseconds; the picture has to wait for it. */
  delayed(milliseconds: number): void;
}

/** Packets given to the decoder that have not come out: a second of them. */
const MAX_DECODING = 50;
/** A packet that does not come out for so long never will, in milliseconds. */
const STUCK = 5_000;
const DEFAULT_RATE = 48_000;

/** Octets of hexadecimal digits. */
function octetsOf(digits: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

interface Pending {
  position: number;
  dueAt: number;
  catchingUp: boolean;
  fedAt: number;
}

/** Decodes sound and sends it to the worklet, once somebody asked for sound. */
export class Audio {
  readonly #host: AudioHost;
  /** In the order given: the decoder makes one piece of sound of each packet, but counts timestamps by itself. */
  #pending: Pending[] = [];
  #decoder: AudioDecoder | undefined;
  #rung = "";
  #port: MessagePort | undefined;
  #heard: PlayerReport | undefined;
  #received = 0;
  #unsupported = false;

  constructor(host: AudioHost) {
    this.#host = host;
  }

  /** Sends PCM to the worklet behind `port` from now on. */
  start(port: MessagePort): void {
    this.stop();
    this.#port = port;
    port.onmessage = (event: MessageEvent<PlayerReport>) => {
      this.#heard = event.data;
      if (event.data.lateness !== null) {
        this.#host.heard();
      }
      this.#host.delayed(event.data.delay);
    };
  }

  /** Decodes nothing from now on. */
  stop(): void {
    this.#post({ type: "clear" });
    this.#port?.close();
    this.#port = undefined;
    this.#heard = undefined;
    this.#host.delayed(0);
    this.#closeDecoder();
  }

  /** Takes an encoded packet. */
  handleFrame(record: FrameRecord): void {
    this.#received += 1;
    if (this.#port === undefined || this.#unsupported || !this.#configure(record.rung)) {
      return;
    }
    const now = performance.now();
    if (this.#pending.length >= MAX_DECODING) {
      // A busy machine catches up; a decoder that is stuck does not.
      if (now - (this.#pending[0]?.fedAt ?? now) > STUCK) {
        this.#fail("the audio decoder gives nothing back");
      }
      return;
    }
    this.#pending.push({ position: record.position, dueAt: record.dueAt, catchingUp: record.catchingUp, fedAt: now });
    try {
      this.#decoder?.decode(new EncodedAudioChunk({ type: "key", timestamp: record.position, data: record.payload }));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The playout target moved. */
  shift(milliseconds: number): void {
    for (const pending of this.#pending) {
      pending.dueAt += milliseconds;
    }
    this.#post({ type: "shift", milliseconds });
  }

  /** The stream goes on somewhere else: what is queued belongs to the past. */
  discontinue(): void {
    this.#closeDecoder();
    this.#post({ type: "clear" });
  }

  /**
   * @param pictureLateness by how much the picture is shown after it is due, in milliseconds
   * @param isPublished whether the stream has sound
   */
  summary(pictureLateness: number | null, isPublished: boolean): AudioCounts {
    const { lateness = null, delay = 0, underruns = 0, jumps = 0, slack = null } = this.#heard ?? {};
    const offset = lateness !== null && pictureLateness !== null ? lateness - pictureLateness : null;
    return { state: this.#state(isPublished), received: this.#received, offset, delay, underruns, jumps, slack };
  }

  #state(isPublished: boolean): AudioCounts["state"] {
    if (this.#unsupported) {
      return "unsupported";
    }
    if (this.#port === undefined) {
      return isPublished ? "off" : "none";
    }
    if (this.#heard === undefined) {
      return "starting";
    }
    return this.#heard.lateness === null ? "silent" : "playing";
  }

  #configure(name: string): boolean {
    if (this.#decoder?.state === "configured" && this.#rung === name) {
      return true;
    }
    const rung = this.#host.rung(name);
    if (rung?.codec_string === undefined) {
      return false;
    }
    this.#rung = name;
    try {
      this.#decoder ??= this.#newDecoder();
      this.#decoder.configure({
        codec: rung.codec_string,
        sampleRate: rung.sample_rate ?? DEFAULT_RATE,
        numberOfChannels: rung.channels ?? 1,
        ...(rung.description === undefined ? {} : { description: octetsOf(rung.description) }),
      });
    } catch (error) {
      this.#fail(error);
      return false;
    }
    return true;
  }

  #newDecoder(): AudioDecoder {
    const decoder: AudioDecoder = new AudioDecoder({
      output: (sound) => {
        if (this.#decoder === decoder) {
          this.#handleSound(sound);
        }
        sound.close();
      },
      error: (error) => {
        if (this.#decoder === decoder) {
          this.#fail(error);
        }
      },
    });
    return decoder;
  }

  #handleSound(sound: AudioData): void {
    const pending = this.#pending.shift();
    if (pending === undefined) {
      return;
    }
    const now = performance.now();
    // May move what waits, and this has left it.
    const moved = pending.catchingUp ? 0 : this.#host.ready(now - pending.dueAt);
    const channels = Array.from({ length: sound.numberOfChannels }, (_, planeIndex) => {
      const samples = new Float32Array(sound.numberOfFrames);
      sound.copyTo(samples, { planeIndex, format: "f32-planar" });
      return samples;
    });
    const pcm: PcmMessage = { type: "pcm", at: performance.timeOrigin + pending.dueAt + moved, rate: sound.sampleRate, channels };
    this.#post(
      pcm,
      channels.map((samples) => samples.buffer),
    );
    this.#host.decoded(pending.position, now - pending.fedAt);
    this.#host.rendered(pending.position);
  }

  #fail(error: unknown): void {
    const codec = this.#host.rung(this.#rung)?.codec_string ?? "?";
    this.#closeDecoder();
    if (error instanceof DOMException && error.name === "NotSupportedError") {
      this.#unsupported = true;
      this.#host.unsupported(codec);
      return;
    }
    this.#host.decoderLost(message(error));
  }

  #closeDecoder(): void {
    const decoder = this.#decoder;
    this.#decoder = undefined;
    this.#rung = "";
    this.#pending = [];
    if (decoder !== undefined && decoder.state !== "closed") {
      decoder.close();
    }
  }

  #post(command: PlayerCommand, transfer: Transferable[] = []): void {
    this.#port?.postMessage(command, transfer);
  }
}
