// NDNts and `namecast put` and `peek`: objects in segments, found by realtime data retrieval, each way.
//
// Usage: objects.js NAMECAST UNIX-SOCKET. Prints a line for each cell; ends with 1 if one fails.

import { spawn } from "node:child_process";

import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { generateSigningKey } from "@ndn/keychain";
import { Forwarder } from "@ndn/fw";
import { Name } from "@ndn/packet";
import { UnixTransport } from "@ndn/node-transport";
import { Metadata, retrieveMetadata, serveMetadata } from "@ndn/rdr";
import { BufferChunkSource, fetch, serve } from "@ndn/segmented-object";

const [namecast, unix] = process.argv.slice(2);
const AT = ["--connect", `unix://${unix}`];
const CONTENT = Buffer.from(Uint8Array.from({ length: 50_000 }, (_, at) => at / 7));
const TIMEOUT_MS = 20_000;

function check(cell, condition, seen = "") {
  console.log(`${condition ? "ok" : "FAILED"}  NDNts: ${cell} ${condition ? "" : seen}`);
  if (!condition) {
    process.exit(1);
  }
}

/** Tries until it gives something, or seconds are over. */
async function eventually(attempt) {
  const end = Date.now() + TIMEOUT_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > end) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Runs a command without holding NDNts up, and gives what it prints. */
function run(...options) {
  return new Promise((resolve, reject) => {
    const child = spawn(namecast, [...options, ...AT], { stdio: ["ignore", "pipe", "inherit"] });
    const printed = [];
    child.stdout.on("data", (part) => printed.push(part));
    child.on("close", (code) => code === 0 ? resolve(Buffer.concat(printed)) : reject(new Error(`exit ${code}`)));
  });
}

const fw = Forwarder.create();
const face = await UnixTransport.createFace({ fw, addRoutes: ["/"] }, unix);
enableNfdPrefixReg(face);
const [signer] = await generateSigningKey("/interop/objects");

const theirs = new Name("/interop/objects/theirs");
const version = new Name("/interop/objects/theirs/54=%07");
const pOpts = { fw, dataSigner: signer };
serve(version, new BufferChunkSource(CONTENT), { pOpts });
serveMetadata(new Metadata(version), { prefix: theirs, pOpts });
const peeked = await eventually(() => run("peek", `${theirs}`.replaceAll("8=", ""), "--object"));
check("namecast peek --object of what NDNts serves", peeked.equals(CONTENT), peeked.length);

const ours = new Name("/interop/objects-ours");
const put = spawn(namecast, ["put", "/interop/objects-ours", "--quiet", ...AT], { stdio: ["pipe", "ignore", "inherit"] });
put.stdin.end(CONTENT);
try {
  const cOpts = { fw, retx: 2 };
  const metadata = await eventually(() => retrieveMetadata(ours, cOpts));
  const fetched = Buffer.from(await fetch(metadata.name, { cOpts }));
  check("fetches what namecast put serves", fetched.equals(CONTENT), fetched.length);
} finally {
  put.kill();
}
face.close();
process.exit(0);
