import type { Captured } from "../shared/live.ts";
import type { CapturedSound } from "../shared/sound.ts";

/** Pieces from a port that may wait; the next is left out. */
const MAX_WAITING = 16;

/** Captured media as a stream, in whichever form they come. */
export function streamOf<T extends VideoFrame | AudioData>(source: Captured<T>): ReadableStream<T> {
  if (!(source instanceof MessagePort)) {
    return source;
  }
  return new ReadableStream<T>(
    {
      start: (controller) => {
        source.onmessage = ({ data }: MessageEvent<VideoFrame | CapturedSound>) => {
          const piece = data instanceof VideoFrame ? data : soundOf(data);
          if ((controller.desiredSize ?? 0) > 0) {
            controller.enqueue(piece as T);
          } else {
            piece.close();
          }
        };
      },
      cancel: () => source.close(),
    },
    { highWaterMark: MAX_WAITING },
  );
}

function soundOf({ timestamp, sampleRate, channels }: CapturedSound): AudioData {
  const numberOfFrames = channels[0]?.length ?? 0;
  const data = new Float32Array(numberOfFrames * channels.length);
  channels.forEach((samples, channel) => data.set(samples, channel * numberOfFrames));
  return new AudioData({ format: "f32-planar", sampleRate, numberOfFrames, numberOfChannels: channels.length, timestamp, data });
}
