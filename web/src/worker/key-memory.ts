import { keyChanged, type KnownKey } from "../shared/known-keys.ts";
import type { SignerEvent } from "./records.ts";

/** What is to be said of a signer. */
export interface SignerNotice {
  /** Empty if all is well. */
  text: string;
  /** Whether forgetting the remembered key would help. */
  canForget: boolean;
}

/** Follows who signs one stream, and finds the key to remember. */
export class KeyMemory {
  readonly #name: string;
  readonly #isPinned: boolean;
  #known: KnownKey | undefined;
  /** Digest of a key that is met for the first time, until something is here that it signed. */
  #candidate: string | undefined;

  /** @param isPinned whether the address of the page says which key it must be. */
  constructor(name: string, known: KnownKey | undefined, isPinned = false) {
    this.#name = name;
    this.#isPinned = isPinned;
    this.#known = known;
  }

  /** Takes a signer as the core judged it. */
  handleSigner(signer: SignerEvent): SignerNotice {
    this.#candidate = signer.memory === "new" ? signer.digest : undefined;
    if (signer.trusted) {
      return { text: "", canForget: false };
    }
    if (signer.memory === "changed" && this.#known !== undefined) {
      return { text: keyChanged(this.#name, this.#known.since), canForget: true };
    }
    if (this.#isPinned) {
      return { text: `${this.#name} is not signed by the key that this link names, so it is not shown. Whoever gave you the link may have a new one.`, canForget: false };
    }
    return { text: `The stream is signed by ${signer.name}, which was ${signer.verdict}. It is not shown.`, canForget: false };
  }

  /** The signer named last has signed what is here on day `today`. Returns its key if that is to be remembered. */
  handleVerified(today: string): KnownKey | undefined {
    const digest = this.#candidate;
    if (digest === undefined) {
      return undefined;
    }
    this.#candidate = undefined;
    this.#known = { digest, since: today };
    return this.#known;
  }
}
