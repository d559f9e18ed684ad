// `<namecast-player>` as another site has it: from the package that goes to npm, on a page of another origin.

import { execFile } from "node:child_process";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { startBrowser } from "./browser.mjs";
import { findBinary, makeHome, Program, startServer } from "./processes.mjs";
import { serveFiles } from "./static.mjs";

const run = promisify(execFile);
const WEB = path.resolve(import.meta.dirname, "../..");
const PACKAGE = path.join(WEB, "player");

/** Packs the component and unpacks it in `home`. Returns where, what is in it, and the tarball. */
export async function unpackPlayer(home) {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", home], { cwd: PACKAGE, maxBuffer: 1 << 24 });
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.search(/^\[/m)));
  const directory = path.join(home, "site");
  await mkdir(directory, { recursive: true });
  await run("tar", ["-xzf", path.join(home, filename), "-C", directory]);
  return { directory, tarball: path.join(home, filename), files: files.map(({ path: file }) => file) };
}

/**
 * Builds a site with Vite out of `files`, by path, which finds the unpacked package at `directory` and React among this project's packages.
 * Returns the site's folder, and the folder of what was built.
 */
export async function buildSite(directory, files) {
  const root = path.join(directory, "vite-site");
  const modules = path.join(root, "node_modules");
  await mkdir(modules, { recursive: true });
  await cp(path.join(directory, "package"), path.join(modules, "namecast-player"), { recursive: true });
  for (const name of ["react", "react-dom", "scheduler", "@types", "csstype"]) {
    await symlink(path.join(WEB, "node_modules", name), path.join(modules, name));
  }
  for (const [file, text] of Object.entries({ "package.json": '{ "type": "module" }', ...files })) {
    await writeFile(path.join(root, file), text);
  }
  await run(path.join(WEB, "node_modules/.bin/vite"), ["build"], { cwd: root });
  return { root, built: path.join(root, "dist") };
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

/** A browser, a node that publishes `/show`, and a site of another origin: the folder that `build` makes of the unpacked package. */
export async function startSite(build) {
  const binary = await findBinary();
  const home = await makeHome();
  const unpacked = await unpackPlayer(home.directory);
  const site = await serveFiles(await build(unpacked));
  const [browser, node] = await Promise.all([startBrowser(home.directory), startNode(binary, home.directory, site.origin)]);
  return {
    unpacked,
    site,
    browser,
    node,
    async end() {
      await node.end();
      await browser.close();
      site.close();
      await home.remove();
    },
  };
}

/** Opens the start page of a site that shows the stream of its address, `/show`. */
export async function openSite({ browser, site, node }) {
  return openAt(browser, `${site.origin}/index.html?src=${encodeURIComponent(`${node.url}?name=/show`)}`);
}

/** Opens the package's own example, which shows `/show` twice. */
export async function openExample(browser, site, node) {
  return openAt(browser, `${site.origin}/package/example/index.html?node=${encodeURIComponent(node.url.replace(/\/$/, ""))}&one=/show&two=/show`);
}

async function openAt(browser, address) {
  const page = await browser.context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(address);
  return { page, errors };
}

export { serveFiles };
