import type { FrameRecord } from "./records.ts";

/**
 * The encoded frames since the newest key frame, kept while nobody looks.
 *
 * Decoding costs nothing then, and when somebody looks again the picture is back at once instead of at the next key
 * frame. Bounded: a stream whose key frames are too far apart is forgotten and waits for the next one.
 */
export class RecentFrames {
  readonly #maxFrames: number;
  readonly #maxBytes: number;
  #frames: FrameRecord[] = [];
  #bytes = 0;

  constructor(maxFrames: number, maxBytes: number) {
    this.#maxFrames = maxFrames;
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#frames.length;
  }

  /** Keeps a frame; a key frame replaces what came before it. */
  push(frame: FrameRecord): void {
    if (frame.key) {
      this.clear();
    } else if (this.#frames.length === 0) {
      return;
    }
    if (this.#frames.length >= this.#maxFrames || this.#bytes + frame.payload.length > this.#maxBytes) {
      this.clear();
      return;
    }
    // A copy: the payload is a view of a batch that would be kept alive whole.
    this.#frames.push({ ...frame, payload: frame.payload.slice() });
    this.#bytes += frame.payload.length;
  }

  /** Gives up what is kept, in order, starting with a key frame. */
  take(): FrameRecord[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return frames;
  }

  clear(): void {
    this.take();
  }
}
