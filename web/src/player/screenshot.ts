/** A screenshot of what shows the picture, in its own size, as PNG. Throws `InvalidStateError` before the first picture. */
export async function takeScreenshot(picture: HTMLVideoElement | HTMLCanvasElement, { width, height }: { width: number; height: number }): Promise<Blob> {
  if (width === 0 || height === 0) {
    throw new DOMException("there is no picture yet", "InvalidStateError");
  }
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d")?.drawImage(picture, 0, 0, width, height);
  return canvas.convertToBlob({ type: "image/png" });
}

/** File name of a screenshot of the stream `name`, whose picture was captured at `time` (milliseconds since 1970). */
export function screenshotName(name: string, time: number): string {
  const stream = name.split(/[^\p{L}\p{N}_.-]+/u).filter((part) => part !== "").join("-");
  const at = new Date(Number.isFinite(time) ? time : Date.now());
  const two = (value: number): string => String(value).padStart(2, "0");
  const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(".");
  return `${stream === "" ? "stream" : stream} ${date} ${clock}.png`;
}
