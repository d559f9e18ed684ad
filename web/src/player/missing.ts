/** What this browser lacks to play at all; empty if nothing. */
export function missing(): string {
  if (!isSecureContext) {
    return "Browsers decode video only on pages that come by https or from the machine itself, and this one came by plain http from another. Open it by https, or on the machine that publishes as http://127.0.0.1.";
  }
  if (typeof WebAssembly === "undefined" || typeof Worker === "undefined") {
    return "This browser has no WebAssembly or no workers, which this page is made of.";
  }
  if (typeof VideoDecoder === "undefined") {
    return "This browser has no WebCodecs, so it cannot decode live video. Chrome, Edge, Firefox 130 or Safari 16.4 and later can.";
  }
  if (!("transferControlToOffscreen" in HTMLCanvasElement.prototype)) {
    return "This browser cannot draw from a worker (OffscreenCanvas). A newer one can.";
  }
  return "";
}
