/** Where decoded pictures go: a canvas, or the track that a `<video>` of the page plays. */
export type ScreenTarget = OffscreenCanvas | WritableStream<VideoFrame>;

/** Shows pictures. */
export interface Screen {
  /** Shows a picture now, and closes it. */
  show(image: VideoFrame): void;
  /** Closes a picture that waits, if any. The picture on the screen stays. */
  clear(): void;
}

/** Returns the screen for `target`, which must not be used for another one. */
export function openScreen(target: ScreenTarget): Screen {
  return target instanceof WritableStream ? new TrackScreen(target) : new CanvasScreen(target);
}

/** Draws on a canvas, in this thread. */
export class CanvasScreen implements Screen {
  readonly #canvas: OffscreenCanvas;
  readonly #context: OffscreenCanvasRenderingContext2D;

  constructor(canvas: OffscreenCanvas) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) {
      throw new Error("this browser draws nothing outside the page's own thread");
    }
    this.#canvas = canvas;
    this.#context = context;
  }

  show(image: VideoFrame): void {
    if (this.#canvas.width !== image.displayWidth || this.#canvas.height !== image.displayHeight) {
      this.#canvas.width = image.displayWidth;
      this.#canvas.height = image.displayHeight;
    }
    this.#context.drawImage(image, 0, 0);
    image.close();
  }

  clear(): void {
    // Pictures are drawn at once, so none waits.
  }
}

/** Writes to a video track: the browser shows the picture as it shows those of a camera, on its own threads. */
export class TrackScreen implements Screen {
  readonly #writer: WritableStreamDefaultWriter<VideoFrame>;
  #isWriting = false;
  /** The newest picture that came while another one was written. */
  #next: VideoFrame | undefined;

  constructor(track: WritableStream<VideoFrame>) {
    this.#writer = track.getWriter();
    // A player that is taken off its page ends the track.
    this.#writer.closed.catch(() => undefined);
  }

  show(image: VideoFrame): void {
    if (this.#isWriting) {
      this.#next?.close();
      this.#next = image;
      return;
    }
    this.#isWriting = true;
    const written = (): void => {
      this.#isWriting = false;
      const next = this.#next;
      this.#next = undefined;
      if (next !== undefined) {
        this.show(next);
      }
    };
    this.#writer.write(image).then(written, () => {
      // The track did not take it.
      image.close();
      written();
    });
  }

  clear(): void {
    this.#next?.close();
    this.#next = undefined;
  }
}
