// `<namecast-player>` as another site has it: from the package that goes to npm, on a page of another origin.

import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { Program, startServer } from "./processes.mjs";
import { serveFiles } from "./static.mjs";

const run = promisify(execFile);
const PACKAGE = path.resolve(import.meta.dirname, "../../player");

/** Packs the component and unpacks it in `home`. Returns where, and what is in it. */
export async function unpackPlayer(home) {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", home], { cwd: PACKAGE, maxBuffer: 1 << 24 });
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.search(/^\[/m)));
  const directory = path.join(home, "site");
  await mkdir(directory, { recursive: true });
  await run("tar", ["-xzf", path.join(home, filename), "-C", directory]);
  return { directory, files: files.map(({ path: file }) => file) };
}

/** A forwarder that lets pages of `origin` in, with a publisher of `/show` that takes its picture from `input`. */
export async function startNode(binary, home, origin, input = ["--input", "test"]) {
  const socket = path.join(home, "embedding.sock");
  const config = path.join(home, "embedding.toml");
  await writeFile(config, `listen = { udp = [], tcp = [], unix = ["${socket}"] }\n[web]\nallow-origins = ${JSON.stringify(origin === undefined ? [] : [origin])}\n`);
  const forwarder = await startServer(binary, ["forwarder", "--config", config], home);
  const publisher = new Program(binary, ["publish", "/show", ...input, "--connect", `unix://${socket}`], home);
  return {
    url: forwarder.url,
    node: () => fetch(`${forwarder.url}status.json`).then((answer) => answer.json()).then(({ node }) => node),
    async end() {
      await publisher.end();
      await forwarder.program.end();
    },
  };
}

/** Opens the package's own example, which shows `/show` twice. */
export async function openExample(browser, site, node) {
  const page = await browser.context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${site.origin}/package/example/index.html?node=${encodeURIComponent(node.url.replace(/\/$/, ""))}&one=/show&two=/show`);
  return { page, errors };
}

export { serveFiles };
