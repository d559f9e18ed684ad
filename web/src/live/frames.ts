import captureUrl from "../worklet/capture.ts?worker&url";
import type { Captured } from "../shared/live.ts";

/** Frames that may wait between camera and encoder: more would be late. */
const BUFFERED_FRAMES = 2;

/** What a track gives, until `stop`. */
export interface Frames<T> {
  readonly source: Captured<T>;
  stop(): void;
}

/** Pictures of a track. */
export function pictures(track: MediaStreamTrack): Frames<VideoFrame> {
  if (typeof MediaStreamTrackProcessor !== "undefined") {
    const { readable } = new MediaStreamTrackProcessor<VideoFrame>({ track, maxBufferSize: BUFFERED_FRAMES });
    return { source: readable, stop: () => undefined };
  }
  return playedPictures(track);
}

/** Sound of a track. */
export async function sound(track: MediaStreamTrack): Promise<Frames<AudioData>> {
  if (typeof MediaStreamTrackProcessor !== "undefined") {
    return { source: new MediaStreamTrackProcessor<AudioData>({ track }).readable, stop: () => undefined };
  }
  return playedSound(track);
}

/** Takes each picture off a `<video>` that plays the track: Firefox and WebKit. */
function playedPictures(track: MediaStreamTrack): Frames<VideoFrame> {
  const { port1, port2 } = new MessageChannel();
  const video = document.createElement("video");
  video.muted = true;
  video.playsInline = true;
  video.srcObject = new MediaStream([track]);
  let isOver = false;
  const take: VideoFrameRequestCallback = (now, { captureTime }) => {
    if (isOver) {
      return;
    }
    video.requestVideoFrameCallback(take);
    void pictureOf(video, Math.round((captureTime ?? now) * 1_000)).then((frame) => port1.postMessage(frame, [frame]));
  };
  video.requestVideoFrameCallback(take);
  // A track that ends before it plays reports its end by itself.
  video.play().catch(() => undefined);
  const stop = (): void => {
    isOver = true;
    video.srcObject = null;
    port1.close();
  };
  return { source: port2, stop };
}

/** What `video` shows, as encoders take it: WebKitGTK 2.50 makes RGBA of it, which its encoders refuse. */
async function pictureOf(video: HTMLVideoElement, timestamp: number): Promise<VideoFrame> {
  const frame = new VideoFrame(video, { timestamp });
  if (frame.format !== "RGBA") {
    return frame;
  }
  frame.close();
  const bitmap = await createImageBitmap(video);
  const copy = new VideoFrame(bitmap, { timestamp });
  bitmap.close();
  return copy;
}

/** Takes sound off an audio graph that plays to nobody. */
async function playedSound(track: MediaStreamTrack): Promise<Frames<AudioData>> {
  const { port1, port2 } = new MessageChannel();
  const [context, source] = played(track);
  await context.audioWorklet.addModule(captureUrl);
  const node = new AudioWorkletNode(context, "namecast-capture", { numberOfOutputs: 0 });
  node.port.postMessage(port1, [port1]);
  source.connect(node);
  await context.resume();
  return { source: port2, stop: () => void context.close() };
}

/** A track in an audio graph: at the rate of Opus, unless the browser converts no track, as Firefox, which encodes any rate. */
function played(track: MediaStreamTrack): [AudioContext, MediaStreamAudioSourceNode] {
  const stream = new MediaStream([track]);
  const context = new AudioContext({ latencyHint: "interactive", sampleRate: 48_000 });
  try {
    return [context, context.createMediaStreamSource(stream)];
  } catch {
    void context.close();
    const own = new AudioContext({ latencyHint: "interactive" });
    return [own, own.createMediaStreamSource(stream)];
  }
}
