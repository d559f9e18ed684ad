/** How a camera holds its pictures: clockwise rotation in degrees, then whether they are mirrored (WebCodecs, section 9.4). Older browsers turn them by themselves. */
interface Orientation {
  rotation?: number;
  flip?: boolean;
}

/**
 * Turns pictures as they are to be seen. A telephone's camera gives them as its sensor lies, with a note how to turn them; encoders keep that
 * note beside the picture, where recordings, HLS, thumbnails and players of other kinds would each have to follow it.
 */
export class Upright {
  #canvas: OffscreenCanvas | undefined;

  /** Returns the picture upright. The one that is given is closed if it is another. */
  turn(frame: VideoFrame): VideoFrame {
    const { rotation = 0, flip = false } = frame as Orientation;
    if (rotation === 0 && !flip) {
      return frame;
    }
    // Sizes of display are those of the turned picture.
    const { displayWidth: width, displayHeight: height, timestamp } = frame;
    if (this.#canvas?.width !== width || this.#canvas.height !== height) {
      this.#canvas = new OffscreenCanvas(width, height);
    }
    // A canvas draws a picture as its orientation says.
    this.#canvas.getContext("2d", { alpha: false })?.drawImage(frame, 0, 0, width, height);
    const upright = new VideoFrame(this.#canvas, { timestamp });
    frame.close();
    return upright;
  }
}
