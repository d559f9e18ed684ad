import type { Command } from "../shared/messages.ts";
import type { Sound } from "./sound.ts";

/** What `SoundSwitch` needs of the player. */
export interface SoundHost {
  send(command: Command, transfer?: Transferable[]): void;
  /** Whether live sound may be played now. */
  isLive(): boolean;
  /** Whether sound is muted, or why there is none, changed. */
  changed(): void;
}

/** Turns the sound of a live stream on and off. */
export class SoundSwitch {
  readonly #sound: Sound;
  readonly #host: SoundHost;
  #isMuted = false;
  /** Whether the browser wants a click before it plays sound. */
  needsClick = false;
  /** Why the audio device does not play; empty: it does. */
  failure = "";

  constructor(sound: Sound, host: SoundHost) {
    this.#sound = sound;
    this.#host = host;
  }

  get isMuted(): boolean {
    return this.#isMuted;
  }

  /** Mutes or plays, before playback begins without a further call of `apply`. */
  set(isMuted: boolean): void {
    if (isMuted !== this.#isMuted) {
      this.#isMuted = isMuted;
      this.apply();
      this.#host.changed();
    }
  }

  /** Has the device and the worker do what is chosen. */
  apply(): void {
    if (!this.#host.isLive()) {
      return;
    }
    if (this.#isMuted) {
      this.#host.send({ type: "soundOff" });
      this.#sound.stop();
    } else {
      void this.#start();
    }
  }

  async #start(): Promise<void> {
    try {
      const port = await this.#sound.start();
      this.#host.send({ type: "sound", port }, [port]);
      this.failure = "";
      this.needsClick = false;
    } catch (error) {
      this.needsClick = error instanceof DOMException && error.name === "NotAllowedError";
      this.failure = this.needsClick ? "" : error instanceof Error ? error.message : String(error);
      this.#isMuted = true;
      this.#sound.stop();
    }
    this.#host.changed();
  }
}
