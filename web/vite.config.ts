import { defineConfig } from "vite";

/** `NAMECAST_SOURCE=fake npm run dev` plays frames made in the page itself, for work on the page without a node. */
const source = process.env["NAMECAST_SOURCE"] === "fake" ? "/dev/fake-tab.ts" : "/src/worker/tab.ts";

export default defineConfig({
  base: "./",
  resolve: { alias: { "#tab": source } },
  worker: { format: "es" },
  build: { target: "es2023", assetsInlineLimit: 0, chunkSizeWarningLimit: 800 },
  server: { host: "127.0.0.1", proxy: { "/node.json": "http://127.0.0.1:8080", "/ws": { target: "ws://127.0.0.1:8080", ws: true } } },
  test: { include: ["test/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
