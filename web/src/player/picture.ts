import { openLiveTrack, type LiveTrack } from "./live-track.ts";

/** What shows the picture: a `<video>` that plays decoded frames where the browser can do that, else a canvas. */
export class Picture {
  readonly film: HTMLVideoElement;
  #canvas: HTMLCanvasElement;
  /** What the film plays while frames of a live stream go there; undefined: they go to the canvas. */
  #track: LiveTrack | undefined;

  /** Takes the elements that the page brings in the slot `picture`, or makes them in `slot`. */
  constructor(player: HTMLElement, slot: HTMLSlotElement) {
    this.#canvas = player.querySelector<HTMLCanvasElement>("canvas[slot=picture]") ?? make(slot, "canvas");
    this.film = player.querySelector<HTMLVideoElement>("video[slot=picture]") ?? make(slot, "video");
    this.film.muted = true;
    this.film.playsInline = true;
    this.film.hidden = true;
  }

  get canvas(): HTMLCanvasElement {
    return this.#canvas;
  }

  /** Whether frames of a live stream go to the film. */
  get isTrack(): boolean {
    return this.#track !== undefined;
  }

  /** Returns what the worker shows frames on. `choice`: what to use instead of the best that there is. */
  open(choice: "canvas" | undefined): OffscreenCanvas | WritableStream<VideoFrame> {
    this.#track = choice === "canvas" ? undefined : openLiveTrack(this.film);
    this.#show(this.#track !== undefined);
    return this.#track?.writable ?? this.#canvas.transferControlToOffscreen();
  }

  /** Has the film play, as there is a frame, or as something may have paused it. */
  play(): void {
    this.#track?.play();
  }

  /** Keeps the last picture. */
  pause(): void {
    if (this.#track === undefined) {
      this.film.pause();
    }
  }

  /** Gives the film to somebody else. */
  giveFilm(): void {
    this.#closeTrack();
    this.#show(true);
  }

  /** What is shown, as PNG: in its own size, which of a canvas is `size`. */
  async screenshot(isFilm: boolean, size: { width: number; height: number }): Promise<Blob> {
    const { takeScreenshot } = await import("./screenshot.ts");
    const { film } = this;
    return isFilm || this.isTrack ? takeScreenshot(film, { width: film.videoWidth, height: film.videoHeight }) : takeScreenshot(this.#canvas, size);
  }

  /** The worker is gone: `open` may be called again. */
  close(): void {
    // A canvas can be given to one worker only.
    const fresh = this.#canvas.cloneNode() as HTMLCanvasElement;
    this.#canvas.replaceWith(fresh);
    this.#canvas = fresh;
    this.#closeTrack();
    this.#show(false);
  }

  #closeTrack(): void {
    this.#track?.close();
    this.#track = undefined;
  }

  /** Shows the film, or else the canvas. */
  #show(isFilm: boolean): void {
    this.film.hidden = !isFilm;
    this.#canvas.hidden = isFilm;
  }
}

/** An element for the picture where the page brings none. */
function make<T extends "canvas" | "video">(slot: HTMLSlotElement, tag: T): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  made.setAttribute("part", "picture");
  made.setAttribute("aria-label", "Live picture");
  slot.append(made);
  return made;
}
