// A page that goes live.

import { TIMEOUT } from "./browser.mjs";
import { CLOCK_PICTURE } from "./clock-picture.mjs";

/** Script that has a tab draw its camera's pictures itself, with the time of capture burned in. The tab has to be seen, or they stand still. */
export const CLOCK_CAMERA = `(() => {
  ${CLOCK_PICTURE}
  navigator.mediaDevices.getUserMedia = async ({ video, audio }) => {
    const tracks = [];
    if (video) {
      const canvas = clockCanvas();
      let number = 0;
      const draw = () => {
        drawClock(canvas, performance.timeOrigin + performance.now(), number++);
        requestAnimationFrame(draw);
      };
      draw();
      tracks.push(...canvas.captureStream(30).getVideoTracks());
    }
    if (audio) {
      const context = new AudioContext({ sampleRate: 48000 });
      const [tone, sink] = [context.createOscillator(), context.createMediaStreamDestination()];
      tone.connect(sink);
      tone.start();
      tracks.push(...sink.stream.getAudioTracks());
    }
    return new MediaStream(tracks);
  };
})();`;

/** Script that has the tab's workers encode with VP8 alone, as browsers do that have no licence for H.264. */
export const VP8_ALONE = `(() => {
  const script = (url) => \`import "\${url}";
    const isSupported = VideoEncoder.isConfigSupported.bind(VideoEncoder);
    VideoEncoder.isConfigSupported = async (config) => (config.codec === "vp8" ? isSupported(config) : { supported: false });\`;
  globalThis.Worker = class extends Worker {
    constructor(url, options) {
      super(URL.createObjectURL(new Blob([script(url)], { type: "text/javascript" })), options);
    }
  };
})();`;

/** The first link of each name that a program with `--json` printed. */
export async function linksOf(program) {
  const told = await program.until("links", async () => JSON.parse(/^\{.*\}$/m.exec(program.printed)[0]));
  return Object.fromEntries(told.go_live.map(({ name, urls }) => [name, urls[0]]));
}

/** Opens a page to go live in a tab of `browser`, where `script` runs first. */
export async function openLive(browser, url, script = "") {
  const page = await browser.context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  // A tab that is live is not left without a question.
  page.on("dialog", (dialog) => dialog.accept());
  await page.addInitScript(script);
  await page.goto(url);
  return new LivePage(page, errors);
}

/** The page to go live, in the words of the tests. */
export class LivePage {
  constructor(page, errors) {
    this.page = page;
    this.errors = errors;
  }

  /** Goes live, and returns the link to watch. */
  async goLive() {
    await this.page.click("#go");
    await this.#until(() => globalThis.namecastLive.state === "live").catch(async (error) => {
      throw new Error(`not live: ${JSON.stringify({ notice: await this.notice(), errors: this.errors })}`, { cause: error });
    });
    return this.page.evaluate(() => globalThis.namecastLive.link);
  }

  /** Tries to go live, and returns what the page says when it does not. */
  async refused() {
    await this.page.click("#go");
    return this.ended();
  }

  /** Has it send a screen alone. */
  async chooseScreen() {
    await this.page.uncheck("#microphone");
    await this.page.check("input[value=screen]");
    await this.#until(() => document.getElementById("preview").srcObject !== null && document.hidden);
    // A tab that is shared comes to the front.
    await this.page.bringToFront();
  }

  /** Waits until it is not live any more, and returns what it says. */
  async ended() {
    await this.#until(() => globalThis.namecastLive.state === "not live" && document.querySelector(".notice") !== null);
    return this.notice();
  }

  /** Waits until `check` holds in the page, whether it is seen or not. */
  #until(check) {
    return this.page.waitForFunction(check, undefined, { timeout: TIMEOUT, polling: 50 });
  }

  notice() {
    return this.page.locator("#notices").textContent();
  }

  figures() {
    return this.page.evaluate(() => globalThis.namecastLive.figures());
  }

  close() {
    return this.page.close();
  }
}
