import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { initSync, isSignedBy } from "../src/wasm/namecast_web.js";

const read = (file) => JSON.parse(readFileSync(new URL(`../../crates/packet/tests/vectors/${file}.json`, import.meta.url), "utf8"));
const octets = (hexadecimal) => Uint8Array.from(Buffer.from(hexadecimal, "hex"));
const KEYS = read("keys");
const VECTORS = read("data").vectors;

beforeAll(() => {
  initSync({ module: readFileSync(new URL("../src/wasm/namecast_web_bg.wasm", import.meta.url)) });
});

/** Packets of other implementations, under each kind of public key, as the core that browsers have judges them. */
test("signatures of others are right, and no other octet or key is", () => {
  const others = Object.values(KEYS).flatMap(({ spki_hex }) => spki_hex ?? []);
  const seen = new Set();
  for (const { id, wire, signature } of VECTORS) {
    const spki = KEYS[signature?.key ?? ""]?.spki_hex;
    if (spki === undefined) {
      continue;
    }
    seen.add(signature?.key ?? "");
    expect(isSignedBy(octets(wire), octets(spki)), id).toBe(true);
    for (const other of others.filter((other) => other !== spki)) {
      expect(isSignedBy(octets(wire), octets(other)), id).toBe(false);
    }
    const damaged = octets(wire);
    damaged[damaged.length - 1] ^= 1;
    expect(isSignedBy(damaged, octets(spki)), id).toBe(false);
  }
  expect([...seen].sort()).toEqual(["ecdsa_alice", "ed25519_bob", "rsa_carol"]);
});

test("keys that are malformed or too large are refused", () => {
  const spki = octets(KEYS.rsa_carol.spki_hex);
  const { wire } = VECTORS.find(({ id }) => id === "data-rsa");
  expect(() => isSignedBy(octets(wire), spki.subarray(0, -1))).toThrow("malformed key");
  // Another exponent, and an even one.
  const [other, even] = [Uint8Array.from(spki), Uint8Array.from(spki)];
  other[other.length - 1] = 3;
  even[even.length - 1] = 0;
  expect(isSignedBy(octets(wire), other)).toBe(false);
  expect(() => isSignedBy(octets(wire), even)).toThrow("malformed key");
});
