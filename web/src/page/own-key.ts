import type { Store } from "../player/known-keys.ts";

/** What the store's entries begin with; the name that is published follows. */
const PREFIX = "namecast-secret:";

/**
 * The secret of the key that signs what this browser publishes as `name`, 64 hexadecimal digits: made once and kept, so that
 * those who watch know the key again. Where the browser keeps nothing, it is another one each time.
 */
export function ownSecret(name: string, store: Store | undefined, random: () => Uint8Array): string {
  const kept = store?.getItem(PREFIX + name) ?? "";
  if (/^[0-9a-f]{64}$/.test(kept)) {
    return kept;
  }
  const secret = Array.from(random(), (octet) => octet.toString(16).padStart(2, "0")).join("");
  try {
    store?.setItem(PREFIX + name, secret);
  } catch {
    // There is no room: the key lives as long as the page.
  }
  return secret;
}
