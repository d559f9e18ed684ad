import { defineConfig } from "vitest/config";
import { compress, fetchEarly } from "./vite.plugins.mjs";

/** Whether functions keep their names, for profiles. */
const KEEPS_NAMES = process.env["NAMECAST_NAMES"] !== undefined;
/** Where the node's web server listens while the page is worked on. */
const NODE = "http://127.0.0.1:8080";

export default defineConfig({
  base: "./",
  plugins: [fetchEarly(), compress()],
  worker: { format: "es" },
  build: { target: "es2023", minify: !KEEPS_NAMES, assetsInlineLimit: 0, rolldownOptions: { input: ["index.html", "live.html", "embed.html"] } },
  server: { host: "127.0.0.1", proxy: { "/node.json": NODE, "/streams.json": NODE, "/about.json": NODE, "/viewers.json": NODE, "/thumbnail.jpg": NODE, "/ws": { target: NODE, ws: true } } },
  test: { include: ["test/**/*.test.{ts,mjs}"] },
});
