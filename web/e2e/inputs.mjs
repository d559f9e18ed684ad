// The page as a way out of scripts/inputs: opens the addresses that come by standard input, one JSON object a line, and prints the numbers of the
// pictures that the page's decoder gives. Requests are {id, open: URL} and {id, close: true}; answers are {id, open: true} and
// {id, pictures, shown, steps,
// stats, notices, errors}.

import { createInterface } from "node:readline";
import { startBrowser, openPage } from "./lib/browser.mjs";
import { makeHome } from "./lib/processes.mjs";

/** As interop/inputs/strip.py draws it. */
const STRIP = { columns: 12, rows: 2, share: 6, contrast: 50 };

/** What runs in the page's worker before its own script: reads the strip of each frame that a decoder gives. */
const READER = `{
  const { columns, rows, share, contrast } = ${JSON.stringify(STRIP)};
  const channel = new BroadcastChannel("inputs");
  // Four samples a cell and direction, as browsers take single points of a picture that is made smaller.
  const fine = 4;
  const canvas = new OffscreenCanvas(columns * fine, rows * fine);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const read = (frame) => {
    const { displayWidth: width, displayHeight: height } = frame;
    context.drawImage(frame, 0, 0, frame.visibleRect.width, frame.visibleRect.height / share, 0, 0, canvas.width, canvas.height);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const cell = (column, row) => data[4 * ((row * fine + fine / 2) * canvas.width + column * fine + fine / 2) + 1];
    let value = 0;
    for (let column = 0; column < columns; column += 1) {
      const difference = cell(column, 0) - cell(column, 1);
      if (Math.abs(difference) < contrast) return { value: null, width, height };
      if (column === 0 || column === columns - 1) {
        if ((difference > 0) !== (column === 0)) return { value: null, width, height };
      } else if (difference > 0) value += 2 ** (column - 1);
    }
    return { value, width, height };
  };
  const Decoder = globalThis.VideoDecoder;
  globalThis.VideoDecoder = class extends Decoder {
    constructor(init) {
      super({ ...init, output: (frame) => {
        const seen = read(frame);
        channel.postMessage({ ...seen, timestamp: frame.timestamp });
        init.output(frame);
      } });
    }
  };
}
`;

const GATHER = `globalThis.pictures = [];
new BroadcastChannel("inputs").onmessage = ({ data }) => globalThis.pictures.push(data);`;

const home = await makeHome();
// A script that is fulfilled here counts as one of the public Internet, which may not connect to this machine.
const FLAGS = ["--autoplay-policy=no-user-gesture-required", "--disable-features=LocalNetworkAccessChecks"];
const browser = await startBrowser(home.directory, FLAGS);
await browser.context.addInitScript(GATHER);
await browser.context.route(/\/assets\/worker[^/]*\.js/, async (route) => {
  const response = await route.fetch();
  await route.fulfill({ response, body: READER + (await response.text()) });
});
const open = new Map();
const answer = (object) => console.log(JSON.stringify(object));

async function handle({ id, open: url, close }) {
  if (url !== undefined) {
    open.set(id, await openPage(browser, url));
    answer({ id, open: true });
  } else if (close) {
    const player = open.get(id);
    open.delete(id);
    const pictures = await player.page.evaluate(() => globalThis.pictures);
    const [shown, steps, stats, notices] = [await player.shown(), await player.steps(), await player.stats(), await player.notices()];
    answer({ id, pictures, shown, steps, stats, notices, errors: player.errors });
    await player.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  handle(request).catch((error) => answer({ id: request.id, error: String(error) }));
}
await browser.close();
await home.remove();
