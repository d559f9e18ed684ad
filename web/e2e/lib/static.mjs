// A web server of files: the page of another site.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

/** Serves `directory` on a free port of this machine. */
export async function serveFiles(directory) {
  const server = createServer((request, response) => {
    const file = path.join(directory, path.normalize(new URL(request.url, "http://x").pathname));
    readFile(file).then(
      (octets) => response.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "text/plain" }).end(octets),
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
