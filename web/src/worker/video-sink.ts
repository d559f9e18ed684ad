import type { VideoCounts } from "../shared/summary.ts";
import type { Presented } from "./presented.ts";
import type { FrameRecord } from "./records.ts";

/** Takes encoded frames, and shows each at its time: decoded here, or by the browser from segments. Times are the worker's, in milliseconds. */
export interface VideoSink {
  /** What was shown. */
  readonly presented: Presented;
  /** Time between two pictures. */
  readonly interval: number;
  /** How long what is here would last. */
  readonly buffered: number;
  /** Whether all frames but key frames are left out, as the machine has no time. */
  keyFramesOnly: boolean;
  /** Least time between two pictures. */
  minInterval: number;

  handleFrame(record: FrameRecord): void;
  /** Stops or resumes showing. While nobody looks nothing is decoded; afterwards the next key frame is. */
  setVisible(visible: boolean): void;
  /** The stream goes on somewhere else, perhaps with lower positions; `jump`: at another time. */
  discontinue(jump: boolean): void;
  /** The playout target moved by so much, and all that is not shown yet with it. */
  shift(milliseconds: number): void;
  /** Gives the decoder something it cannot decode. */
  breakDecoder(): void;
  /** Age of the oldest frame in the decoder. */
  decoderAge(now: number): number;
  summary(): VideoCounts;
  /** Stops; the picture on the screen stays. */
  close(): void;
}
