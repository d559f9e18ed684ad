import playerUrl from "../worklet/player.ts?worker&url";
import type { OutputClock } from "../shared/sound.ts";

/** What most streams carry; the browser converts to what the device wants. */
const SAMPLE_RATE = 48_000;
/** Time in which a device is opened, in milliseconds. */
const RESUME_LIMIT = 500;
/** How often the worklet learns when its samples are heard, in milliseconds. */
const CLOCK_INTERVAL = 200;
/** Weight of a new reading of that clock: single ones are off by some milliseconds. */
const CLOCK_WEIGHT = 0.15;
/** What is being heard was rendered at most so long ago, in milliseconds, or the browser's clock of it is wrong. */
const MAX_OUTPUT_DELAY = 500;
/** A reading this far off is a new beginning (the device was changed, the machine slept), in milliseconds. */
const CLOCK_JUMP = 40;

/** The audio device, once a person asked for sound: browsers allow none before. */
export class Sound {
  #context: AudioContext | undefined;
  #node: AudioWorkletNode | undefined;
  #gain: GainNode | undefined;
  #volume = 1;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Wall clock (ms) less context time (ms), smoothed. */
  #ahead: number | undefined;

  get context(): AudioContext | undefined {
    return this.#context;
  }

  get node(): AudioWorkletNode | undefined {
    return this.#node;
  }

  /** Loudness, 0 to 1. */
  get volume(): number {
    return this.#volume;
  }

  set volume(volume: number) {
    this.#volume = volume;
    if (this.#gain !== undefined) {
      this.#gain.gain.value = volume;
    }
  }

  /**
   * Opens the device. The worker sends PCM to the port that is returned.
   *
   * @throws DOMException `NotAllowedError` where the browser wants a click first
   */
  async start(): Promise<MessagePort> {
    this.stop();
    const context = new AudioContext({ sampleRate: SAMPLE_RATE, latencyHint: "interactive" });
    this.#context = context;
    await context.audioWorklet.addModule(playerUrl);
    // Where sound is not allowed this waits for a click.
    await Promise.race([context.resume(), new Promise((resolve) => setTimeout(resolve, RESUME_LIMIT))]);
    if (context.state !== "running" && !navigator.userActivation.hasBeenActive) {
      throw new DOMException("the browser wants a click before it plays sound", "NotAllowedError");
    }
    const node = new AudioWorkletNode(context, "namecast-player", { numberOfInputs: 0, outputChannelCount: [2] });
    this.#gain = new GainNode(context, { gain: this.#volume });
    node.connect(this.#gain).connect(context.destination);
    this.#node = node;
    const channel = new MessageChannel();
    node.port.postMessage({ type: "worker", port: channel.port1 }, [channel.port1]);
    this.#readClock();
    this.#timer = setInterval(() => this.#readClock(), CLOCK_INTERVAL);
    return channel.port2;
  }

  stop(): void {
    clearInterval(this.#timer);
    void this.#context?.close();
    this.#context = undefined;
    this.#node = undefined;
    this.#gain = undefined;
    this.#ahead = undefined;
  }

  #readClock(): void {
    const context = this.#context;
    if (context?.state !== "running") {
      this.#ahead = undefined;
      return;
    }
    const ahead = heardAt(context) - context.currentTime * 1_000;
    const known = this.#ahead;
    this.#ahead = known === undefined || Math.abs(ahead - known) > CLOCK_JUMP ? ahead : known + CLOCK_WEIGHT * (ahead - known);
    const clock: OutputClock = { type: "clock", context: context.currentTime, wall: context.currentTime * 1_000 + this.#ahead };
    this.#node?.port.postMessage(clock);
  }
}

/** When what is rendered now will be heard, in milliseconds since 1970. */
function heardAt(context: AudioContext): number {
  const { contextTime = 0, performanceTime = 0 } = context.getOutputTimestamp();
  // In WebKitGTK 2.50 the second runs twice as fast as time.
  if (contextTime > 0 && Math.abs(performance.now() - performanceTime) < MAX_OUTPUT_DELAY) {
    return performance.timeOrigin + performanceTime + (context.currentTime - contextTime) * 1_000;
  }
  return performance.timeOrigin + performance.now() + (context.outputLatency || context.baseLatency) * 1_000;
}
