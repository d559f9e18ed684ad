import type { Presentation, Report } from "../shared/messages.ts";
import { openLiveTrack, type LiveTrack } from "./live-track.ts";
import { SteeredFilm } from "./steered-film.ts";

/** What `Picture` reports. */
export interface PictureHost {
  /** The film has presented a picture of the worker's segments. */
  presented(presentation: Presentation): void;
  resized(): void;
}

/** What shows the picture: a `<video>` that plays decoded frames where the browser can do that, else a canvas. */
export class Picture {
  readonly film: HTMLVideoElement;
  #canvas: HTMLCanvasElement;
  /** What the film plays while frames of a live stream go there; undefined: they go to the canvas. */
  #track: LiveTrack | undefined;
  /** The film as it plays segments of the worker. */
  readonly #steered: SteeredFilm;
  readonly #player: HTMLElement;
  readonly #host: PictureHost;
  /** Size of the picture. */
  size = { width: 0, height: 0 };

  /** Takes the elements that the page brings in the slot `picture`, or makes them in `slot`. */
  constructor(player: HTMLElement, slot: HTMLSlotElement, host: PictureHost) {
    [this.#player, this.#host] = [player, host];
    this.#canvas = player.querySelector<HTMLCanvasElement>("canvas[slot=picture]") ?? make(slot, "canvas");
    this.film = player.querySelector<HTMLVideoElement>("video[slot=picture]") ?? make(slot, "video");
    this.film.muted = true;
    this.film.playsInline = true;
    this.film.hidden = true;
    this.#steered = new SteeredFilm(this.film, { presented: (presentation) => host.presented(presentation), resized: (width, height) => this.#resize(width, height) });
  }

  get canvas(): HTMLCanvasElement {
    return this.#canvas;
  }

  /** Whether the film shows a live stream. */
  get isFilm(): boolean {
    return this.#track !== undefined || this.#steered.isOpen;
  }

  /** Returns what the worker shows frames on. `choice`: what to use instead of the best that there is. */
  open(choice: "canvas" | undefined): OffscreenCanvas | WritableStream<VideoFrame> {
    this.#track = choice === "canvas" ? undefined : openLiveTrack(this.film);
    this.#show(this.#track !== undefined);
    return this.#track?.writable ?? this.#canvas.transferControlToOffscreen();
  }

  /** Has the film play, as there is a frame, or as something may have paused it. */
  play(): void {
    if (this.#steered.isOpen) {
      this.#steered.play();
    } else {
      this.#track?.play();
    }
  }

  /** Takes what the worker reports of the picture. */
  handle(report: Extract<Report, { type: "size" | "source" | "screen" | "steer" }>): void {
    switch (report.type) {
      case "size":
        this.play();
        this.#resize(report.width, report.height);
        break;
      case "source":
        this.#steered.open(report.handle);
        this.#show(true);
        break;
      case "screen":
        this.#steered.close();
        this.#show(this.#track !== undefined);
        this.play();
        break;
      case "steer":
        this.#steered.steer(report.steer);
        break;
    }
  }

  #resize(width: number, height: number): void {
    this.size = { width, height };
    this.#player.style.setProperty("--ratio", String(width / height));
    this.#host.resized();
  }

  /** Keeps the last picture. */
  pause(): void {
    if (this.#track === undefined || this.#steered.isOpen) {
      this.film.pause();
    }
  }

  /** Gives the film to somebody else. */
  giveFilm(): void {
    this.#closeTrack();
    this.#show(true);
  }

  /** What is shown, as PNG, in its own size. */
  async screenshot(isFilm: boolean): Promise<Blob> {
    const { takeScreenshot } = await import("./screenshot.ts");
    const { film } = this;
    return isFilm || this.isFilm ? takeScreenshot(film, { width: film.videoWidth, height: film.videoHeight }) : takeScreenshot(this.#canvas, this.size);
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
    this.#steered.close();
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
