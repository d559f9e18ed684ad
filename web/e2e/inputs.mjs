// The page as a way out of scripts/inputs: opens the addresses that come by standard input, one JSON object a line, and prints the numbers of the
// pictures that the page's decoder gives. Requests are {id, open: URL} and {id, close: true}; answers are {id, open: true} and
// {id, pictures, shown, steps,
// stats, state, errors}.

import { createInterface } from "node:readline";
import { startBrowser, openPage } from "./lib/browser.mjs";
import { startPusher } from "./lib/whip.mjs";
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

/** Plays a film in the tab and pushes it by WHIP until its end; returns what the server answered and how many pictures were sent. */
async function pushFilm({ push, name, film, limit }) {
  const video = Object.assign(document.createElement("video"), { crossOrigin: "anonymous", src: film, preload: "auto" });
  document.body.append(video);
  await new Promise((resolve, reject) => {
    video.oncanplaythrough = resolve;
    video.onerror = () => reject(new Error(`the film cannot be played: ${video.error?.message}`));
  });
  const connection = new RTCPeerConnection();
  const stream = video.captureStream();
  // Tracks are there once the film plays; it begins anew when the connection stands.
  await video.play();
  video.pause();
  stream.getTracks().forEach((track) => connection.addTrack(track, stream));
  await connection.setLocalDescription();
  const response = await fetch(`${push}whip/${name}`, { method: "POST", headers: { "content-type": "application/sdp" }, body: connection.localDescription.sdp });
  const sdp = await response.text();
  if (response.status !== 201) return { answer: `${response.status} ${sdp}` };
  await connection.setRemoteDescription({ type: "answer", sdp });
  while (connection.connectionState !== "connected") await new Promise((resolve) => setTimeout(resolve, 20));
  video.currentTime = 0;
  const ended = new Promise((resolve) => (video.onended = () => resolve(true)));
  await video.play();
  const isOver = await Promise.race([ended, new Promise((resolve) => setTimeout(() => resolve(false), limit * 1000))]);
  const reports = [...(await connection.getStats()).values()];
  const { framesSent } = reports.find(({ type, kind }) => type === "outbound-rtp" && kind === "video") ?? {};
  connection.close();
  return { ended: isOver, framesSent };
}

const home = await makeHome();
// A script that is fulfilled here counts as one of the public Internet, which may not connect to this machine.
const FLAGS = ["--autoplay-policy=no-user-gesture-required", "--disable-features=LocalNetworkAccessChecks"];
const browser = await startBrowser(home.directory, FLAGS);
await browser.context.addInitScript(GATHER);
await browser.context.route(/\/assets\/worker[^/]*\.js/, async (route) => {
  const response = await route.fetch();
  await route.fulfill({ response, body: READER + (await response.text()) });
});
/** Tabs that are hidden draw nothing, so those that push have a browser of their own. */
let pusher;
const open = new Map();
const answer = (object) => console.log(JSON.stringify(object));

async function handle({ id, open: url, close, ...film }) {
  if (film.push !== undefined) {
    pusher ??= startPusher(home.directory, FLAGS);
    const page = await (await pusher).context.newPage();
    await page.goto(`${film.push}node.json`);
    answer({ id, ...(await page.evaluate(pushFilm, film)) });
    await page.close();
  } else if (url !== undefined) {
    open.set(id, await openPage(browser, url));
    answer({ id, open: true });
  } else if (close) {
    const player = open.get(id);
    open.delete(id);
    const pictures = await player.page.evaluate(() => globalThis.pictures);
    const [shown, steps, stats, state] = [await player.shown(), await player.steps(), await player.stats(), await player.state()];
    answer({ id, pictures, shown, steps, stats, state, errors: player.errors });
    await player.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  handle(request).catch((error) => answer({ id: request.id, error: String(error) }));
}
await (await pusher)?.close();
await browser.close();
await home.remove();
