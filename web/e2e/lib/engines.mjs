// Browsers of other makers, each by the protocol that it brings itself: Firefox by Marionette, WebKit by WebDriver.

import { access, mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import path from "node:path";
import { freePort, endChild, startChild } from "./processes.mjs";
import { TIMEOUT } from "./browser.mjs";

const FIREFOX = process.env["FIREFOX_BIN"] ?? "/usr/bin/firefox-esr";
const WEBKIT = process.env["WEBKIT_DRIVER_BIN"] ?? "/usr/bin/WebKitWebDriver";
const XVFB = "/usr/bin/Xvfb";
const PULSEAUDIO = "/usr/bin/pulseaudio";
/** By which WebDriver names elements. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** Waits for `attempt` to succeed. */
async function retry(what, attempt) {
  const deadline = Date.now() + TIMEOUT;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) {
        throw new Error(`${what} did not start`, { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const areThere = (...files) => Promise.all(files.map((file) => access(file))).then(() => true, () => false);

/** Starts a sound server that plays to nobody: without one, browsers have no clock of sound. Returns what programs need to find it. */
async function startSound(home) {
  const socket = path.join(home, "sound");
  const modules = ["module-null-sink", `module-native-protocol-unix auth-anonymous=1 socket=${socket}`];
  const child = startChild(PULSEAUDIO, ["-n", "--exit-idle-time=-1", "--use-pid-file=no", ...modules.flatMap((module) => ["-L", module])], {
    stdio: "ignore",
    env: { ...process.env, HOME: home, XDG_RUNTIME_DIR: home },
  });
  await retry("PulseAudio", () => access(socket));
  return { child, env: { PULSE_SERVER: `unix:${socket}` } };
}

/** A page in such a browser. `send` sends a command of WebDriver. */
class EnginePage {
  constructor(send, end) {
    this.send = send;
    this.end = end;
  }

  open(url) {
    return this.send("navigate", { url });
  }

  /** Runs the body of an async function in the page, and returns what it returns. */
  async run(body) {
    const script = `const done = arguments[arguments.length - 1];
      (async () => { ${body} })().then((value) => done({ value }), (error) => done({ error: String(error) }));`;
    const answer = await this.send("script", { script, args: [] });
    if (answer.error !== undefined) {
      throw new Error(answer.error);
    }
    return answer.value;
  }

  /** Clicks the element that is `expression` in the page as a person does, without which browsers play no sound. */
  async click(expression) {
    const element = await this.run(`return ${expression};`);
    await this.send("click", element[ELEMENT]);
  }

  /** Waits until the expression `check` is true in the page. */
  async until(what, check) {
    const deadline = Date.now() + TIMEOUT;
    while (Date.now() < deadline) {
      if (await this.run(`return Boolean(${check});`).catch(() => false)) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const stats = await this.run("return JSON.stringify([globalThis.namecast?.state(), globalThis.namecast?.stats()]);").catch(String);
    throw new Error(`no ${what} in ${TIMEOUT} ms: ${String(stats).slice(0, 3_000)}`);
  }
}

/** Packets of Marionette: their length, a colon, and JSON. */
function marionette(socket) {
  let received = Buffer.alloc(0);
  const waiting = new Map();
  socket.on("data", (octets) => {
    received = Buffer.concat([received, octets]);
    for (;;) {
      const colon = received.indexOf(":");
      const length = Number(received.subarray(0, Math.max(colon, 0)).toString());
      if (colon < 1 || received.length < colon + 1 + length) {
        return;
      }
      const packet = JSON.parse(received.subarray(colon + 1, colon + 1 + length).toString());
      received = received.subarray(colon + 1 + length);
      // The first one greets.
      if (Array.isArray(packet)) {
        const [, id, error, result] = packet;
        waiting.get(id)?.(error, result);
        waiting.delete(id);
      }
    }
  });
  const fail = () => {
    waiting.forEach((finish) => finish({ message: "the browser has ended" }));
    waiting.clear();
  };
  socket.on("close", fail);
  socket.on("error", fail);
  let last = 0;
  return (command, parameters = {}) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, (error, result) => (error ? reject(new Error(error.message)) : resolve(result)));
      const text = Buffer.from(JSON.stringify([0, last, command, parameters]));
      socket.write(Buffer.concat([Buffer.from(`${text.length}:`), text]));
    });
}

/** Starts Firefox; null where it, or PulseAudio, is missing. */
export async function startFirefox(home) {
  if (!(await areThere(FIREFOX, PULSEAUDIO))) {
    return null;
  }
  const profile = path.join(home, "firefox");
  await mkdir(profile);
  const port = await freePort();
  const preferences = {
    "marionette.port": port,
    "media.autoplay.default": 0,
    "media.navigator.streams.fake": true,
    "media.navigator.permission.disabled": true,
    "datareporting.policy.dataSubmissionEnabled": false,
    "app.update.disabledForTesting": true,
  };
  const lines = Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
  await writeFile(path.join(profile, "user.js"), lines.join("\n"));
  const sound = await startSound(home);
  const child = startChild(FIREFOX, ["--headless", "--no-remote", "--marionette", "--profile", profile, "about:blank"], {
    stdio: "ignore",
    env: { ...process.env, ...sound.env, HOME: home },
  });
  const socket = await retry("Firefox", () => new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  }));
  const command = marionette(socket);
  await retry("Firefox", () => command("WebDriver:NewSession", { capabilities: {} }));
  await command("WebDriver:SetTimeouts", { script: TIMEOUT });
  const commands = {
    navigate: ({ url }) => command("WebDriver:Navigate", { url }),
    script: async (parameters) => (await command("WebDriver:ExecuteAsyncScript", { ...parameters, newSandbox: false, sandbox: null })).value,
    click: (id) => command("WebDriver:ElementClick", { id }),
  };
  return new EnginePage((name, parameters) => commands[name](parameters), async () => {
    socket.destroy();
    await endChild(child);
    await endChild(sound.child);
  });
}

/** Starts WebKitGTK's browser on a screen of its own; null where it, Xvfb or PulseAudio is missing. */
export async function startWebKit(home) {
  if (!(await areThere(WEBKIT, XVFB, PULSEAUDIO))) {
    return null;
  }
  // Xvfb writes the number of a screen that is free.
  const screen = startChild(XVFB, ["-displayfd", "3", "-screen", "0", "1280x1000x24", "-nolisten", "tcp"], { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const number = await new Promise((resolve, reject) => {
    screen.stdio[3].once("data", (text) => resolve(String(text).trim()));
    screen.once("exit", () => reject(new Error("Xvfb has ended")));
  });
  const sound = await startSound(home);
  const port = await freePort();
  const driver = startChild(WEBKIT, [`--port=${port}`], {
    stdio: "ignore",
    env: { ...process.env, ...sound.env, HOME: home, XDG_RUNTIME_DIR: home, DISPLAY: `:${number}`, GDK_BACKEND: "x11", NO_AT_BRIDGE: "1" },
  });
  const command = async (method, at, parameters) => {
    const body = parameters && JSON.stringify(parameters);
    const answer = await fetch(`http://127.0.0.1:${port}${at}`, { method, body, headers: { "content-type": "application/json" } });
    const { value } = await answer.json();
    if (!answer.ok) {
      throw new Error(`${at}: ${value?.message ?? answer.status}`);
    }
    return value;
  };
  const capabilities = { alwaysMatch: { "webkitgtk:browserOptions": { binary: "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser", args: ["--automation", "--enable-media-stream=true", "--enable-mock-capture-devices=true"] } } };
  const session = await retry("WebKit", () => command("POST", "/session", { capabilities }));
  const at = `/session/${session.sessionId}`;
  await command("POST", `${at}/timeouts`, { script: TIMEOUT });
  const commands = {
    navigate: ({ url }) => command("POST", `${at}/url`, { url }),
    script: (parameters) => command("POST", `${at}/execute/async`, parameters),
    click: (id) => command("POST", `${at}/element/${id}/click`, {}),
  };
  return new EnginePage((name, parameters) => commands[name](parameters), async () => {
    await command("DELETE", at).catch(() => undefined);
    await endChild(driver);
    await endChild(screen);
    await endChild(sound.child);
  });
}
