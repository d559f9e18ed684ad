type Change = "enterpictureinpicture" | "leavepictureinpicture";

/** The picture in a window above all others: browsers do that with a `<video>` only, so one shows what is on the canvas, if it is there. */
export class PipWindow {
  readonly #film: HTMLVideoElement;
  readonly #canvas: () => HTMLCanvasElement;
  readonly #place: HTMLElement;
  readonly #changed: (event: Change) => void;
  #isOpen = false;

  /**
   * @param film what shows the picture where that is no canvas; the browser's own controls may open it, too
   * @param place where a video may be that is not seen
   */
  constructor(film: HTMLVideoElement, canvas: () => HTMLCanvasElement, place: HTMLElement, changed: (event: Change) => void) {
    this.#film = film;
    this.#canvas = canvas;
    this.#place = place;
    this.#changed = changed;
    this.#follow(film);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Opens it for the film, or else for the canvas. */
  async open(isFilm: boolean): Promise<PictureInPictureWindow> {
    if (isFilm) {
      return this.#film.requestPictureInPicture();
    }
    const mirror = this.#mirror();
    const remove = (): void => {
      (mirror.srcObject as MediaStream | null)?.getTracks().forEach((track) => track.stop());
      mirror.remove();
    };
    this.#follow(mirror);
    mirror.addEventListener("leavepictureinpicture", remove, { once: true });
    try {
      await mirror.play();
      return await mirror.requestPictureInPicture();
    } catch (error) {
      remove();
      throw error;
    }
  }

  #follow(video: HTMLVideoElement): void {
    for (const name of ["enterpictureinpicture", "leavepictureinpicture"] as const) {
      video.addEventListener(name, (event) => {
        // The film may be a child of the player, which sends this event by itself.
        event.stopPropagation();
        this.#isOpen = name === "enterpictureinpicture";
        this.#changed(name);
      });
    }
  }

  #mirror(): HTMLVideoElement {
    const video = document.createElement("video");
    video.muted = true;
    video.hidden = true;
    video.srcObject = this.#canvas().captureStream();
    // Beside the slot, so that it is in the same tree as the player and yet no fallback for a picture.
    this.#place.after(video);
    return video;
  }
}
