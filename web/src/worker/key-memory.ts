import type { SignerRefusal } from "../shared/facts.ts";
import type { KnownKey } from "../shared/known-keys.ts";
import type { SignerEvent } from "./records.ts";

/** Follows who signs one stream, and finds the key to remember. */
export class KeyMemory {
  readonly #isPinned: boolean;
  #known: KnownKey | undefined;
  /** Digest of a key that is met for the first time, until something is here that it signed. */
  #candidate: string | undefined;

  /** @param isPinned whether the address of the page says which key it must be. */
  constructor(known: KnownKey | undefined, isPinned = false) {
    this.#isPinned = isPinned;
    this.#known = known;
  }

  /** Records a signer as the core judged it. Returns why its stream is not shown; null: it is. */
  handleSigner(signer: SignerEvent): SignerRefusal | null {
    this.#candidate = signer.memory === "new" ? signer.digest : undefined;
    if (signer.trusted) {
      return null;
    }
    const refusal = { signer: signer.name, verdict: signer.verdict, since: this.#known?.since ?? "" };
    if (signer.memory === "changed" && this.#known !== undefined) {
      return { ...refusal, why: "changed" };
    }
    return { ...refusal, why: this.#isPinned ? "pinned" : "untrusted" };
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
