/** What went wrong, as MediaError has it: 2 network, 3 decoding or signature, 4 cannot be played here. */
export interface PlayerError {
  code: number;
  message: string;
}

/** One quality of the picture. */
export interface Quality {
  /** What `quality` takes. */
  name: string;
  /** Words for a menu, such as `720p`. */
  label: string;
}

/** Detail of the event `notice`: a sentence for people, or an empty text where it is over. `preventDefault()` keeps it off the picture. */
export interface Notice {
  topic: string;
  text: string;
  /** The stream whose remembered key is in the way: `knownKeys.forget(name)` forgets it. */
  forget: string | undefined;
}

/**
 * A live stream, used like `<video>`. Attributes: `src`, `autoplay`, `muted`, `controls`.
 *
 * Events of HTMLMediaElement: `loadstart`, `loadedmetadata`, `durationchange`, `canplay`, `play`, `playing`, `pause`, `waiting`, `timeupdate`,
 * `progress`, `seeking`, `seeked`, `volumechange`, `resize`, `emptied`, `error`, `enterpictureinpicture`, `leavepictureinpicture`;
 * and of its own `qualitychange`, `captionschange` and `notice`.
 */
export declare class NamecastPlayer extends HTMLElement {
  /** Address of the node's page with the name and key of the stream: `https://node.example/?name=/show&key=…`. */
  src: string;
  autoplay: boolean;
  controls: boolean;
  muted: boolean;
  /** 0 to 1. */
  volume: number;
  /** Seconds since `getStartDate()`. */
  currentTime: number;
  readonly seekable: TimeRanges;
  readonly buffered: TimeRanges;
  /** Infinite; NaN before the first picture. */
  readonly duration: number;
  readonly paused: boolean;
  readonly ended: boolean;
  readonly readyState: number;
  readonly error: PlayerError | null;
  readonly videoWidth: number;
  readonly videoHeight: number;
  readonly qualities: Quality[];
  /** A name of `qualities`, `lowest`, `highest`, or `auto`: what the connection carries. */
  quality: string;
  /** Whether captions have come, and whether they are shown over the picture. */
  readonly hasCaptions: boolean;
  showsCaptions: boolean;
  readonly knownKeys: { forget(name: string): void };
  /** Joins the stream. */
  play(): Promise<void>;
  /** Ends all traffic; the last picture stays. */
  pause(): void;
  /** When the publisher's clock was at zero of `currentTime`. */
  getStartDate(): Date;
  requestPictureInPicture(): Promise<PictureInPictureWindow>;
}

declare global {
  interface HTMLElementTagNameMap {
    "namecast-player": NamecastPlayer;
  }
}
