import { clockHeight, clockRows } from "../e2e/lib/clock.js";
import type { Core, TabConfig, TabPort } from "../src/worker/tab-port.ts";

/** Stands in for the core: encodes frames in the page itself, with the clock of the test picture and a beep a second. */
const WIDTH = 640;
const HEIGHT = 360;
const RATE = 30;
const KEY_INTERVAL = 30;
const NETWORK = 5;
const SAMPLE_RATE = 48_000;
const PACKET = 960;

interface Queued {
  at: number;
  record: Uint8Array;
}

export async function loadTab(): Promise<Core> {
  return { make: (config) => new FakeTab(config), memory: () => 0 };
}

class FakeTab implements TabPort {
  #target: number;
  #queue: Queued[] = [];
  #canvas = new OffscreenCanvas(WIDTH, HEIGHT);
  #frame = 0;
  #packet = 0;
  #captured = new Map<number, number>();
  readonly #video: VideoEncoder;
  readonly #audio: AudioEncoder;
  readonly #started = performance.now();

  constructor(config: TabConfig) {
    this.#target = config.target_ms;
    this.#video = new VideoEncoder({
      output: (chunk) => this.#encoded(0, chunk, this.#captured.get(chunk.timestamp) ?? 0, Math.round((chunk.timestamp * RATE) / 1e6)),
      error: (error) => console.error(error),
    });
    this.#video.configure({
      codec: "avc1.42E01E",
      width: WIDTH,
      height: HEIGHT,
      bitrate: 1e6,
      framerate: RATE,
      latencyMode: "realtime",
      avc: { format: "annexb" },
    });
    this.#audio = new AudioEncoder({
      output: (chunk) => this.#encoded(1, chunk, this.#started + chunk.timestamp / 1e3, Math.round((chunk.timestamp * SAMPLE_RATE) / PACKET / 1e6)),
      error: (error) => console.error(error),
    });
    this.#audio.configure({ codec: "opus", sampleRate: SAMPLE_RATE, numberOfChannels: 1, bitrate: 64_000 });
    this.#event({
      type: "catalogue",
      catalogue: {
        version: 1,
        streams: [
          { name: "video", kind: "video", codec: "h264", rungs: [{ name: "1M", bitrate: 1e6, width: WIDTH, height: HEIGHT, codec_string: "avc1.42E01E", rate: { num: RATE, den: 1 } }] },
          { name: "audio", kind: "audio", codec: "opus", rungs: [{ name: "64k", bitrate: 64e3, codec_string: "opus", sample_rate: SAMPLE_RATE, channels: 1, rate: { num: 50, den: 1 } }] },
        ],
      },
    });
    this.#event({ type: "signer", name: "/fake/KEY", digest: "00", verdict: "made here", trusted: true, memory: "none" });
    setInterval(() => this.#produce(), 5);
  }

  faceUp(): number {
    return 1;
  }
  publish(): number {
    return 0;
  }
  send(): void {}
  faceDown(): void {}
  handleFrame(): void {}
  handleTimeout(): void {}
  decoded(): void {}
  rendered(): void {}
  decoderError(): void {}
  setRung(): void {}
  setWanted(): void {}
  seek(): void {}
  corrupt(): void {}
  free(): void {}

  pollTimeout(): number {
    return this.#queue[0]?.at ?? performance.now() + 10;
  }

  drain(): Uint8Array {
    const now = performance.now();
    const due = this.#queue.filter((queued) => queued.at <= now);
    this.#queue = this.#queue.filter((queued) => queued.at > now);
    const batch = new Uint8Array(due.reduce((sum, { record }) => sum + record.length, 0));
    let at = 0;
    for (const { record } of due) {
      batch.set(record, at);
      at += record.length;
    }
    return batch;
  }

  fetch(): void {
    throw new Error("nothing is published as segments here");
  }

  giveUp(): void {
    // Nothing is fetched.
  }

  setWakeDelay(): void {
    // There is no path whose delays it could be taken for.
  }

  setTarget(milliseconds: number): void {
    this.#target = milliseconds;
  }

  stats(): string {
    return JSON.stringify({ state: "playing", liveness: "live", rung: "1M", picture: "the highest bitrate there is", controller: "none", goodput_bps: 1e6, throughput_bps: 1.1e6, path: { queueing_ms: 2, capacity_bps: 5e6, loss: 0 }, rtt_ms: 1, rtt_min_ms: 1, signer: { key_name: "/fake/KEY", key_digest: "00", verdict: "made here", trusted: true }, video: { buffer_ms: this.#target } });
  }

  #produce(): void {
    const now = performance.now();
    if (now - this.#started >= (this.#frame * 1_000) / RATE) {
      this.#draw(now);
      const timestamp = Math.round((this.#frame * 1e6) / RATE);
      this.#captured.set(timestamp, now);
      const image = new VideoFrame(this.#canvas, { timestamp });
      this.#video.encode(image, { keyFrame: this.#frame % KEY_INTERVAL === 0 });
      image.close();
      this.#frame += 1;
    }
    if (now - this.#started >= (this.#packet * PACKET * 1e3) / SAMPLE_RATE) {
      const data = Float32Array.from({ length: PACKET }, (_, index) => this.#sample(this.#packet * PACKET + index));
      const sound = new AudioData({ format: "f32-planar", sampleRate: SAMPLE_RATE, numberOfFrames: PACKET, numberOfChannels: 1, timestamp: Math.round((this.#packet * PACKET * 1e6) / SAMPLE_RATE), data });
      this.#audio.encode(sound);
      sound.close();
      this.#packet += 1;
    }
  }

  #sample(index: number): number {
    const wall = performance.timeOrigin + this.#started + (index / SAMPLE_RATE) * 1e3;
    return wall % 1_000 < 100 ? 0.5 * Math.sin((2 * Math.PI * wall * 1_000) / 1e3) : 0;
  }

  #draw(now: number): void {
    const context = this.#canvas.getContext("2d");
    if (context === null) {
      return;
    }
    const wall = performance.timeOrigin + now;
    context.fillStyle = `hsl(${(wall / 50) % 360} 40% 45%)`;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    const side = WIDTH / 40;
    clockRows(wall, this.#frame).forEach((row, y) =>
      row.forEach((bit, x) => {
        context.fillStyle = bit ? "#fff" : "#000";
        context.fillRect(x * side, y * side, side, side);
      }),
    );
    context.fillStyle = wall % 1_000 < 100 ? "#fff" : "#000";
    context.fillRect((WIDTH * 7) / 8 - WIDTH / 20, (HEIGHT * 4) / 5 - WIDTH / 20, WIDTH / 10, WIDTH / 10);
    context.fillStyle = "#fff";
    context.font = "32px sans-serif";
    context.fillText(new Date(wall).toISOString().slice(11, 23), 24, clockHeight(WIDTH) + 60);
  }

  #encoded(stream: number, chunk: EncodedVideoChunk | EncodedAudioChunk, captured: number, position: number): void {
    this.#captured.delete(chunk.timestamp);
    const payload = new Uint8Array(chunk.byteLength);
    chunk.copyTo(payload);
    const rung = new TextEncoder().encode(stream === 0 ? "1M" : "64k");
    const fields = new DataView(new ArrayBuffer(24 + 16));
    fields.setFloat64(0, position, true);
    fields.setFloat64(8, performance.timeOrigin + captured, true);
    fields.setFloat64(16, captured + NETWORK + 30 + this.#target, true);
    fields.setFloat32(24, performance.now() - captured, true);
    fields.setFloat32(32, NETWORK, true);
    this.#record(2, [stream, chunk.type === "key" ? 1 : 0, rung.length, ...rung, ...new Uint8Array(fields.buffer)], payload, performance.now() + NETWORK + Math.max(0, this.#target - 40));
  }

  #event(event: object): void {
    this.#record(4, [], new TextEncoder().encode(JSON.stringify(event)), 0);
  }

  #record(kind: number, head: number[], rest: Uint8Array, at: number): void {
    const record = new Uint8Array(5 + head.length + rest.length);
    new DataView(record.buffer).setUint32(0, record.length - 4, true);
    record[4] = kind;
    record.set(head, 5);
    record.set(rest, 5 + head.length);
    this.#queue.push({ at, record });
    this.#queue.sort((a, b) => a.at - b.at);
  }
}
