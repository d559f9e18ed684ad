import type { Report } from "../shared/messages.ts";

/** Clips that a page requested of its worker. */
export class Clips {
  readonly #request: () => boolean;
  #waiting: { resolve: (clip: Blob) => void; reject: (error: Error) => void }[] = [];

  /** @param request has the worker make one; returns whether anything plays */
  constructor(request: () => boolean) {
    this.#request = request;
  }

  /** Requests a clip. Several requests at a time get the same. */
  make(): Promise<Blob> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (this.#waiting.length === 1 && !this.#request()) {
        this.handle({ type: "noClip", why: "nothing plays" });
      }
    });
  }

  /** Takes what the worker made. */
  handle(report: Extract<Report, { type: "clip" | "noClip" }>): void {
    for (const { resolve, reject } of this.#waiting.splice(0)) {
      if (report.type === "clip") {
        resolve(new Blob([report.file], { type: "video/mp4" }));
      } else {
        reject(new DOMException(report.why, "InvalidStateError"));
      }
    }
  }
}
