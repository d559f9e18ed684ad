// Tabs join a room by a link: one goes live there, sealed for the members, one of them watches, and a stranger reads why it cannot.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openPage, startBrowser, TIMEOUT } from "./lib/browser.mjs";
import { captureFlags, writeCamera } from "./lib/camera.mjs";
import { openLive } from "./lib/live.mjs";
import { findBinary, makeHome, Program, startServer } from "./lib/processes.mjs";
import { startProxy } from "./lib/proxy.mjs";

let binary;
let home;
let browser;
let server;
/** Behind it the page is not local: its tab registers a name by its certificate alone. */
let proxy;
const hosts = [];

const sock = () => path.join(home.directory, "room.sock");

/** Runs `namecast trust` to its end, and returns what it printed. */
async function trust(...args) {
  const env = { ...process.env, HOME: home.directory, XDG_DATA_HOME: home.directory, XDG_RUNTIME_DIR: home.directory };
  const { stdout } = await promisify(execFile)(binary, ["trust", ...args], { env });
  return stdout.trim();
}

/** Makes a room, and returns the digest of its anchor's key. */
const init = async (root) => (await trust("init", root, "--template", "call")).split(" ").at(-1);

/** Has the host serve a room. */
function serve(root, ...more) {
  const host = new Program(binary, ["trust", "serve", root, "--connect", `unix://${sock()}`, ...more], home.directory);
  hosts.push(host);
  return host;
}

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  const anchor = await init("/calls/fox");
  const file = path.join(home.directory, "room.toml");
  await writeFile(file, `listen = { udp = [], tcp = [], unix = ["${sock()}"] }\nweb = { trusted-proxies = ["127.0.0.2"] }\n[[trust]]\nroot = "/calls/fox"\nanchor = "${anchor}"\n`);
  const camera = path.join(home.directory, "camera.y4m");
  await writeCamera(camera);
  [browser, server] = await Promise.all([startBrowser(home.directory, captureFlags(camera, "Shared")), startServer(binary, ["forwarder", "--config", file, "-v"], home.directory)]);
  await browser.context.grantPermissions(["camera", "microphone"]);
  proxy = await startProxy({ to: server.url, from: "127.0.0.2" });
});

after(async () => {
  await Promise.all(hosts.map((host) => host.end()));
  await proxy?.close();
  await server?.program.end();
  await browser?.close();
  await home?.remove();
});

/** Errors of a page, but that the node looked at a name which is no stream: the host's. */
const errorsOf = ({ errors }) => errors.filter((text) => !text.includes("status of 404"));

const stateOf = ({ page }) => page.evaluate(() => globalThis.namecast.state());

/** Waits until the player is in a state of this kind, and returns its sentence. */
async function untilState(player, kind) {
  await player.page.waitForFunction((kind) => globalThis.namecast.state().kind === kind, kind, { timeout: TIMEOUT, polling: 100 }).catch(async (error) => {
    throw new Error(`not ${kind}: ${JSON.stringify(await stateOf(player))}`, { cause: error });
  });
  return (await stateOf(player)).sentence;
}

describe("a room", () => {
  test("is joined by a link; members see what a tab sends sealed, and strangers read why they do not", async () => {
    serve("/calls/fox", "--quiet");
    const hash = await trust("invite", "/calls/fox");
    const live = await openLive(browser, `${proxy.url}live.html${hash}&name=Ann`);
    let [member, stranger] = [];
    try {
      const link = await live.goLive();
      const [, key] = /key=([0-9a-f]{64})&t=/.exec(hash);
      assert.ok(link.endsWith(`/?name=/calls/fox/ann#room=/calls/fox&key=${key}`), link);
      assert.ok(!(await live.page.url()).includes("&t="), "the address still has the token");
      const { node } = await (await fetch(`${server.url}status.json`)).json();
      assert.ok(node.rights.admitted > 0 && node.routes.some(({ prefix }) => prefix === "/calls/fox/ann"), JSON.stringify(node.rights));

      // Another origin is another visitor: it has storage of its own.
      member = await openPage(browser, `${server.url}?name=/calls/fox/ann${hash}&name=Bob`);
      await member.untilStats("30 frames", ({ video }) => video.shown >= 30);
      const stats = await member.stats();
      assert.equal(stats.signer.verdict, "certified by the anchor");
      assert.ok(!member.page.url().includes("&t="), member.page.url());
      const members = JSON.parse(await trust("members", "/calls/fox", "--json"));
      assert.deepEqual(members.map(({ label }) => label).sort(), ["Ann", "Bob"]);

      const local = server.url.replace("127.0.0.1", "localhost");
      stranger = await openPage(browser, `${local}?name=/calls/fox/ann#room=/calls/fox&key=${key}`);
      assert.equal(await untilState(stranger, "sealed"), "/calls/fox/ann is sealed for the members of its room. Ask the host for a link to join.");

      // The certificate is kept: no link is needed any more.
      await member.page.bringToFront();
      await member.page.reload();
      await member.untilStats("30 frames after a reload", ({ video }) => video.shown >= 30);
      assert.equal(JSON.parse(await trust("members", "/calls/fox", "--json")).length, 2);
      assert.deepEqual([...live.errors, ...errorsOf(member)], []);
    } finally {
      await stranger?.close();
      await member?.close();
      await live.close();
    }
  });

  test("says why a newcomer waits, and ends that when the host says yes", async () => {
    await init("/calls/hen");
    const hash = await trust("invite", "/calls/hen");
    const player = await openPage(browser, `${server.url}${hash}&name=Eve`);
    try {
      assert.equal(await untilState(player, "room"), "Nobody hosts /calls/hen at the moment. You join as soon as its host is back.");
      const host = serve("/calls/hen", "--knock");
      const [, digest] = await host.until("newcomer", async () => /'Eve' with the key ([0-9a-f]{16})/.exec(host.printed));
      await player.page.waitForFunction(() => globalThis.namecast.state().sentence.startsWith("You wait in front of /calls/hen"), undefined, { timeout: TIMEOUT });
      await trust("admit", digest, "--room", "/calls/hen");
      assert.match(await untilState(player, "unpublished"), /^Nobody publishes \/calls\/hen/);
      assert.deepEqual(errorsOf(player), []);
    } finally {
      await player.close();
    }
  });
});
