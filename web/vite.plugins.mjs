// What the build adds to the page.

import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** Files that become much smaller, and from which size on in octets it is worth it. */
const COMPRESSIBLE = /\.(?:html|js|css|wasm)$/;
const MIN_SIZE = 1_000;

/** Makes a `.br` and a `.gz` beside each file, which the node's web server sends to browsers that take them. */
export function compress() {
  return {
    name: "compress",
    apply: "build",
    async writeBundle({ dir = "dist" }) {
      for (const name of await readdir(dir, { recursive: true })) {
        const file = path.join(dir, name);
        const octets = COMPRESSIBLE.test(name) ? await readFile(file) : undefined;
        if (octets !== undefined && octets.length >= MIN_SIZE) {
          const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
          await writeFile(`${file}.br`, brotliCompressSync(octets, { params }));
          await writeFile(`${file}.gz`, gzipSync(octets, { level: constants.Z_BEST_COMPRESSION }));
        }
      }
    },
  };
}

/** Has the browser begin with what takes longest while it reads the page: the worker, its core, and the node's description. */
export function fetchEarly() {
  return {
    name: "fetch-early",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle, filename }) => {
        if (path.basename(filename) !== "index.html") {
          return [];
        }
        const names = Object.keys(bundle ?? {});
        const href = (pattern) => {
          const name = names.find((each) => pattern.test(each));
          if (name === undefined) {
            throw new Error(`nothing was built that is called ${pattern}`);
          }
          return `./${name}`;
        };
        const children = early(href(/\bworker-.*\.js$/), href(/namecast_web_bg.*\.wasm$/));
        return [{ tag: "script", children, injectTo: "head-prepend" }];
      },
    },
  };
}

/** What `src/main.ts` finds as `window.early`. */
const early = (worker, core) => `if (window.Worker && window.WebAssembly) window.early = {
  worker: new Worker(${JSON.stringify(worker)}, { type: "module", name: "namecast" }),
  core: WebAssembly.compileStreaming(fetch(${JSON.stringify(core)})),
  node: fetch("/node.json", { cache: "no-store" }),
};`;
