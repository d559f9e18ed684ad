// A browser that pushes by WHIP, as a page of a person's would: a canvas with the burned-in clock, and a tone with its flash.

import { mkdir } from "node:fs/promises";
import path from "node:path";
import { startBrowser } from "./browser.mjs";
import { CLOCK_PICTURE } from "./clock-picture.mjs";

/** What runs in the pushing tab. */
const PUSHER = `(() => {
  ${CLOCK_PICTURE}
  const canvas = clockCanvas();
  const context = canvas.getContext("2d");
  let number = 0;
  function draw() {
    const now = performance.timeOrigin + performance.now();
    drawClock(canvas, now, number++);
    context.fillStyle = now % 1000 < 100 ? "#fff" : "#000";
    const side = 64;
    context.fillRect(560 - side / 2, 288 - side / 2, side, side);
    requestAnimationFrame(draw);
  }
  function tone() {
    const audio = new AudioContext({ sampleRate: 48000 });
    const [oscillator, gain, sink] = [audio.createOscillator(), audio.createGain(), audio.createMediaStreamDestination()];
    oscillator.frequency.value = 1000;
    gain.gain.value = 0;
    oscillator.connect(gain).connect(sink);
    oscillator.start();
    // Sounds in the first tenth of each second of the wall clock, as the square flashes.
    setInterval(() => {
      const now = performance.timeOrigin + performance.now();
      const at = audio.currentTime + (1000 - (now % 1000)) / 1000;
      gain.gain.setValueAtTime(0.5, at);
      gain.gain.setValueAtTime(0, at + 0.1);
    }, 1000);
    return sink.stream.getAudioTracks()[0];
  }
  const begin = async (url, key) => {
    draw();
    const connection = new RTCPeerConnection();
    connection.addTrack(canvas.captureStream(30).getVideoTracks()[0]);
    connection.addTrack(tone());
    await connection.setLocalDescription();
    const headers = { "content-type": "application/sdp", ...(key ? { authorization: "Bearer " + key } : {}) };
    const postedAt = performance.timeOrigin + performance.now();
    const response = await fetch(url, { method: "POST", headers, body: connection.localDescription.sdp });
    const answer = await response.text();
    if (response.status !== 201) return { status: response.status, answer };
    await connection.setRemoteDescription({ type: "answer", sdp: answer });
    globalThis.connection = connection;
    return { status: response.status, location: response.headers.get("location"), postedAt };
  };
  globalThis.push = begin;
})();`;

/** A browser of its own, so that its tab is seen and draws. */
export async function startPusher(home, moreFlags = []) {
  const directory = path.join(home, "pusher");
  await mkdir(directory, { recursive: true });
  return startBrowser(directory, ["--autoplay-policy=no-user-gesture-required", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", ...moreFlags]);
}

/** Opens a tab that pushes as `name` to the server at `url`, and returns it with what the server said. */
export async function push(browser, url, name, key) {
  const page = await browser.context.newPage();
  await page.addInitScript(PUSHER);
  // Any page of the server's own; this one loads nothing else.
  await page.goto(`${url}node.json`);
  const said = await page.evaluate(([target, secret]) => globalThis.push(target, secret), [`${url}whip/${name}`, key]);
  return { page, ...said };
}
