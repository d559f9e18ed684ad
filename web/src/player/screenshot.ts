/** A screenshot of what shows the picture, in its own size, as PNG. Throws `InvalidStateError` before the first picture. */
export async function takeScreenshot(picture: HTMLVideoElement | HTMLCanvasElement, { width, height }: { width: number; height: number }): Promise<Blob> {
  if (width === 0 || height === 0) {
    throw new DOMException("there is no picture yet", "InvalidStateError");
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d")?.drawImage(picture, 0, 0, width, height);
  return canvas.convertToBlob({ type: "image/png" });
}
