import { copyFile } from "node:fs/promises";
import path from "node:path";
import { defineConfig } from "vite";

const WEB = path.resolve(import.meta.dirname, "..");
const OUT = path.join(import.meta.dirname, "dist");

/** `dist/` of the npm package: the element, and beside it its worker, core, sound and controls, which it finds by its own address. */
export default defineConfig({
  root: WEB,
  base: "./",
  publicDir: false,
  plugins: [
    {
      name: "licences",
      async writeBundle() {
        for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
          await copyFile(path.join(WEB, "..", licence), path.join(import.meta.dirname, licence));
        }
      },
    },
  ],
  resolve: { alias: { "#tab": "/src/worker/tab.ts" } },
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
