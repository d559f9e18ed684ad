/** A key that a stream was signed with when it was first met. */
export interface KnownKey {
  /** SHA-256 of the public key, in hexadecimal. */
  digest: string;
  /** Day on which it was first seen, as in 2026-05-01 (UTC). */
  since: string;
}

/** Remembered keys by name of the stream. */
export type KnownKeys = Record<string, KnownKey>;

/** What people read of a stream whose key is not the remembered one. */
export function keyChanged(name: string, since: string): string {
  return `${name} is signed by another key than the one remembered on ${since}. It is not shown. If the publisher really has a new key, forget the old one.`;
}
