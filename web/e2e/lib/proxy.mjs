// A reverse proxy that does what nginx does as docs/forwarder.md configures it.

import { once } from "node:events";
import http from "node:http";

/**
 * Starts one on this machine, which passes everything on to the server at `to`.
 *
 * @param from address that it connects from
 */
export async function startProxy({ to, from }) {
  const { hostname, port } = new URL(to);
  const onward = ({ method, url, headers, socket }) =>
    http.request({
      hostname,
      port,
      localAddress: from,
      method,
      path: url,
      headers: { ...headers, "x-forwarded-for": socket.remoteAddress, "x-forwarded-proto": "http" },
    });
  const server = http.createServer((request, answer) => {
    const passed = onward(request);
    passed.on("response", (response) => {
      answer.writeHead(response.statusCode, response.headers);
      response.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    request.pipe(passed);
  });
  const sockets = new Set();
  server.on("connection", (socket) => sockets.add(socket.on("close", () => sockets.delete(socket))));
  server.on("upgrade", (request, socket, head) => {
    const passed = onward(request);
    passed.on("upgrade", ({ headers }, far, farHead) => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      socket.write(farHead);
      far.write(head);
      far.pipe(socket).pipe(far);
      far.on("error", () => socket.destroy());
      socket.on("error", () => far.destroy());
    });
    passed.on("error", () => socket.destroy());
    passed.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close() {
      sockets.forEach((socket) => socket.destroy());
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
