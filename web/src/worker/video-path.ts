import type { Presentation, Steer } from "../shared/messages.ts";
import { fragmentType, FragmentVideo } from "./fragment-video.ts";
import { Presented } from "./presented.ts";
import type { Catalogue } from "./records.ts";
import type { Screen } from "./screen.ts";
import type { VideoSink } from "./video-sink.ts";
import { Video, type VideoHost } from "./video.ts";

/** Playout target from which on the browser has time to play segments, in milliseconds: that of *Smooth*. */
export const SEGMENTS_TARGET = 400;

/** Time before they are shown by which pictures are requested from the core, in milliseconds: where the player decodes, and for segments. */
const [DECODE_LEAD, SEGMENTS_LEAD] = [40, 300];

/** What `VideoPath` needs of the rest. */
export interface VideoPathHost extends VideoHost {
  /** The page's `<video>` plays this from now on; undefined: the screen is shown again. */
  sourced(handle: Transferable | undefined): void;
  steer(steer: Steer): void;
  /** Another path begins: it wants pictures `lead` milliseconds before they are shown, the first of which stands alone. */
  changed(lead: number, needsKey: boolean): void;
  step(text: string): void;
}

/** How the picture is shown: decoded here, or by the browser from segments where the target leaves time for them. */
export class VideoPath {
  readonly #host: VideoPathHost;
  readonly #screen: Screen;
  readonly #presented: Presented;
  #visible: boolean;
  /** Whether the page has a `<video>` for segments, and they were not refused. */
  #takesSegments: boolean;
  #sink: VideoSink;

  constructor(screen: Screen, visible: boolean, takesSegments: boolean, host: VideoPathHost) {
    this.#host = host;
    this.#screen = screen;
    this.#visible = visible;
    this.#takesSegments = takesSegments;
    this.#presented = new Presented((rung) => (host.rung(rung)?.reorder_delay ?? 0) / 1_000);
    this.#sink = new Video(screen, visible, this.#presented, host);
  }

  /** What takes the frames. */
  get sink(): VideoSink {
    return this.#sink;
  }

  setVisible(visible: boolean): void {
    this.#visible = visible;
    this.#sink.setVisible(visible);
  }

  /** Chooses the path for a stream that is played with this target, in milliseconds. */
  choose(target: number, catalogue: Catalogue | undefined): void {
    const type = this.#takesSegments && target >= SEGMENTS_TARGET ? fragmentType(catalogue) : undefined;
    if (this.#sink instanceof FragmentVideo !== (type !== undefined)) {
      this.#use(type);
    }
  }

  /** The page's `<video>` has presented a picture of the segments. */
  handlePresented(presentation: Presentation): void {
    if (this.#sink instanceof FragmentVideo) {
      this.#sink.handlePresented(presentation);
    }
  }

  #use(type: string | undefined): void {
    const [host, before] = [this.#host, this.#sink];
    before.close();
    this.#presented.interrupt();
    if (type === undefined) {
      host.sourced(undefined);
      this.#sink = new Video(this.#screen, this.#visible, this.#presented, host);
    } else {
      const sink = new FragmentVideo(type, this.#visible, this.#presented, { ...host, failed: (reason) => this.#refuse(reason) });
      host.sourced(sink.handle);
      this.#sink = sink;
    }
    [this.#sink.keyFramesOnly, this.#sink.minInterval] = [before.keyFramesOnly, before.minInterval];
    host.step(type === undefined ? "Pictures are decoded by the player" : "Pictures are played as segments by the browser");
    host.changed(type === undefined ? DECODE_LEAD : SEGMENTS_LEAD, before.summary().received > 0);
  }

  #refuse(reason: string): void {
    this.#host.step(`Segments are not played: ${reason}`);
    this.#takesSegments = false;
    this.#use(undefined);
  }
}
