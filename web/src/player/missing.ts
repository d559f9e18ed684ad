import type { Lack } from "./state.ts";
import { t } from "../shared/language.ts";
import { fetchNode } from "../shared/node.ts";

/** What a player needs of its browser, and what to do where that is missing. */
export class Requirements {
  readonly #changed: () => void;
  /** The page by https, for browsers that decode only there. */
  #securePage: string | undefined;
  #isOwnNode = false;

  /** @param changed more is known of the remedy */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** What is missing; null: nothing. */
  lack(): Lack | null {
    return this.playsSegments ? null : missing(this.#securePage);
  }

  /**
   * Throws if something is missing, as a `<video>` does.
   *
   * @throws DOMException NotSupportedError
   */
  check(): void {
    const lack = this.lack();
    if (lack !== null) {
      this.#changed();
      throw new DOMException(lack.sentence, "NotSupportedError");
    }
  }

  /** Whether this browser decodes no frames, but plays segments: those of the page's own node. */
  get playsSegments(): boolean {
    return isSecureContext && this.#isOwnNode && typeof VideoDecoder === "undefined" && ("MediaSource" in globalThis || "ManagedMediaSource" in globalThis);
  }

  /** Learns where the page is by https. Browsers decode nothing on pages by plain http, but they read what the node says. */
  async find(base: URL): Promise<void> {
    this.#isOwnNode = base.origin === location.origin;
    if (!isSecureContext && this.#isOwnNode) {
      const node = await fetchNode(base.href).catch(() => undefined);
      this.#securePage = node?.securePage && new URL(base.search, node.securePage).href;
      this.#changed();
    }
  }

  /** Opens the page by https. */
  remedy(): void {
    if (this.#securePage !== undefined) {
      location.assign(this.#securePage);
    }
  }
}

/** Returns what this browser lacks to play at all; null: nothing. `securePage` is the page by https, as far as it is known. */
function missing(securePage: string | undefined): Lack | null {
  if (!isSecureContext) {
    return { kind: "insecure", sentence: insecure(securePage), remedy: securePage ?? null };
  }
  const sentence = lackOf();
  return sentence === "" ? null : { kind: "unsupported", sentence, remedy: null };
}

function insecure(securePage: string | undefined): string {
  if (securePage === undefined) {
    return t("Browsers decode video only on secure pages, and this one came by plain http. Open it by https, which a node has with --listen, or on the node's own machine.");
  }
  return t("Browsers decode video only on secure pages, and this one came by plain http. Open {address} instead.", { address: new URL(securePage).origin });
}

function lackOf(): string {
  if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") {
    return t("This browser has no WebAssembly or no workers, which the player needs. Try a newer one.");
  }
  if (typeof VideoDecoder === "undefined") {
    return t("This browser has no WebCodecs, which live video needs. Try Chrome, Edge, Firefox 130, Safari 16.4 or later.");
  }
  if (!("transferControlToOffscreen" in HTMLCanvasElement.prototype)) {
    return t("This browser cannot draw from a worker (OffscreenCanvas). Try a newer one.");
  }
  return "";
}
