/** Chromium's, in the page's thread only; it is no part of TypeScript's library. */
declare class MediaStreamTrackGenerator extends MediaStreamTrack {
  constructor(init: { kind: "video" });
  readonly writable: WritableStream<VideoFrame>;
}

/** A video track that takes decoded frames, and plays in a `<video>`. */
export interface LiveTrack {
  /** Takes frames; may be given to a worker. */
  readonly writable: WritableStream<VideoFrame>;
  /** Has the `<video>` play, should something have paused it. */
  resume(): Promise<void>;
  /** Ends it; the `<video>` is free for something else. */
  close(): void;
}

/** Returns a track that `film` plays; undefined where the browser has none. */
export function openLiveTrack(film: HTMLVideoElement): LiveTrack | undefined {
  if (!("MediaStreamTrackGenerator" in globalThis)) {
    return undefined;
  }
  const track = new MediaStreamTrackGenerator({ kind: "video" });
  film.muted = true;
  film.srcObject = new MediaStream([track]);
  // It starts with its first frame; a player that is taken off its page before has nothing to show.
  const resume = (): Promise<void> => film.play().catch(() => undefined);
  void resume();
  return {
    writable: track.writable,
    resume,
    close: () => {
      track.stop();
      film.srcObject = null;
    },
  };
}
