import { expect, test } from "vitest";
import type { Store } from "../src/player/known-keys.ts";
import { latencies } from "../src/player/latencies.ts";
import { clampTarget } from "../src/player/options.ts";
import { keepPreferences, lastingQuality, readPreferences } from "../src/player/preferences.ts";

function store(text?: string): Store {
  const entries = new Map<string, string>(text === undefined ? [] : [["namecast-player", text]]);
  return {
    get length() {
      return entries.size;
    },
    key: () => null,
    getItem: (name) => entries.get(name) ?? null,
    setItem: (name, value) => void entries.set(name, value),
    removeItem: (name) => void entries.delete(name),
  };
}

test("choices are kept one by one", () => {
  const kept = store();
  expect(readPreferences(kept)).toEqual({});
  keepPreferences(kept, { volume: 0.4 });
  keepPreferences(kept, { muted: false, quality: "lowest" });
  keepPreferences(kept, { target: 400, volume: 0 });
  expect(readPreferences(kept)).toEqual({ volume: 0, muted: false, quality: "lowest", target: 400 });
});

test("choices that make no sense are left out, and a browser that keeps nothing is no error", () => {
  for (const text of ["", "null", "[]", "3", '{"volume":2,"muted":"no","quality":"3M","target":"x"}']) {
    expect(readPreferences(store(text))).toEqual({});
  }
  expect(readPreferences(store('{"target":9000}'))).toEqual({ target: 1_000 });
  expect(readPreferences(undefined)).toEqual({});
  expect(() => keepPreferences(undefined, { muted: true })).not.toThrow();
  const full: Store = {
    ...store(),
    setItem: () => {
      throw new DOMException("full", "QuotaExceededError");
    },
  };
  expect(() => keepPreferences(full, { muted: true })).not.toThrow();
});

test("a quality is kept by its place, as other streams have other names", () => {
  const names = ["3M", "1M", "200k"];
  expect(["auto", "highest", "3M", "1M", "200k"].map((quality) => lastingQuality(quality, names))).toEqual(["auto", "highest", "highest", undefined, "lowest"]);
  expect(lastingQuality("3M", ["3M"])).toBeUndefined();
});

test("latencies to choose from are targets that the slider has", () => {
  const targets = latencies().map(({ target }) => target);
  expect(targets.map(clampTarget)).toEqual(targets);
  expect(targets.toSorted((one, other) => one - other)).toEqual(targets);
});
