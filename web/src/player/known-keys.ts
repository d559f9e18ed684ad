import type { KnownKey, KnownKeys } from "../shared/known-keys.ts";

/** What the store's entries begin with; the name of the stream follows. */
const PREFIX = "namecast-key:";
/** Keys that are remembered at most: about 100 octets each, of the five million that a browser gives a site. */
export const MAX_KEYS = 1_000;

/** The part of the browser's `localStorage` that is used. */
export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

/** What the browser keeps for this site, or, as `get` says, for this tab; some refuse to keep anything. */
export function browserStore(get: () => Store = () => localStorage): Store | undefined {
  try {
    return get();
  } catch {
    return undefined;
  }
}

/** Keys that this browser remembers. An entry for each stream, so that tabs that write at one time lose nothing. */
export class KnownKeyStore {
  readonly #store: Store | undefined;

  /** On `store`; undefined if the browser gives none. */
  constructor(store: Store | undefined) {
    this.#store = store;
  }

  /** All keys; entries that make no sense are left out. */
  all(): KnownKeys {
    const known: [string, KnownKey][] = [];
    for (const name of this.#names()) {
      const key = this.find(name);
      if (key !== undefined) {
        known.push([name, key]);
      }
    }
    return Object.fromEntries(known);
  }

  /** The key of `name`, if one is remembered. */
  find(name: string): KnownKey | undefined {
    return parseKnownKey(this.#store?.getItem(PREFIX + name) ?? "");
  }

  /**
   * Remembers the key of `name` unless there is one already. Returns the one that is remembered; undefined if the browser
   * keeps nothing, or no more.
   */
  remember(name: string, key: KnownKey): KnownKey | undefined {
    const known = this.find(name);
    if (known !== undefined || this.#store === undefined || this.#names().length >= MAX_KEYS) {
      return known;
    }
    try {
      this.#store.setItem(PREFIX + name, JSON.stringify(key));
    } catch {
      return undefined;
    }
    return key;
  }

  /** Forgets the key of `name`: the next one that is met is remembered. */
  forget(name: string): void {
    this.#store?.removeItem(PREFIX + name);
  }

  #names(): string[] {
    const store = this.#store;
    const entries = Array.from({ length: store?.length ?? 0 }, (_, index) => store?.key(index) ?? "");
    return entries.filter((entry) => entry.startsWith(PREFIX)).map((entry) => entry.slice(PREFIX.length));
  }
}

/** Reads an entry; undefined if it is none. */
function parseKnownKey(text: string): KnownKey | undefined {
  try {
    const { digest, since } = JSON.parse(text) as Partial<Record<keyof KnownKey, unknown>>;
    const isKey = typeof digest === "string" && /^[0-9a-f]{64}$/.test(digest);
    return isKey && typeof since === "string" && /^\d{4}-\d{2}-\d{2}$/.test(since) ? { digest, since } : undefined;
  } catch {
    return undefined;
  }
}
