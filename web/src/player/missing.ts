import type { Lack } from "./state.ts";

/** Returns what this browser lacks to play at all; null: nothing. */
export function missing(): Lack | null {
  if (!isSecureContext) {
    const { host, pathname, search } = location;
    const sentence = `Browsers decode video only on secure pages. Open https://${host}${pathname}${search}, or the page on the node's own machine.`;
    return { kind: "insecure", sentence };
  }
  const sentence = lackOf();
  return sentence === "" ? null : { kind: "unsupported", sentence };
}

function lackOf(): string {
  if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") {
    return "This browser has no WebAssembly or no workers, which the player needs. Try a newer one.";
  }
  if (typeof VideoDecoder === "undefined") {
    return "This browser has no WebCodecs, which live video needs. Try Chrome, Edge, Firefox 130, Safari 16.4 or later.";
  }
  if (!("transferControlToOffscreen" in HTMLCanvasElement.prototype)) {
    return "This browser cannot draw from a worker (OffscreenCanvas). Try a newer one.";
  }
  return "";
}
