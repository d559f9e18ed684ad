import { keptSecret } from "../page/own-key.ts";
import type { Store } from "../player/known-keys.ts";

/** What the tab's storage has its entries begin with; the token follows. */
const PREFIX = "namecast-ticket:";

/**
 * What shows the node that this tab may publish: the token of the link (`#` and 32 hexadecimal digits), and a secret that this tab
 * makes when it first has the link. The node admits whoever used the token first, and then that secret alone; it stays in
 * `sessionStorage`, so that the tab goes on after it was loaded anew, and no other tab can.
 *
 * @returns 64 hexadecimal digits; undefined if the link has no token.
 */
export function ticketOf(hash: string, store: Pick<Store, "getItem" | "setItem"> | undefined, random: () => Uint8Array): string | undefined {
  const [, token] = /^#([0-9a-f]{32})$/.exec(hash) ?? [];
  if (token === undefined) {
    return undefined;
  }
  return token + keptSecret(PREFIX + token, 16, store, random);
}
