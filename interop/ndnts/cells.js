// NDNts as a client of a forwarder's management, and as producer and consumer through it.
//
// Usage: cells.js UNIX-SOCKET TCP-PORT UDP-PORT WEBSOCKET-PORT. Prints a line for each cell; ends with 1 if one fails.

import { consume, produce } from "@ndn/endpoint";
import { Forwarder, FwPacket } from "@ndn/fw";
import { generateSigningKey } from "@ndn/keychain";
import { L3Face } from "@ndn/l3face";
import {
  CsInfo, FaceQuery, FaceStatus, GeneralStatus, RibEntry, StrategyChoice, enableNfdPrefixReg, getPrefix, invoke, list,
} from "@ndn/nfdmgmt";
import { TcpTransport, UdpTransport, UnixTransport } from "@ndn/node-transport";
import { Data, Interest, Nack, Name } from "@ndn/packet";
import { WsTransport } from "@ndn/ws-transport";

const [unix, tcp, udp, webSocket] = process.argv.slice(2);
const TRANSPORTS = {
  Unix: [UnixTransport, unix],
  TCP: [TcpTransport, "127.0.0.1", Number(tcp)],
  UDP: [UdpTransport, { host: "127.0.0.1", port: Number(udp) }],
  WebSocket: [WsTransport, `ws://127.0.0.1:${webSocket}/ws`],
};
const PREFIX = "/interop/ndnts";
const TIMEOUT_MS = 20_000;
/** Content of a small packet, and of one that takes fragments or a large datagram. */
const LENGTHS = { small: 40, large: 8000 };

function check(cell, condition, seen = "") {
  console.log(`${condition ? "ok" : "FAILED"}  NDNts: ${cell} ${condition ? "" : seen}`);
  if (!condition) {
    process.exit(1);
  }
}

/** Tries until it is true, or seconds are over. */
async function eventually(isTrue) {
  const end = Date.now() + TIMEOUT_MS;
  while (!(await isTrue())) {
    if (Date.now() > end) {
      return false;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

/** A node of its own with a face to the forwarder under test. */
async function connect(transport, addRoutes = ["/"]) {
  const fw = Forwarder.create();
  const [Transport, ...address] = TRANSPORTS[transport];
  const face = await Transport.createFace({ fw, addRoutes }, ...address);
  return { fw, face };
}

function content(transport, length) {
  return new Uint8Array(length).fill(transport.length);
}

/** The prefixes that have routes. */
async function routes(options) {
  const entries = await list(RibEntry, options);
  return entries.map(({ name }) => `${name.toString().replaceAll("8=", "")}`);
}

async function produceAndConsume(options) {
  const [signer, verifier] = await generateSigningKey("/interop/ndnts/key");
  const producers = [];
  for (const transport of Object.keys(TRANSPORTS)) {
    const { fw, face } = await connect(transport, []);
    enableNfdPrefixReg(face);
    const answer = async ({ name }) => {
      const length = LENGTHS[name.get(-2).text];
      return new Data(name, Data.FreshnessPeriod(1000), content(transport, length));
    };
    const prefix = `${PREFIX}/${transport}`;
    producers.push({ transport, face, producer: produce(prefix, answer, { fw, dataSigner: signer }) });
    const isThere = await eventually(async () => (await routes(options)).includes(prefix));
    check(`registers a prefix over ${transport}`, isThere);
  }
  for (const from of Object.keys(TRANSPORTS)) {
    for (const to of Object.keys(TRANSPORTS)) {
      for (const [size, length] of Object.entries(LENGTHS)) {
        const { fw, face } = await connect(to);
        const interest = new Interest(`${PREFIX}/${from}/${size}/${to}`, Interest.Lifetime(TIMEOUT_MS));
        let data;
        try {
          data = await consume(interest, { fw, verifier });
        } catch (error) {
          check(`${size} Data from ${from} to ${to}`, false, error);
        }
        const isRight = Buffer.compare(data.content, content(from, length)) === 0;
        check(`${size} Data from ${from} to ${to}, verified`, isRight, data.content);
        face.close();
      }
    }
  }
  const [, other] = await generateSigningKey("/interop/ndnts/other");
  const { fw, face } = await connect("Unix");
  const forged = consume(new Interest(`${PREFIX}/Unix/small/forged`), { fw, verifier: other });
  const refused = await forged.then(() => false, () => true);
  check("refuses Data that another key signed", refused);
  face.close();
  for (const { transport, producer, face } of producers) {
    producer.close();
    const isGone = await eventually(async () => !(await routes(options)).includes(`${PREFIX}/${transport}`));
    check(`takes the route over ${transport} back`, isGone);
    face.close();
  }
}

async function readDatasets(options) {
  const [general] = await list(GeneralStatus, options);
  check("reads status/general", general.nfdVersion.startsWith("namecast-"), general.nfdVersion);
  const faces = await list(FaceStatus, options);
  check("reads faces/list", faces.some(({ uri }) => uri === "internal://management"), faces.length);
  const internal = await list(FaceQuery({ uriScheme: "internal" }), options);
  const areInternal = internal.length > 0 && internal.length < faces.length;
  check("asks faces/query", areInternal && internal.every(({ uri }) => uri.startsWith("internal:")), internal.length);
  const [store] = await list(CsInfo, options);
  check("reads cs/info", store.capacity > 0n && store.flagEnableServe, store.capacity);
  const choices = await list(StrategyChoice, options);
  check("reads strategy-choice/list", choices.some(({ name }) => name.length === 0), choices.length);
}

async function manage(options) {
  const created = await invoke("faces/create", { uri: "udp4://127.0.0.1:9" }, options);
  check("creates a face", created.statusCode === 200, created.statusText);
  const [face] = await list(FaceQuery({ uri: "udp4://127.0.0.1:9" }), options);
  check("finds it by its address", face?.uri === "udp4://127.0.0.1:9");
  const { faceId } = face;
  const name = new Name(`${PREFIX}/managed`);
  const registered = await invoke("rib/register", { name, faceId, origin: 255, cost: 7 }, options);
  check("registers a route to it", registered.statusCode === 200, registered.statusText);
  const entries = await list(RibEntry, options);
  const entry = entries.find((entry) => entry.name.equals(name));
  check("finds it in rib/list", entry?.route[0].faceId === faceId && entry.route[0].cost === 7);
  const removed = await invoke("rib/unregister", { name, faceId, origin: 255 }, options);
  check("takes it back", removed.statusCode === 200, removed.statusText);
  const strategy = new Name("/localhost/nfd/strategy/multicast/54=%05");
  const unknown = await invoke("strategy-choice/set", { name, strategy: new Name("/none") }, options);
  check("is refused an unknown strategy", unknown.statusCode === 404, unknown.statusCode);
  const set = await invoke("strategy-choice/set", { name, strategy }, options);
  check("sets a strategy", set.statusCode === 200, set.statusText);
  const unset = await invoke("strategy-choice/unset", { name }, options);
  check("unsets it", unset.statusCode === 200, unset.statusText);
  const erased = await invoke("cs/erase", { name: new Name(PREFIX) }, options);
  check("erases cached Data", erased.statusCode === 200, erased.statusText);
  const destroyed = await invoke("faces/destroy", { faceId }, options);
  check("destroys the face", destroyed.statusCode === 200, destroyed.statusText);
}

/** What an Interest without a route brings: NDNts' forwarder drops Nacks, so its link service is asked. */
async function isRefused(transport) {
  const [Transport, ...address] = TRANSPORTS[transport];
  const face = new L3Face(await Transport.connect(...address));
  const interest = new Interest(`/nowhere/${transport}`, Interest.Lifetime(TIMEOUT_MS));
  let end;
  const ended = new Promise((resolve) => { end = resolve; });
  face.tx((async function*() {
    yield FwPacket.create(interest, 77);
    await ended;
  })());
  let seen;
  const timer = setTimeout(end, TIMEOUT_MS);
  const first = (async () => {
    for await (const packet of face.rx) {
      return packet;
    }
  })();
  seen = await Promise.race([first, ended]);
  clearTimeout(timer);
  end();
  const isRight = seen?.l3 instanceof Nack && seen.l3.interest.name.equals(interest.name) && seen.token === 77;
  check(`gets a Nack where no route leads, over ${transport}`, isRight && seen.l3.reason === NO_ROUTE, seen?.l3);
}

/** NDNLPv2's number. */
const NO_ROUTE = 150;

const { fw, face } = await connect("Unix");
const options = { cOpts: { fw, retx: 1 }, prefix: getPrefix(true) };
await readDatasets(options);
await manage(options);
await produceAndConsume(options);
for (const transport of Object.keys(TRANSPORTS)) {
  await isRefused(transport);
}
face.close();
process.exit(0);
