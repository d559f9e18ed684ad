import type { Presentation, Steer } from "../shared/messages.ts";
import type { VideoCounts } from "../shared/summary.ts";
import { avcConfiguration, withLengths } from "./annex-b.ts";
import { FragmentBuffer, workerMediaSource } from "./fragment-buffer.ts";
import { fragment, initSegment, TIMESCALE, type Sample } from "./mp4.ts";
import type { Presented, PresentedFrame } from "./presented.ts";
import type { Catalogue, FrameRecord, Rung } from "./records.ts";
import type { VideoSink } from "./video-sink.ts";

/** Span of a fragment, in milliseconds: each costs the browser as much as some pictures. */
const SPAN = 125;
/** Time before they are shown by which the browser wants pictures, in milliseconds: it decodes some ahead. */
const LEAD = 100;
/** Longest time that one picture is shown, in milliseconds; after longer pauses playback continues elsewhere. */
const LONGEST = 2_000;
/** Pictures that wait to be shown: ten seconds at 60 fps. */
const MAX_PLACED = 600;
/** Pause in the media between what does not belong together, in milliseconds. */
const GAP = 500;
/** Lateness that is left as it is, and from which on playback jumps, in milliseconds. */
const [IN_STEP, JUMP] = [12, 300];
/** Time in which a change of speed works off a lateness, in milliseconds, and the largest one. */
const SLIDE_OVER = 1_000;
const MAX_SLIDE = 0.1;

/** What `FragmentVideo` needs of the rest. Times are the worker's, in milliseconds. */
export interface FragmentHost {
  /** The rung's entry in the catalogue. */
  rung(name: string): Rung | undefined;
  decoded(position: number, took: number): void;
  rendered(position: number): void;
  /** A picture was there for the browser `milliseconds` after it had to be; negative: before. */
  ready(milliseconds: number): void;
  /** What comes next must stand alone. */
  decoderLost(reason: string): void;
  steer(steer: Steer): void;
  /** The browser cannot play segments after all. */
  failed(reason: string): void;
}

interface Placed extends PresentedFrame {
  /** Where it is in the media, in milliseconds. */
  at: number;
}

/** A segment on its way into the buffer. */
interface Appending {
  /** Its oldest picture; an initialisation segment has none. */
  first?: Placed;
  /** Playback goes there once it is in the buffer: browsers go nowhere else. */
  destination?: Placed;
}

/** Returns the type of the segments that a stream of this catalogue can be played by; undefined: by none. */
export function fragmentType(catalogue: Catalogue | undefined): string | undefined {
  const video = catalogue?.streams.find(({ kind }) => kind === "video");
  const [first] = video?.rungs ?? [];
  // Reordered pictures would need decoding times, which only those after them tell.
  const isSimple = video?.codec === "h264" && video.rungs.every(({ reorder_delay, codec_string }) => !reorder_delay && codec_string?.startsWith("avc1") === true);
  const type = `video/mp4; codecs="${first?.codec_string ?? ""}"`;
  return isSimple && workerMediaSource()?.isTypeSupported(type) === true ? type : undefined;
}

/**
 * Plays pictures by the browser's own means: packs them into fragments of MP4 for a `<video>`, whose place and speed are steered so that
 * each is shown when it is due. Takes less processor time than decoding here, and more delay.
 */
export class FragmentVideo implements VideoSink {
  readonly #host: FragmentHost;
  readonly #buffer: FragmentBuffer;
  /** Pictures for the next fragment. */
  #pending: Placed[] = [];
  #octets: Uint8Array[] = [];
  /** Pictures in fragments that were not shown yet, in order. */
  #placed: Placed[] = [];
  /** Segments that are not in the buffer yet. */
  #appending: Appending[] = [];
  /** Capture that is zero of the media, in milliseconds since 1970. */
  #base = 0;
  /** Where the newest picture is in the media, in milliseconds; undefined: the next one does not follow it. */
  #newestAt: number | undefined;
  /** End of what is in the media, in milliseconds. */
  #end = 0;
  #avcC: Uint8Array | undefined;
  #rung = "";
  #waitForKey = true;
  /** The next fragment does not follow what plays: playback has to go there. */
  #isElsewhere = true;
  #visible: boolean;
  #fragments = 0;
  #steers = 0;
  #rate = 1;
  readonly #counts = { received: 0, undecodable: 0, decoderErrors: 0, skipped: 0 };

  readonly presented: Presented;
  keyFramesOnly = false;
  /** The browser shows all pictures, as it shows those of films. */
  minInterval = 0;

  /** @param type what `fragmentType` returned */
  constructor(type: string, visible: boolean, presented: Presented, host: FragmentHost) {
    const Source = workerMediaSource();
    if (Source === undefined) {
      throw new Error("this browser takes no segments from a worker");
    }
    this.#visible = visible;
    this.#host = host;
    this.presented = presented;
    this.#buffer = new FragmentBuffer(Source, type, { appended: () => this.#appended(), failed: (reason) => host.failed(reason) });
  }

  /** For the `<video>`: to be transferred once. */
  get handle(): Transferable {
    return this.#buffer.handle;
  }

  get interval(): number {
    const { num, den } = this.#host.rung(this.#rung)?.rate ?? { num: 0, den: 1 };
    return num > 0 ? (1_000 * den) / num : 0;
  }

  get buffered(): number {
    const newest = this.#pending.at(-1) ?? this.#placed.at(-1);
    return Math.max(0, (newest?.dueAt ?? 0) - performance.now());
  }

  handleFrame(record: FrameRecord): void {
    this.#counts.received += 1;
    if (!this.#visible || !this.#isUsable(record)) {
      return;
    }
    const octets = withLengths(record.payload);
    const at = this.#place(record);
    const first = this.#pending[0];
    this.#pending.push({ record: { ...record, payload: EMPTY }, dueAt: record.dueAt, cameLate: performance.now() > record.dueAt, took: 0, decodedAt: performance.now(), at });
    this.#octets.push(octets);
    // The last one waits for the next, which tells how long it is shown.
    if (first !== undefined && (this.#isElsewhere || at - first.at >= SPAN)) {
      this.#flush();
    }
  }

  setVisible(visible: boolean): void {
    if (visible !== this.#visible) {
      this.#visible = visible;
      this.presented.interrupt();
      this.#forget();
    }
  }

  discontinue(jump: boolean): void {
    this.#waitForKey = true;
    if (jump) {
      this.presented.interrupt();
      this.#forget();
    }
  }

  shift(milliseconds: number): void {
    for (const frame of [...this.#pending, ...this.#placed]) {
      frame.dueAt += milliseconds;
    }
  }

  breakDecoder(): void {
    this.#append(new Uint8Array(64).fill(0xa5), {});
  }

  decoderAge(): number {
    return 0;
  }

  summary(): VideoCounts {
    return { ...this.#counts, ...this.presented.counts, late: 0, overtaken: 0, queued: 0 };
  }

  close(): void {
    this.#buffer.close();
  }

  /** The page's `<video>` has presented a picture. */
  handlePresented({ number, at, time, isHeld }: Presentation): void {
    if (number !== this.#steers) {
      return;
    }
    const shownAt = at - performance.timeOrigin;
    // Times of fragments are rounded to ticks.
    const reached = time * 1_000 + 1;
    const next = this.#placed.findIndex((frame) => frame.at > reached);
    const shown = this.#placed.splice(0, next < 0 ? this.#placed.length : next);
    const newest = shown.at(-1);
    if (newest === undefined) {
      return;
    }
    this.#buffer.handlePlayed(time);
    for (const frame of shown.filter(({ record }) => !record.decodeOnly)) {
      this.#host.rendered(frame.record.position);
      this.presented.handleShown(frame, shownAt - (newest.at - frame.at));
    }
    if (!isHeld) {
      this.#steer(shownAt - newest.dueAt, newest);
    }
  }

  /** Whether the frame can be decoded after what is there. */
  #isUsable({ key, rung, payload, capturedAt }: FrameRecord): boolean {
    if (this.keyFramesOnly && !key) {
      this.#counts.skipped += 1;
      this.#waitForKey = true;
      return false;
    }
    if (key) {
      this.#waitForKey = !this.#begin(rung, payload, capturedAt);
    }
    this.#counts.undecodable += this.#waitForKey ? 1 : 0;
    return !this.#waitForKey;
  }

  /** Makes the browser ready for a key frame. */
  #begin(rung: string, payload: Uint8Array, capturedAt: number): boolean {
    let avcC: Uint8Array;
    try {
      avcC = avcConfiguration(payload);
    } catch {
      return false;
    }
    const { width = 0, height = 0 } = this.#host.rung(rung) ?? {};
    const isSame = this.#rung === rung && this.#avcC?.every((octet, index) => octet === avcC[index]) === true;
    if (!isSame) {
      const at = capturedAt - this.#base;
      this.#flush(this.#follows(at) ? at : (this.#newestAt ?? 0) + this.interval);
      [this.#rung, this.#avcC] = [rung, avcC];
      this.#append(initSegment({ width, height, avcC }), {});
    }
    return true;
  }

  /** Returns where the frame is in the media, in milliseconds. */
  #place({ capturedAt }: FrameRecord): number {
    let at = capturedAt - this.#base;
    if (!this.#follows(at)) {
      this.#flush((this.#newestAt ?? 0) + this.interval);
      this.#isElsewhere = true;
      at = this.#end + GAP;
      this.#base = capturedAt - at;
    }
    this.#newestAt = at;
    return at;
  }

  #follows(at: number): boolean {
    const newest = this.#newestAt;
    return newest !== undefined && at > newest && at - newest <= LONGEST;
  }

  /** Makes a fragment of all pictures that wait, the last of which is shown until `end`; without `end`, of all but the last. */
  #flush(end?: number): void {
    const count = end === undefined ? this.#pending.length - 1 : this.#pending.length;
    const frames = this.#pending.splice(0, Math.max(0, count));
    const octets = this.#octets.splice(0, Math.max(0, count));
    const [first] = frames;
    if (first === undefined) {
      return;
    }
    const until = this.#pending[0]?.at ?? Math.max(end ?? 0, (frames.at(-1) ?? first).at + 1);
    const ticks = [...frames.map(({ at }) => at), until].map((at) => Math.round((at * TIMESCALE) / 1_000));
    const samples = frames.map(({ record }, index): Sample => ({ key: record.key, octets: octets[index] ?? EMPTY, duration: (ticks[index + 1] ?? 0) - (ticks[index] ?? 0) }));
    this.#end = until;
    this.#fragments += 1;
    const destination = this.#isElsewhere ? destinationOf(frames) : undefined;
    if (!this.#append(fragment(this.#fragments, ticks[0] ?? 0, samples), { first, ...(destination === undefined ? {} : { destination }) })) {
      return;
    }
    this.#placed.push(...frames);
    this.#placed.splice(0, Math.max(0, this.#placed.length - MAX_PLACED));
    this.#isElsewhere &&= destination === undefined;
  }

  #append(octets: Uint8Array<ArrayBuffer>, segment: Appending): boolean {
    if (this.#buffer.append(octets)) {
      this.#appending.push(segment);
      return true;
    }
    this.#forget();
    this.#rung = "";
    this.#host.decoderLost("the browser takes no more segments");
    return false;
  }

  #appended(): void {
    const { first, destination } = this.#appending.shift() ?? {};
    if (destination !== undefined) {
      this.#send({ to: destination.at, at: destination.dueAt, rate: 1 });
    }
    if (first === undefined) {
      return;
    }
    this.#host.decoded(first.record.position, 0);
    if (!first.cameLate && !first.record.catchingUp) {
      this.#host.ready(performance.now() + LEAD - first.dueAt);
    }
  }

  /** Brings playback in step, as the picture `newest` was shown `late` after it was due. */
  #steer(late: number, newest: Placed): void {
    const now = performance.now();
    if (late > JUMP) {
      const to = Math.min(newest.at + late, (this.#placed.at(-1) ?? newest).at);
      this.#send({ to, at: now, rate: 1 });
    } else if (late < -JUMP) {
      this.#send({ at: now - late, rate: 1 });
    } else {
      const slide = Math.abs(late) < IN_STEP ? 0 : Math.max(-MAX_SLIDE, Math.min(MAX_SLIDE, late / SLIDE_OVER));
      const rate = 1 + Math.round(slide * 100) / 100;
      if (rate !== this.#rate) {
        this.#send({ at: now, rate });
      }
    }
  }

  /** `at` is the worker's, `to` in milliseconds of the media. */
  #send({ to, at, rate }: { to?: number; at: number; rate: number }): void {
    this.#rate = rate;
    this.#steers += 1;
    if (to !== undefined) {
      this.#placed = this.#placed.filter((frame) => frame.at >= to);
    }
    this.#host.steer({ number: this.#steers, at: performance.timeOrigin + at, rate, ...(to === undefined ? {} : { to: to / 1_000 }) });
  }

  /** What waits is not shown any more. */
  #forget(): void {
    this.#pending = [];
    this.#octets = [];
    this.#placed = [];
    this.#appending.forEach((segment) => delete segment.destination);
    this.#newestAt = undefined;
    this.#waitForKey = true;
    this.#isElsewhere = true;
  }
}

/** Returns to which of these pictures playback goes: to the first, or to the one that is due now if that is later. */
function destinationOf(frames: readonly Placed[]): Placed | undefined {
  const now = performance.now();
  const shown = frames.filter(({ record }) => !record.decodeOnly);
  return shown.findLast(({ dueAt }) => dueAt <= now) ?? shown[0];
}

const EMPTY = new Uint8Array();
