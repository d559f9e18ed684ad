/** Octets of the secret that shows whose link it is. */
const SECRET_SIZE = 16;

/**
 * What shows the node that this browser may publish: the token of the link (`#` and 32 hexadecimal digits), and a secret. The node
 * admits whoever used the token first, and then that secret alone, for a day after it was shown last. It follows from the key that
 * signs (`key`, its secret in hexadecimal), so that whoever opens the link again has it, and nobody else.
 *
 * @returns 64 hexadecimal digits; undefined if the link has no token.
 */
export async function ticketOf(hash: string, key: string): Promise<string | undefined> {
  const [, token] = /^#([0-9a-f]{32})$/.exec(hash) ?? [];
  if (token === undefined) {
    return undefined;
  }
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`namecast-ticket ${token} ${key}`));
  const octets = [...new Uint8Array(digest)].slice(0, SECRET_SIZE);
  return token + octets.map((octet) => octet.toString(16).padStart(2, "0")).join("");
}
