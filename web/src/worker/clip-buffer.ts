import { message } from "./link.ts";
import type { Report } from "../shared/messages.ts";
import type { Catalogue, DiscontinuityRecord, FrameRecord, Stream } from "./records.ts";

/** Length of a clip, in milliseconds. */
const SPAN = 30_000;
/** Most octets that are kept: 30 s at 10 Mbit/s. */
const MAX_OCTETS = 40_000_000;

/** One encoded picture or packet of sound. */
export interface Kept {
  rung: string;
  key: boolean;
  /** When it was captured, in milliseconds since 1970: it is shown or heard in this order. */
  capturedAt: number;
  payload: Uint8Array<ArrayBuffer>;
}

/** What a clip is made of: pictures of one quality from a key frame on, and the sound beside them. */
export interface ClipSource {
  video: readonly Kept[];
  audio: readonly Kept[];
}

/** The last half minute of a stream, encoded as it came. */
export class ClipBuffer {
  #video: Kept[] = [];
  #audio: Kept[] = [];
  #octets = 0;

  /** Takes a picture or sound. */
  handle({ stream, rung, key, capturedAt, payload }: FrameRecord): void {
    if (stream === "data") {
      return;
    }
    // The payload is a view of a batch that holds more.
    const kept: Kept = { rung, key, capturedAt, payload: payload.slice() };
    if (stream === "video") {
      // Another quality has another size, which a file does not change in its middle.
      if (this.#video.at(-1)?.rung !== rung) {
        this.#drop("video");
      }
      if (this.#video.length === 0 && !key) {
        return;
      }
      this.#video.push(kept);
    } else {
      this.#audio.push(kept);
    }
    this.#octets += payload.length;
    this.#trim(capturedAt);
  }

  /** Takes a gap. Behind a jump nothing of before belongs to a clip. */
  discontinue({ jump }: DiscontinuityRecord): void {
    if (jump) {
      this.#drop("video");
      this.#drop("audio");
    }
  }

  /** The last half minute. */
  get source(): ClipSource {
    const begin = this.#video[0]?.capturedAt ?? 0;
    return { video: this.#video, audio: this.#audio.filter(({ capturedAt }) => capturedAt >= begin) };
  }

  /** Makes a clip: an MP4 file, or why there is none. What makes it is loaded then. */
  async clip(catalogue: Catalogue | undefined): Promise<Extract<Report, { type: "clip" | "noClip" }>> {
    const format = (kind: Stream, rung: string | undefined) => {
      const stream = catalogue?.streams.find((each) => each.kind === kind);
      const found = stream?.rungs.find(({ name }) => name === rung);
      return stream === undefined || found === undefined ? undefined : { codec: stream.codec, rung: found };
    };
    try {
      const { makeClip } = await import("./clip.ts");
      const { source } = this;
      const [video, audio] = [format("video", source.video[0]?.rung), format("audio", source.audio[0]?.rung)];
      return { type: "clip", file: makeClip(source, video, audio) };
    } catch (error) {
      return { type: "noClip", why: message(error) };
    }
  }

  #drop(stream: "video" | "audio"): void {
    const dropped = stream === "video" ? this.#video : this.#audio;
    this.#octets -= dropped.reduce((sum, { payload }) => sum + payload.length, 0);
    dropped.length = 0;
  }

  /** Drops what is older than a clip: whole groups of pictures, and the sound before them. */
  #trim(now: number): void {
    for (;;) {
      const next = this.#video.findIndex(({ key }, index) => index > 0 && key);
      const isOld = next > 0 && (this.#video[next] as Kept).capturedAt <= now - SPAN;
      if (!isOld && this.#octets <= MAX_OCTETS) {
        break;
      }
      if (next > 0) {
        this.#remove(this.#video, next);
      } else {
        // One group of pictures is larger than all that is kept: nothing before its end can be shown.
        this.#drop("video");
        this.#drop("audio");
        return;
      }
    }
    const begin = this.#video[0]?.capturedAt ?? now - SPAN;
    const first = this.#audio.findIndex(({ capturedAt }) => capturedAt >= begin);
    this.#remove(this.#audio, first < 0 ? this.#audio.length : first);
  }

  #remove(from: Kept[], count: number): void {
    for (const { payload } of from.splice(0, count)) {
      this.#octets -= payload.length;
    }
  }
}
