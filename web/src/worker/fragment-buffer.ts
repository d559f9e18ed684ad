/** Segments that wait for the browser: four seconds at eight a second. */
const MAX_WAITING = 32;
/** What is kept behind the picture, and how much more may gather before it is removed, in seconds. */
const KEPT = 5;
const REMOVED = 10;

/** What `FragmentBuffer` reports. */
export interface BufferHost {
  /** The segments of the oldest call of `append` that was not answered yet are in the buffer. */
  appended(): void;
  /** The browser cannot play them. */
  failed(reason: string): void;
}

/** Media Source Extensions in a worker: not in TypeScript's library for these. */
interface WorkerSourceBuffer extends EventTarget {
  readonly updating: boolean;
  appendBuffer(octets: Uint8Array<ArrayBuffer>): void;
  remove(start: number, end: number): void;
}
interface WorkerMediaSource extends EventTarget {
  readonly handle: Transferable;
  duration: number;
  addSourceBuffer(type: string): WorkerSourceBuffer;
}
type MediaSourceClass = (new () => WorkerMediaSource) & { readonly canConstructInDedicatedWorker?: boolean; isTypeSupported(type: string): boolean };

/** Returns what makes media sources in this worker; undefined where the browser has none here. */
export function workerMediaSource(): MediaSourceClass | undefined {
  const { MediaSource, ManagedMediaSource } = globalThis as unknown as { MediaSource?: MediaSourceClass; ManagedMediaSource?: MediaSourceClass };
  return [MediaSource, ManagedMediaSource].find((each) => each?.canConstructInDedicatedWorker === true);
}

/** Feeds a `<video>` of the page with segments from this worker, one after the other. */
export class FragmentBuffer {
  readonly #host: BufferHost;
  readonly #source: WorkerMediaSource;
  #buffer: WorkerSourceBuffer | undefined;
  #waiting: Uint8Array<ArrayBuffer>[] = [];
  #isAppending = false;
  #isClosed = false;
  /** Where the picture is, in seconds. */
  #playedTo = 0;
  #removedTo = 0;

  /** @param type of the first segments, with their codec */
  constructor(Source: MediaSourceClass, type: string, host: BufferHost) {
    this.#host = host;
    this.#source = new Source();
    this.#source.addEventListener(
      "sourceopen",
      () => {
        this.#attempt(() => {
          this.#source.duration = Infinity;
          this.#buffer = this.#source.addSourceBuffer(type);
          this.#buffer.addEventListener("updateend", () => this.#updated());
          this.#buffer.addEventListener("error", () => this.#fail("the browser cannot play its segments"));
          this.#next();
        });
      },
      { once: true },
    );
  }

  /** For the `<video>`: to be transferred once. */
  get handle(): Transferable {
    return this.#source.handle;
  }

  /** Appends segments. Returns false if too many wait: then these are not. */
  append(octets: Uint8Array<ArrayBuffer>): boolean {
    if (this.#waiting.length >= MAX_WAITING) {
      return false;
    }
    this.#waiting.push(octets);
    this.#next();
    return true;
  }

  /** The picture is at `time`, in seconds: what is far behind it is removed. */
  handlePlayed(time: number): void {
    this.#playedTo = Math.max(this.#playedTo, time);
    this.#next();
  }

  /** Appends nothing more; what is there plays to its end. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #updated(): void {
    if (this.#isAppending) {
      this.#isAppending = false;
      this.#host.appended();
    }
    this.#next();
  }

  #next(): void {
    const buffer = this.#buffer;
    if (buffer === undefined || buffer.updating || this.#isClosed) {
      return;
    }
    const [octets] = this.#waiting;
    if (this.#playedTo - this.#removedTo > KEPT + REMOVED) {
      this.#removedTo = this.#playedTo - KEPT;
      this.#attempt(() => buffer.remove(0, this.#removedTo));
    } else if (octets !== undefined) {
      this.#waiting.shift();
      this.#isAppending = true;
      this.#attempt(() => buffer.appendBuffer(octets));
    }
  }

  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  #fail(reason: string): void {
    if (!this.#isClosed) {
      this.close();
      this.#host.failed(reason);
    }
  }
}
