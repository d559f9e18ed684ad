import type { OutputClock, PlayerCommand, PlayerReport } from "../shared/sound.ts";
import { Playout } from "./playout.ts";

/** How often the worker hears how it goes, in quanta of 128 samples: about four times a second. */
const REPORT_EVERY = 94;

/** Plays PCM that the worker sends, at the times that the worker says, by the clock that the page sends. */
class Player extends AudioWorkletProcessor {
  readonly #playout = new Playout(sampleRate);
  #clock: OutputClock | undefined;
  #worker: MessagePort | undefined;
  #quanta = 0;

  constructor() {
    super();
    this.port.onmessage = (message: MessageEvent<OutputClock | { type: "worker"; port: MessagePort }>) => {
      if (message.data.type === "clock") {
        this.#clock = message.data;
      } else {
        this.#listenTo(message.data.port);
      }
    };
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const output = outputs[0];
    if (this.#clock !== undefined && output !== undefined) {
      const heardAt = this.#clock.wall + (currentTime - this.#clock.context) * 1_000;
      this.#playout.render(heardAt, output);
    }
    this.#quanta += 1;
    if (this.#quanta % REPORT_EVERY === 0) {
      this.#worker?.postMessage(this.#playout.report() satisfies PlayerReport);
    }
    return true;
  }

  #listenTo(port: MessagePort): void {
    this.#worker = port;
    port.onmessage = (message: MessageEvent<PlayerCommand>) => {
      const command = message.data;
      switch (command.type) {
        case "pcm":
          this.#playout.push(command.at, command.rate, command.channels);
          break;
        case "shift":
          this.#playout.shift(command.milliseconds);
          break;
        case "clear":
          this.#playout.clear();
          break;
      }
    };
  }
}

registerProcessor("namecast-player", Player);
