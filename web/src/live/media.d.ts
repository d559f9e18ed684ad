/** Captured pictures or sound as a stream (mediacapture-transform), which TypeScript's library lacks. */
declare class MediaStreamTrackProcessor<T extends VideoFrame | AudioData> {
  constructor(init: { track: MediaStreamTrack; maxBufferSize?: number });
  readonly readable: ReadableStream<T>;
}
