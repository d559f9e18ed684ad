/** Loudness from which on a level shows, and full scale, in decibels. */
const QUIET = -60;
const LOUD = -6;

/** Shows how loud a microphone is. */
export class Level {
  readonly #meter: HTMLMeterElement;
  #context: AudioContext | undefined;

  constructor(meter: HTMLMeterElement) {
    this.#meter = meter;
  }

  /** Follows the sound of `stream`, or shows nothing. */
  follow(stream: MediaStream | undefined): void {
    void this.#context?.close();
    this.#context = undefined;
    this.#meter.hidden = true;
    const [track] = stream?.getAudioTracks() ?? [];
    if (track === undefined) {
      return;
    }
    const context = new AudioContext();
    this.#context = context;
    const analyser = new AnalyserNode(context, { fftSize: 1_024 });
    context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    this.#meter.hidden = false;
    const samples = new Float32Array(analyser.fftSize);
    const show = (): void => {
      if (this.#context === context) {
        analyser.getFloatTimeDomainData(samples);
        this.#meter.value = levelOf(samples);
        requestAnimationFrame(show);
      }
    };
    show();
  }
}

/** How loud samples are, from 0 to 1, as ears have it: in decibels. */
export function levelOf(samples: Float32Array): number {
  const square = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
  const decibels = 10 * Math.log10(square);
  return Math.min(1, Math.max(0, (decibels - QUIET) / (LOUD - QUIET)));
}
