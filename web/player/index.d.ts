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

/** What the player does, for people: one badge and one sentence, made of what is shown, heard and measured. */
export interface PlayerState {
  /** One word, such as `live`, `paused`, `busy`, `cut`, `gone` or `refused`. */
  kind: string;
  badge: string;
  /** How the badge looks. */
  look: "live" | "past" | "wait" | "bad" | "idle";
  /** Names the measured cause where something is wrong. */
  sentence: string;
  /** Whether picture, sound or data reaches a person. */
  isPlaying: boolean;
  /** Whether the sentence stands in place of the picture, as there is none. */
  covers: boolean;
  /** What a person can do about it: forget the remembered key, allow sound, or open the page by https. */
  action: "forget" | "sound" | "https" | null;
}

/**
 * A live stream, used like `<video>`. Attributes: `src`, `autoplay`, `muted`, `controls`, `background`, `lang`.
 *
 * Events of HTMLMediaElement: `loadstart`, `loadedmetadata`, `durationchange`, `canplay`, `play`, `playing`, `pause`, `waiting`, `timeupdate`,
 * `progress`, `seeking`, `seeked`, `volumechange`, `resize`, `emptied`, `error`, `enterpictureinpicture`, `leavepictureinpicture`;
 * and of its own `qualitychange`, `latencychange`, `captionschange`, `titlechange` and `statechange`.
 */
export declare class NamecastPlayer extends HTMLElement {
  /** Address of the node's page with the name and key of the stream: `https://node.example/?name=/show&key=…`. */
  src: string;
  autoplay: boolean;
  controls: boolean;
  muted: boolean;
  /** Whether the picture is received where nobody sees it, too. */
  background: boolean;
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
  /** Title that the publisher gave the stream; null: none, or not known yet. */
  readonly streamTitle: string | null;
  readonly qualities: Quality[];
  /** A name of `qualities`, `lowest`, `highest`, or `auto`: what the connection carries. */
  quality: string;
  /** Playout target in milliseconds, 20 to 1000. */
  target: number;
  /** Whether captions have come, and whether they are shown over the picture. */
  readonly hasCaptions: boolean;
  showsCaptions: boolean;
  readonly knownKeys: { forget(name: string): void };
  readonly state: PlayerState;
  /** Joins the stream. */
  play(): Promise<void>;
  /** Ends all traffic; the last picture stays. */
  pause(): void;
  /** When the publisher's clock was at zero of `currentTime`. */
  getStartDate(): Date;
  /** The picture that is shown, in its own size, as PNG. Throws `InvalidStateError` before the first one. */
  screenshot(): Promise<Blob>;
  /** The last half minute as MP4, as it was received, where `controls` are set. Throws `InvalidStateError` where there is none. */
  clip(): Promise<Blob>;
  requestPictureInPicture(): Promise<PictureInPictureWindow>;
}

declare global {
  interface HTMLElementTagNameMap {
    "namecast-player": NamecastPlayer;
  }
}
