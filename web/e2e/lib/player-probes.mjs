// Functions that run in a page with a player, and measure or disturb it.

/** Makes each picture come out of the browser's video decoder `delay` milliseconds later, in the page's workers. An init script. */
export function lateDecoder(delay) {
  const patch = `const Browser = self.VideoDecoder;
    self.VideoDecoder = class extends Browser {
      constructor({ output, error }) {
        super({ output: (image) => setTimeout(output, ${delay}, image), error });
      }
    };`;
  const url = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const Browser = globalThis.Worker;
  globalThis.Worker = class extends Browser {
    constructor(address, settings) {
      super(url(`import ${JSON.stringify(url(patch))}; import ${JSON.stringify(new URL(address, document.baseURI).href)};`), settings);
    }
  };
}

/** Gathers when pictures are presented in `globalThis.pictures`: of a `<video>` by its callback, of a canvas from the player. */
export function watchPictures() {
  const video = [...document.querySelectorAll("video")].find((each) => !each.hidden);
  globalThis.pictures = [];
  if (video === undefined) {
    document.getElementById("player").addEventListener("report", ({ detail }) => {
      if (detail.type === "shown") {
        globalThis.pictures.push(...detail.shown.map(({ shownAt }) => shownAt - performance.timeOrigin));
      }
    });
    return;
  }
  const note = (now) => {
    globalThis.pictures.push(now);
    video.requestVideoFrameCallback(note);
  };
  video.requestVideoFrameCallback(note);
}

/** Measures the share of silence of the page's player, whose stream must be a steady tone, as `globalThis.silence.share()`. */
export function watchSound() {
  const { context, node } = globalThis.namecast.sound;
  // Each channel's zero crossings are shorter than this: 5 ms.
  const least = Math.round(context.sampleRate * 0.005);
  const processor = context.createScriptProcessor(4096, 1, 1);
  let [silent, all, run] = [0, 0, 0];
  processor.onaudioprocess = ({ inputBuffer }) => {
    for (const sample of inputBuffer.getChannelData(0)) {
      run = Math.abs(sample) < 1e-4 ? run + 1 : 0;
      silent += run === least ? least : run > least ? 1 : 0;
      all += 1;
    }
  };
  node.connect(processor);
  processor.connect(context.destination);
  globalThis.silence = { share: () => (all === 0 ? null : (100 * silent) / all) };
}
