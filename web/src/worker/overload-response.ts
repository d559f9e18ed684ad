import { Overload } from "./overload.ts";
import type { VideoSink } from "./video-sink.ts";

/** Time between two pictures while the machine has no time for more, in milliseconds. */
const BUSY_PICTURE_INTERVAL = 100;
/** What people read in the log. */
const STEPS = {
  none: "This machine has time again",
  instruments: "This machine is busy: fewer figures",
  quality: "This machine is busy: lowest quality",
  rate: "This machine is busy: ten pictures a second",
  picture: "This machine is busy: key frames only",
};

/** What `OverloadResponse` needs of the rest. */
export interface ResponseHost {
  /** The core chooses the rung by this. */
  setRung(rung: string): void;
  step(text: string): void;
}

/** Gives up, and takes back, what the machine has no time for; keeps the quality that was chosen. */
export class OverloadResponse {
  readonly #host: ResponseHost;
  readonly overload = new Overload();
  /** The rung that was asked for, and what the core chooses it by. */
  #wish: string;
  #inUse: string;

  /** @param wish a rung's name, or `auto` */
  constructor(wish: string, host: ResponseHost) {
    this.#host = host;
    this.#wish = wish;
    this.#inUse = wish;
  }

  /** A person chose a rung, or `auto`. */
  choose(wish: string): void {
    this.#wish = wish;
    this.#chooseRung();
  }

  /** To be called some times a second. */
  update(now: number, video: VideoSink): void {
    this.overload.handleDecoder(video.decoderAge(now));
    if (this.overload.update(now)) {
      const { level } = this.overload;
      this.#host.step(STEPS[level]);
      video.minInterval = level === "rate" || level === "picture" ? BUSY_PICTURE_INTERVAL : 0;
      video.keyFramesOnly = level === "picture";
      this.#chooseRung();
    }
  }

  /** What was asked for, unless that is left to the player and the machine has no time for more than the lowest. */
  #chooseRung(): void {
    const { level } = this.overload;
    const isLow = level !== "none" && level !== "instruments" && this.#wish === "auto";
    const rung = isLow ? "lowest" : this.#wish;
    if (rung !== this.#inUse) {
      this.#inUse = rung;
      this.#host.setRung(rung);
    }
  }
}
