import type { Presentation, Steer } from "../shared/messages.ts";

/** How often it is reported what is presented, in milliseconds. */
const INTERVAL = 250;

/** What must be left to play behind a place that it goes to, in seconds. */
const MARGIN = 0.1;

/** What `SteeredFilm` reports. */
export interface SteeredHost {
  presented(presentation: Presentation): void;
  resized(width: number, height: number): void;
}

/** A `<video>` that plays segments of a worker, which steers its place and speed. */
export class SteeredFilm {
  readonly #film: HTMLVideoElement;
  readonly #host: SteeredHost;
  readonly #resized = (): void => this.#host.resized(this.#film.videoWidth, this.#film.videoHeight);
  #isOpen = false;
  #steer: Steer = { number: 0, at: 0, rate: 1 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setTimeout> | undefined;

  constructor(film: HTMLVideoElement, host: SteeredHost) {
    this.#film = film;
    this.#host = host;
  }

  /** Whether segments are played. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Plays what a worker gave this handle of. */
  open(handle: Transferable): void {
    this.close();
    this.#isOpen = true;
    // Where the browser wants to be asked for more before it plays elsewhere, it is not.
    this.#film.disableRemotePlayback = true;
    this.#film.srcObject = handle as unknown as MediaProvider;
    this.#film.addEventListener("resize", this.#resized);
    this.play();
    this.#look();
  }

  /** Goes where the worker says. */
  steer(steer: Steer): void {
    if (!this.#isOpen) {
      return;
    }
    this.#steer = steer;
    clearTimeout(this.#timer);
    const wait = steer.at - performance.timeOrigin - performance.now();
    if (steer.to !== undefined) {
      // A busy page goes there late, and so further.
      this.#film.currentTime = Math.max(steer.to, Math.min(steer.to + Math.max(0, -wait) / 1_000, this.#end - MARGIN));
    }
    if (wait <= 0) {
      this.#film.playbackRate = steer.rate;
    } else {
      this.#film.playbackRate = 0;
      this.#timer = setTimeout(() => (this.#film.playbackRate = steer.rate), wait);
    }
    this.play();
  }

  /** Has it play, also after something paused it. */
  play(): void {
    if (this.#isOpen) {
      this.#film.play().catch(() => undefined);
    }
  }

  /** Plays segments no more; the `<video>` is free for something else. */
  close(): void {
    if (!this.#isOpen) {
      return;
    }
    this.#isOpen = false;
    clearTimeout(this.#timer);
    clearTimeout(this.#watch);
    this.#film.removeEventListener("resize", this.#resized);
    this.#film.playbackRate = 1;
    this.#film.srcObject = null;
  }

  /** End of what is there, in seconds. */
  get #end(): number {
    const { buffered } = this.#film;
    return buffered.length === 0 ? 0 : buffered.end(buffered.length - 1);
  }

  /** Reports the next picture that is presented, and one of those after it from time to time. */
  #look(): void {
    this.#film.requestVideoFrameCallback((_, { expectedDisplayTime, mediaTime }) => {
      if (this.#isOpen) {
        const at = performance.timeOrigin + expectedDisplayTime;
        this.#host.presented({ number: this.#steer.number, at, time: mediaTime, isHeld: at < this.#steer.at });
        this.#watch = setTimeout(() => this.#look(), INTERVAL);
      }
    });
  }
}
