// A member of a group by NDNts's SvSync: publishes so many times, and prints the state vector whenever it hears of news.
//
// Usage: group.js UNIX-SOCKET GROUP MEMBER PUBLICATIONS, where the strategy of GROUP is multicast.

import { setTimeout } from "node:timers/promises";

import { Forwarder } from "@ndn/fw";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { digestSigning, Name } from "@ndn/packet";
import { SvSync } from "@ndn/svs";

const [unix, group, member, publications] = process.argv.slice(2);

const fw = Forwarder.create();
const face = await UnixTransport.createFace({ fw, addRoutes: ["/"] }, unix);
enableNfdPrefixReg(face);
const sync = await SvSync.create({
  syncPrefix: new Name(group), fw, signer: digestSigning, verifier: digestSigning, svs3: true,
});
// It announces the group's name, but others have a longer prefix.
sync.face.addAnnouncement(sync.syncInterestName);

const vector = new Map();
function show(name, number) {
  vector.set(name, Math.max(number, vector.get(name) ?? 0));
  const parts = [...vector].sort().map(([name, number]) => ` ${name}=${number}`);
  console.log(`vector${parts.join("")}`);
}

const uri = (name) => `${name}`.replaceAll("8=", "");
sync.addEventListener("update", ({ node, hiSeqNum }) => show(uri(node.id.name), hiSeqNum));
const own = sync.add(member);
for (let count = 0; count < Number(publications); count++) {
  await setTimeout(1000);
  own.seqNum++;
  show(uri(own.id.name), own.seqNum);
}
