import { copyFile } from "node:fs/promises";
import path from "node:path";
import { defineConfig } from "vite";

const WEB = path.resolve(import.meta.dirname, "..");
const OUT = path.join(import.meta.dirname, "dist");

/** How the bundler writes the address of the worker. */
const WORKER = /new Worker\(new URL\(new URL\(([`"'])(worker-[\w-]+\.js)\1,import\.meta\.url\)\.href,``\+import\.meta\.url\)/;

/** Writes the address of the worker in the form by which other bundlers find a worker, and what the worker loads. */
const findableWorker = {
  name: "findable-worker",
  generateBundle(_, bundle) {
    const entry = bundle["namecast-player.js"];
    if (!WORKER.test(entry.code)) {
      throw new Error("namecast-player.js starts no worker in the known form: see WORKER in player/vite.config.mjs");
    }
    entry.code = entry.code.replace(WORKER, 'new Worker(new URL("./$2",import.meta.url)');
  },
};

/** `dist/` of the npm package: the element, and beside it its worker, core, sound and controls, which it finds by its own address. */
export default defineConfig({
  root: WEB,
  base: "./",
  publicDir: false,
  plugins: [
    findableWorker,
    {
      name: "licences",
      async writeBundle() {
        for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
          await copyFile(path.join(WEB, "..", licence), path.join(import.meta.dirname, licence));
        }
      },
    },
  ],
  worker: { format: "es" },
  build: {
    target: "es2023",
    outDir: OUT,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    assetsDir: "",
    modulePreload: false,
    rollupOptions: {
      input: path.join(WEB, "src/player/element.ts"),
      preserveEntrySignatures: "strict",
      output: { entryFileNames: "namecast-player.js" },
    },
  },
});
