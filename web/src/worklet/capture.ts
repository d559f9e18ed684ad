import type { CapturedSound } from "../shared/sound.ts";

/** Samples that are sent at a time: 20 ms at 48 kHz. */
const PIECE = 960;

/** Sends what a microphone gives to the port that it is given. */
class Capture extends AudioWorkletProcessor {
  #port: MessagePort | undefined;
  #channels: Float32Array<ArrayBuffer>[] = [];
  #filled = 0;
  /** Samples that were sent. */
  #sent = 0;

  constructor() {
    super();
    this.port.onmessage = (message: MessageEvent<MessagePort>) => {
      this.#port = message.data;
    };
  }

  process([input]: Float32Array[][]): boolean {
    const length = input?.[0]?.length ?? 0;
    if (input === undefined || length === 0) {
      return true;
    }
    if (this.#filled === 0 || this.#channels.length !== input.length) {
      this.#channels = input.map(() => new Float32Array(PIECE));
      this.#filled = 0;
    }
    for (let done = 0; done < length; ) {
      const count = Math.min(length - done, PIECE - this.#filled);
      input.forEach((samples, channel) => this.#channels[channel]?.set(samples.subarray(done, done + count), this.#filled));
      done += count;
      this.#filled += count;
      if (this.#filled === PIECE) {
        this.#send();
      }
    }
    return true;
  }

  #send(): void {
    const piece: CapturedSound = { timestamp: Math.round((this.#sent / sampleRate) * 1e6), sampleRate, channels: this.#channels };
    this.#port?.postMessage(
      piece,
      this.#channels.map(({ buffer }) => buffer),
    );
    this.#sent += PIECE;
    this.#channels = this.#channels.map(() => new Float32Array(PIECE));
    this.#filled = 0;
  }
}

registerProcessor("namecast-capture", Capture);
