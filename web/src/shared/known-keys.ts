/** A key that a stream was signed with when it was first met. */
export interface KnownKey {
  /** SHA-256 of the public key, in hexadecimal. */
  digest: string;
  /** Day on which it was first seen, as in 2026-05-01 (UTC). */
  since: string;
}

/** Remembered keys by name of the stream. */
export type KnownKeys = Record<string, KnownKey>;
