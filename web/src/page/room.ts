import type { Store } from "../player/known-keys.ts";
import type { RoomConfig } from "../shared/room.ts";
import { keptSecret } from "./own-key.ts";

/** What the store's entries begin with; root and anchor of the room follow. */
const SECRET = "namecast-room-secret:";
const CERTIFICATE = "namecast-room-certificate:";

type Keeper = Pick<Store, "getItem" | "setItem"> | undefined;

/** What a link says of a room: root, digest of the anchor's key, token and name shown to the host; the last two may be empty. */
export interface RoomLink {
  root: string;
  key: string;
  token: string;
  label: string;
}

/** Reads the part of an address behind `#`: `#room=/calls/fox&key=DIGEST&t=TOKEN&name=Ann`; undefined: it leads to no room. */
export function parseRoom(hash: string): RoomLink | undefined {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const field = (name: string): string => fields.get(name) ?? "";
  const [root, key] = [field("room"), field("key")];
  return root.startsWith("/") && /^[0-9a-f]{64}$/.test(key) ? { root, key, token: field("t"), label: field("name") } : undefined;
}

/** The room that an address leads to, with what this browser has kept of it; undefined: it leads to none. */
export function roomOf(hash: string, store: Keeper, random: () => Uint8Array): RoomConfig | undefined {
  const link = parseRoom(hash);
  if (link === undefined) {
    return undefined;
  }
  const { root, key, token, label } = link;
  const certificate = store?.getItem(CERTIFICATE + root + key) ?? "";
  return {
    root,
    key,
    secret: keptSecret(SECRET + root + key, 32, store, random),
    ...(token === "" ? {} : { token }),
    label,
    ...(certificate === "" ? {} : { certificate }),
  };
}

/** Keeps the certificate of a member. Returns the address without the token, which is needed no more; undefined: the browser keeps nothing. */
export function keepCertificate({ root, key }: RoomConfig, certificate: string, store: Keeper): string | undefined {
  try {
    store?.setItem(CERTIFICATE + root + key, certificate);
  } catch {
    return undefined;
  }
  return store === undefined ? undefined : hashOf({ root, key });
}

/** The part of an address that leads members to a room, and strangers to a sentence. */
export function hashOf({ root, key }: Pick<RoomConfig, "root" | "key">): string {
  return `#room=${root}&key=${key}`;
}
