import { readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig } from "vitest/config";

/** Where the node's web server listens while the page is worked on. */
const NODE = "http://127.0.0.1:8080";
/** Files that become much smaller, and from which size on in octets it is worth it. */
const COMPRESSIBLE = /\.(?:html|js|css|wasm)$/;
const MIN_SIZE = 1_000;

/** Makes a `.br` and a `.gz` beside each file, which the node's web server sends to browsers that take them. */
function compress() {
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
function fetchEarly() {
  return {
    name: "fetch-early",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle }) => {
        const names = Object.keys(bundle ?? {});
        const href = (pattern) => {
          const name = names.find((each) => pattern.test(each));
          if (name === undefined) {
            throw new Error(`nothing was built that is called ${pattern}`);
          }
          return `./${name}`;
        };
        return [
          { tag: "link", attrs: { rel: "preload", as: "fetch", type: "application/wasm", crossorigin: true, href: href(/namecast_web_bg.*\.wasm$/) }, injectTo: "head-prepend" },
          { tag: "script", children: early(href(/worker-.*\.js$/)), injectTo: "head-prepend" },
        ];
      },
    },
  };
}

/** What `src/main.ts` finds as `window.early`. */
const early = (worker) => `if (window.Worker) window.early = {
  worker: new Worker(${JSON.stringify(worker)}, { type: "module", name: "namecast" }),
  node: fetch("/node.json", { cache: "no-store" }),
};`;

/** With `--mode fake` the page plays frames that it makes itself, for work on it without a node. */
export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: [fetchEarly(), compress()],
  resolve: { alias: { "#tab": mode === "fake" ? "/dev/fake-tab.ts" : "/src/worker/tab.ts" } },
  worker: { format: "es" },
  build: { target: "es2023", assetsInlineLimit: 0 },
  server: { host: "127.0.0.1", proxy: { "/node.json": NODE, "/streams.json": NODE, "/ws": { target: NODE, ws: true } } },
  test: { include: ["test/**/*.test.ts"] },
}));
