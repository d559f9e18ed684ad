import type { Store } from "../player/known-keys.ts";

/** What the store's entries begin with; the name that is published follows. */
const PREFIX = "namecast-secret:";

/**
 * The secret of the key that signs what this browser publishes as `name`, 64 hexadecimal digits: made once and kept, so that
 * those who watch know the key again. Where the browser keeps nothing, it is another one each time.
 */
export function ownSecret(name: string, store: Pick<Store, "getItem" | "setItem"> | undefined, random: () => Uint8Array): string {
  return keptSecret(PREFIX + name, 32, store, random);
}

/** The secret of so many octets that `store` has as `entry`, in hexadecimal; made by `random` and kept if there is none. */
export function keptSecret(entry: string, octets: number, store: Pick<Store, "getItem" | "setItem"> | undefined, random: () => Uint8Array): string {
  const kept = store?.getItem(entry) ?? "";
  if (kept.length === 2 * octets && /^[0-9a-f]*$/.test(kept)) {
    return kept;
  }
  const secret = Array.from(random(), (octet) => octet.toString(16).padStart(2, "0")).join("");
  try {
    store?.setItem(entry, secret);
  } catch {
    // There is no room: the secret lives as long as the page.
  }
  return secret;
}
