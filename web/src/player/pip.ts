/** The picture in a window above all others: browsers do that with a `<video>` only, so one shows what is on the canvas. */
export class PipWindow {
  readonly #canvas: () => HTMLCanvasElement;
  readonly #place: HTMLElement;
  readonly #changed: (event: "enterpictureinpicture" | "leavepictureinpicture") => void;
  #video: HTMLVideoElement | undefined;

  /** @param place where a video may be that is not seen. */
  constructor(canvas: () => HTMLCanvasElement, place: HTMLElement, changed: (event: "enterpictureinpicture" | "leavepictureinpicture") => void) {
    this.#canvas = canvas;
    this.#place = place;
    this.#changed = changed;
  }

  get isOpen(): boolean {
    return this.#video !== undefined;
  }

  /** Opens it; with `film`, for that. */
  async open(film: HTMLVideoElement | undefined): Promise<PictureInPictureWindow> {
    const video = film ?? this.#mirror();
    const left = (): void => {
      this.#video = undefined;
      if (film === undefined) {
        (video.srcObject as MediaStream | null)?.getTracks().forEach((track) => track.stop());
        video.remove();
      }
      this.#changed("leavepictureinpicture");
    };
    try {
      if (film === undefined) {
        await video.play();
      }
      const opened = await video.requestPictureInPicture();
      this.#video = video;
      video.addEventListener("leavepictureinpicture", left, { once: true });
      this.#changed("enterpictureinpicture");
      return opened;
    } catch (error) {
      left();
      throw error;
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
