// Starts and ends the programs that the tests drive.

import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

/** How long a program may take to start on a loaded machine, in milliseconds. */
const START_LIMIT = 60_000;

const ROOT = path.resolve(import.meta.dirname, "../../..");

const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
// The test runner ends a file that takes too long.
process.once("SIGTERM", () => process.exit(1));

/** Starts a program as `spawn` does, which ends with the tests, however they end. */
export function startChild(...command) {
  const child = spawn(...command);
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** Whether a child still runs. */
const isRunning = (child) => child.exitCode === null && child.signalCode === null;

/** Ends a child, and waits until it has ended. */
export async function endChild(child, signal = "SIGTERM") {
  if (isRunning(child)) {
    const gone = once(child, "exit");
    child.kill(signal);
    const timeout = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await gone;
    clearTimeout(timeout);
  }
}

/** The binary under test: `NAMECAST_BIN`, or what cargo built last. */
export async function findBinary() {
  const candidates = process.env["NAMECAST_BIN"]
    ? [process.env["NAMECAST_BIN"]]
    : ["target/debug/namecast", "target/release/namecast"].map((file) => path.join(ROOT, file));
  for (const candidate of candidates) {
    try {
      await access(candidate);
      return candidate;
    } catch {
      // The next one.
    }
  }
  throw new Error(`there is no binary at ${candidates.join(" or ")}: build it with cargo build -p namecast-cli, or set NAMECAST_BIN`);
}

/** A directory for keys and sockets, so that tests leave the user's alone. */
export async function makeHome() {
  const directory = await mkdtemp(path.join(tmpdir(), "namecast-e2e-"));
  // The browser's helpers write to their profile for a moment after the browser has ended.
  return { directory, remove: () => rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 }) };
}

/** One running `namecast`, with what it printed. */
export class Program {
  #child;
  #printed = "";

  constructor(binary, args, home) {
    this.args = args;
    this.#child = startChild(binary, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, HOME: home, XDG_DATA_HOME: home, XDG_RUNTIME_DIR: home, NO_COLOR: "1" },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (text) => {
        this.#printed = (this.#printed + text).slice(-64_000);
      });
    }
  }

  get printed() {
    return this.#printed;
  }

  get pid() {
    return this.#child.pid;
  }

  get running() {
    return isRunning(this.#child);
  }

  /** Ends it, and waits until it has ended. */
  end(signal) {
    return endChild(this.#child, signal);
  }

  /** Waits for `check` to give something, and fails with what the program printed if it does not. */
  async until(what, check) {
    const deadline = Date.now() + START_LIMIT;
    while (Date.now() < deadline) {
      const found = await check().catch(() => undefined);
      if (found) {
        return found;
      }
      if (!this.running) {
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${this.args.join(" ")}: no ${what}; it printed:\n${this.#printed}`);
  }
}

/** A port that was free a moment ago. */
export async function freePort(protocol = "tcp") {
  if (protocol === "udp") {
    const socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
    const { port } = socket.address();
    socket.close();
    await once(socket, "close");
    return port;
  }
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Starts a program with a web server, and waits for it. */
export async function startServer(binary, args, home) {
  const port = await freePort();
  const program = new Program(binary, [...args, "--port", String(port)], home);
  const url = `http://127.0.0.1:${port}/`;
  const node = await program.until("answer to /node.json", async () => (await fetch(`${url}node.json`)).json());
  return { program, url, node };
}

/** Resident memory of a process and all its children, in MiB. */
export async function residentMemory(pid) {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const own = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "")).split(" ").filter(Boolean);
  const theirs = await Promise.all(children.map((child) => residentMemory(child).catch(() => 0)));
  return theirs.reduce((sum, memory) => sum + memory, own);
}
