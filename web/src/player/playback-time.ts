import type { Command } from "../shared/messages.ts";
import type { Position, Summary } from "../shared/summary.ts";
import { ranges } from "./ranges.ts";
import { behind, meant, reach, stepped } from "./timeline.ts";

/** Time behind the newest segment in which a stream of segments counts as live, in seconds. */
const SEGMENTS_EDGE = 15;

/** Time between two events that tell how far one can go, in milliseconds: controls are laid out anew with each. */
const PROGRESS_INTERVAL = 1_000;

/** What `PlaybackTime` needs of the player. */
export interface TimeHost {
  summary(): Summary | undefined;
  /** What plays segments, which have a time of their own; undefined: frames are played. */
  segments(): HTMLVideoElement | undefined;
  send(command: Command): void;
  emit(name: string): void;
}

/** Where in time a player is and where it can go, in the words of HTMLMediaElement: seconds since the start date. */
export class PlaybackTime {
  readonly #host: TimeHost;
  /** Time zero, in milliseconds since 1970 by the publisher's clock. */
  #origin: number | undefined;
  #liveWindow = 0;
  #seeks = 0;
  #wish: number | null = null;
  /** When that was told last, by the publisher's clock. */
  #progressAt = 0;
  /** Where playback begins or goes on; null: live. */
  #resumeAt: number | null = null;

  constructor(host: TimeHost) {
    this.#host = host;
  }

  get current(): number {
    const segments = this.#host.segments();
    if (segments !== undefined) {
      return segments.currentTime;
    }
    const position = this.#position;
    return position === undefined || this.#origin === undefined ? 0 : (position.now - behind(position) - this.#origin) / 1_000;
  }

  set current(time: number) {
    const [segments, position] = [this.#host.segments(), this.#position];
    if (segments !== undefined) {
      segments.currentTime = time;
    } else if (position !== undefined && this.#origin !== undefined) {
      this.seek(meant(position.now - this.#origin - time * 1_000, position));
    }
  }

  get startDate(): Date {
    return new Date(this.#origin ?? NaN);
  }

  get seekable(): TimeRanges {
    const [segments, position] = [this.#host.segments(), this.#position];
    if (segments !== undefined) {
      return segments.seekable;
    }
    if (position === undefined || this.#origin === undefined) {
      return ranges([]);
    }
    const end = (position.now - this.#origin) / 1_000;
    return ranges([[end - reach(position) / 1_000, end]]);
  }

  /** Infinite if one can go back, as media-chrome has it. */
  get liveWindow(): number {
    const { seekable } = this;
    return seekable.length > 0 && seekable.end(0) > seekable.start(0) ? Infinity : 0;
  }

  /** From where on it is live, as media-chrome has it. */
  get liveEdgeStart(): number {
    const { seekable } = this;
    const end = seekable.length === 0 ? NaN : seekable.end(seekable.length - 1);
    if (this.#host.segments() !== undefined) {
      return end - SEGMENTS_EDGE;
    }
    return this.#position?.live === false ? end : Math.min(end, this.current);
  }

  /** Goes to a time of capture (publisher's clock, milliseconds since 1970); null: to live. Returns the number of the wish. */
  seek(to: number | null): number {
    this.#seeks += 1;
    this.#wish = to;
    this.#host.send({ type: "seek", number: this.#seeks, to });
    this.#host.emit("seeking");
    return this.#seeks;
  }

  /** Moves playback by `seconds` from where it is, or is going to, as far as the stream is kept. */
  step(seconds: number): void {
    const [segments, position] = [this.#host.segments(), this.#position];
    if (segments !== undefined) {
      segments.currentTime += seconds;
    } else if (position !== undefined && (reach(position) > 0 || !position.live)) {
      const goes = position.answers < this.#seeks;
      this.seek(stepped(seconds, goes ? { ...position, live: this.#wish === null, seeking: this.#wish } : position));
    }
  }

  /** Has playback begin at this time; null: live. */
  beginAt(time: number | null): void {
    this.#resumeAt = time;
  }

  /** Playback begins, or goes on where it was paused in the past. */
  resume(): void {
    if (this.#resumeAt !== null) {
      this.seek(this.#resumeAt);
      this.#resumeAt = null;
    }
  }

  pause(): void {
    const position = this.#position;
    this.#resumeAt = position?.live === false ? position.shown : null;
  }

  /** Another stream is to be played. */
  forget(): void {
    this.#origin = undefined;
    this.#resumeAt = null;
  }

  /** Takes where playback is, and was before. The first picture that plays (`isPlaying`) sets the start date. */
  handle(position: Position, before: Position | undefined, isPlaying: boolean): void {
    if (this.#host.segments() === undefined && isPlaying) {
      this.#origin ??= position.since ?? position.now;
    }
    if (before !== undefined && before.seeking !== null && position.seeking === null) {
      this.#host.emit("seeked");
    }
    if (before !== undefined) {
      this.#host.emit("timeupdate");
    }
    if (before !== undefined && Math.abs(position.now - this.#progressAt) >= PROGRESS_INTERVAL) {
      this.#progressAt = position.now;
      this.#host.emit("progress");
    }
    if (this.liveWindow !== this.#liveWindow) {
      this.#liveWindow = this.liveWindow;
      this.#host.emit("targetlivewindowchange");
    }
  }

  get #position(): Position | undefined {
    return this.#host.summary()?.position;
  }
}
