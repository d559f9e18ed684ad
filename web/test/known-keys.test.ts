import { describe, expect, test } from "vitest";
import { KnownKeyStore, MAX_KEYS, type Store } from "../src/player/known-keys.ts";
import { ownSecret } from "../src/page/own-key.ts";
import { KeyMemory } from "../src/worker/key-memory.ts";
import type { SignerEvent } from "../src/worker/records.ts";

const ONE = "01".repeat(32);
const TWO = "02".repeat(32);
const DAY = "2026-05-01";

/** A store as browsers have, that takes so many entries. */
class FakeStore implements Store {
  readonly entries = new Map<string, string>([["theme", "dark"]]);
  constructor(readonly capacity = Infinity) {}
  get length(): number {
    return this.entries.size;
  }
  key(index: number): string | null {
    return [...this.entries.keys()][index] ?? null;
  }
  getItem(key: string): string | null {
    return this.entries.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    if (this.entries.size >= this.capacity) {
      throw new DOMException("full", "QuotaExceededError");
    }
    this.entries.set(key, value);
  }
  removeItem(key: string): void {
    this.entries.delete(key);
  }
}

describe("known keys", () => {
  test("stay as they were first seen until they are forgotten", () => {
    const store = new FakeStore();
    const keys = new KnownKeyStore(store);
    expect(keys.remember("/cam", { digest: ONE, since: DAY })).toEqual({ digest: ONE, since: DAY });
    expect(keys.remember("/cam", { digest: TWO, since: "2026-06-01" })).toEqual({ digest: ONE, since: DAY });
    expect(keys.remember("/cam/b", { digest: TWO, since: DAY })?.digest).toBe(TWO);
    // Another tab has its own view of the same store.
    expect(new KnownKeyStore(store).all()).toEqual({ "/cam": { digest: ONE, since: DAY }, "/cam/b": { digest: TWO, since: DAY } });
    keys.forget("/cam");
    expect(keys.find("/cam")).toBeUndefined();
    expect(keys.remember("/cam", { digest: TWO, since: DAY })?.digest).toBe(TWO);
    expect(store.getItem("theme")).toBe("dark");
  });

  test("have any name", () => {
    const keys = new KnownKeyStore(new FakeStore());
    for (const name of ["__proto__", "constructor", "/a%20b", ""]) {
      expect(keys.find(name)).toBeUndefined();
      keys.remember(name, { digest: ONE, since: DAY });
      expect(keys.find(name)?.digest).toBe(ONE);
    }
    expect(Object.keys(keys.all()).sort()).toEqual(["", "/a%20b", "__proto__", "constructor"]);
  });

  test("that make no sense are none", () => {
    const store = new FakeStore();
    const keys = new KnownKeyStore(store);
    for (const wrong of ["", "null", "[]", "{", `{"digest":"${ONE}"}`, `{"digest":"${ONE.slice(1)}","since":"${DAY}"}`, `{"digest":"${ONE}","since":"<b>"}`]) {
      store.setItem("namecast-key:/cam", wrong);
      expect(keys.find("/cam")).toBeUndefined();
      expect(keys.all()).toEqual({});
    }
  });

  test("are bounded, and a browser may keep none", () => {
    const store = new FakeStore();
    const keys = new KnownKeyStore(store);
    for (let index = 1; index < MAX_KEYS; index += 1) {
      store.setItem(`namecast-key:/${index}`, JSON.stringify({ digest: ONE, since: DAY }));
    }
    expect(keys.remember("/0", { digest: ONE, since: DAY })).toBeDefined();
    expect(keys.remember("/more", { digest: ONE, since: DAY })).toBeUndefined();
    expect(keys.find("/0")?.digest).toBe(ONE);
    expect(new KnownKeyStore(new FakeStore(1)).remember("/cam", { digest: ONE, since: DAY })).toBeUndefined();
    const none = new KnownKeyStore(undefined);
    expect([none.remember("/cam", { digest: ONE, since: DAY }), none.find("/cam"), none.all()]).toEqual([undefined, undefined, {}]);
  });
});

describe("the signer", () => {
  const signer = (memory: SignerEvent["memory"], digest = ONE): SignerEvent => ({
    type: "signer",
    name: "/cam/KEY/1",
    digest,
    verdict: "refused: why",
    trusted: memory === "new" || memory === "known",
    memory,
  });

  test("is remembered once, when it has signed something", () => {
    const keys = new KeyMemory(undefined);
    expect(keys.handleVerified(DAY)).toBeUndefined();
    expect(keys.handleSigner(signer("new"))).toBeNull();
    // A forger's: nothing came that it signed.
    keys.handleSigner(signer("none"));
    expect(keys.handleVerified(DAY)).toBeUndefined();
    keys.handleSigner(signer("new", TWO));
    expect([keys.handleVerified(DAY), keys.handleVerified(DAY)]).toEqual([{ digest: TWO, since: DAY }, undefined]);
    keys.handleSigner(signer("known"));
    expect(keys.handleVerified(DAY)).toBeUndefined();
    // The publisher starts again with another key while the page is open.
    expect(keys.handleSigner(signer("changed"))).toMatchObject({ why: "changed", since: DAY });
  });

  test("with another key than the remembered one can be accepted by forgetting that", () => {
    const keys = new KeyMemory({ digest: TWO, since: DAY });
    expect(keys.handleSigner(signer("changed"))).toMatchObject({ why: "changed", since: DAY });
    expect(keys.handleVerified(DAY)).toBeUndefined();
  });

  test("that was refused for another reason is named with it", () => {
    const refusal = { signer: "/cam/KEY/1", verdict: "refused: why", since: "" };
    expect(new KeyMemory(undefined).handleSigner(signer("none"))).toEqual({ ...refusal, why: "untrusted" });
    expect(new KeyMemory(undefined, true).handleSigner(signer("none"))).toEqual({ ...refusal, why: "pinned" });
  });
});

describe("the key of what the page publishes", () => {
  const random = () => new Uint8Array(32).fill(0xab);

  test("is made once for each name, and kept", () => {
    const store = new FakeStore();
    const secret = ownSecret("/a", store, random);
    expect(secret).toBe("ab".repeat(32));
    expect(ownSecret("/a", store, () => new Uint8Array(32))).toBe(secret);
    expect(ownSecret("/b", store, () => new Uint8Array(32))).toBe("00".repeat(32));
  });

  test("is there where nothing is kept, or what is kept is damaged", () => {
    expect(ownSecret("/a", undefined, random)).toBe("ab".repeat(32));
    expect(ownSecret("/a", new FakeStore(1), random)).toBe("ab".repeat(32));
    const store = new FakeStore();
    store.setItem("namecast-secret:/a", "xyz");
    expect(ownSecret("/a", store, random)).toBe("ab".repeat(32));
  });
});
