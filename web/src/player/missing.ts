import type { Lack } from "./state.ts";
import { t } from "../shared/language.ts";

/** Returns what this browser lacks to play at all; null: nothing. `securePage` is the page by https, as far as it is known. */
export function missing(securePage: string | undefined): Lack | null {
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
