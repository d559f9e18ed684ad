// NDNts as a consumer of 3 Mbit/s over UDP, from an address that proves nothing.
//
// Usage: stranger.js UNIX-SOCKET ADDRESS. The producer is at the forwarder's Unix socket, the consumer at its UDP port 6363.
// Prints a line; ends with 1 if more than one Data packet of a hundred does not come.

import { consume, produce } from "@ndn/endpoint";
import { Forwarder } from "@ndn/fw";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UdpTransport, UnixTransport } from "@ndn/node-transport";
import { Data, Interest, digestSigning } from "@ndn/packet";

const [unix, host] = process.argv.slice(2);
const PREFIX = "/interop/stranger";
const SECONDS = 10;
const SIZE = 1_200;
const PACKETS = (3_000_000 / 8 / SIZE) * SECONDS;
// Interests that may be pending. Without a bound, a busy machine that holds NDNts up for a second gives it more than it can ever answer.
const PENDING = 64;

const near = Forwarder.create();
enableNfdPrefixReg(await UnixTransport.createFace({ fw: near, addRoutes: [] }, unix));
produce(PREFIX, async ({ name }) => new Data(name, new Uint8Array(SIZE)), { fw: near, dataSigner: digestSigning });
const far = Forwarder.create();
await UdpTransport.createFace({ fw: far, addRoutes: ["/"] }, { host, port: 6363 });
const fetched = (number) => {
  const interest = new Interest(`${PREFIX}/${number}`, Interest.Lifetime(4_000));
  return consume(interest, { fw: far, retx: 1 }).then(() => 1, () => 0);
};
while (!(await fetched("first"))) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const begun = Date.now();
let [sent, came] = [0, 0];
const consumer = async () => {
  while (sent < PACKETS) {
    const due = begun + (sent / PACKETS) * SECONDS * 1_000;
    if (Date.now() < due) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    } else {
      const one = await fetched(sent++);
      came += one;
    }
  }
};
await Promise.all(Array.from({ length: PENDING }, consumer));
const isEnough = came >= 0.99 * PACKETS;
console.log(`${isEnough ? "ok" : "FAILED"}  a stranger: 3 Mbit/s by UDP, with NDNts: ${came} of ${PACKETS} Data packets`);
process.exit(isEnough ? 0 : 1);
