// Runs in the audio thread of a measurement: reports when each beep of the test tone begins, in the context's time.

const LOUD = 0.05;
/** Silence that must pass before another onset counts, in seconds. */
const APART = 0.5;

class BeepDetector extends AudioWorkletProcessor {
  #last = -1;

  process(inputs) {
    const samples = inputs[0]?.[0] ?? [];
    const onset = samples.findIndex((sample) => Math.abs(sample) > LOUD);
    if (onset >= 0) {
      const at = currentTime + onset / sampleRate;
      if (at - this.#last > APART) {
        this.port.postMessage(at);
      }
      this.#last = at;
    }
    return true;
  }
}

registerProcessor("beep-detector", BeepDetector);
