/** Chromium's, in the page's thread only; it is no part of TypeScript's library. */
declare class MediaStreamTrackGenerator extends MediaStreamTrack {
  constructor(init: { kind: "video" });
  readonly writable: WritableStream<VideoFrame>;
}

/** A video track that takes decoded frames, and plays in a `<video>`. */
export interface LiveTrack {
  /** Takes frames; may be given to a worker. */
  readonly writable: WritableStream<VideoFrame>;
  /** Has the `<video>` play the track, also after something paused it. */
  play(): void;
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
  let isOpen = true;
  const play = (): void => {
    if (isOpen) {
      film.srcObject ??= new MediaStream([track]);
      // It starts with its first frame; a player that is taken off its page before has nothing to show.
      film.play().catch(() => undefined);
    }
  };
  // A `<video>` without a frame would delay the page's event `load`, for ever where nothing comes.
  if (document.readyState === "complete") {
    play();
  } else {
    addEventListener("load", play, { once: true });
  }
  return {
    writable: track.writable,
    play,
    close: () => {
      isOpen = false;
      track.stop();
      film.srcObject = null;
    },
  };
}
