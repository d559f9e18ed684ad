import type { KnownKeys } from "../shared/known-keys.ts";
import type { Options, Report } from "../shared/messages.ts";
import { fetchNode, fetchStream } from "../shared/node.ts";

/** Pause before a node or a stream that does not answer is asked again, in milliseconds. */
const PAUSE = 3_000;

/**
 * Plays a stream in browsers without WebCodecs: as the HLS that the node makes of it, over HTTP. The node checks the signatures; the
 * player asks it whose they are, and refuses another key than the link or this browser knows. It reports what a worker would.
 */
export class NodeSegments {
  readonly #report: (report: Report) => void;
  #current: AbortController | undefined;

  constructor(report: (report: Report) => void) {
    this.#report = report;
  }

  /** Begins to play what `options` name, or what the node at `base` offers. */
  start(base: URL, options: Options, known: KnownKeys): void {
    this.stop();
    this.#current = new AbortController();
    void this.#run(base, options, known, this.#current.signal);
  }

  stop(): void {
    this.#current?.abort();
    this.#current = undefined;
  }

  async #run(base: URL, options: Options, known: KnownKeys, signal: AbortSignal): Promise<void> {
    const node = await answered(() => fetchNode(base.href).catch(() => undefined), () => this.#report({ type: "facts", facts: { server: "silent" } }), signal);
    if (node === undefined) {
      return;
    }
    const name = options.name ?? node.name;
    this.#report({ type: "facts", facts: { server: "answers", link: { isUp: true, lost: null } } });
    this.#report({ type: "name", name });
    const about = await answered(() => fetchStream(name), () => undefined, signal);
    if (about === undefined) {
      return;
    }
    const remembered = Object.hasOwn(known, name) ? known[name] : undefined;
    const expected = options.key ?? remembered?.digest;
    if (expected !== undefined && expected.toLowerCase() !== about.key) {
      const why = options.key === undefined ? "changed" : "pinned";
      this.#report({ type: "facts", facts: { refusal: { why, signer: "", verdict: "", since: remembered?.since ?? "" } } });
      return;
    }
    this.#report({ type: "title", title: about.title });
    this.#report({ type: "package", info: { name, version: 0, address: new URL(`/hls${name}/index.m3u8`, base).href } });
  }
}

/** Requests until there is an answer, or nobody wants it any more: then undefined. */
async function answered<T>(request: () => Promise<T | undefined>, silent: () => void, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    const answer = await request();
    if (answer !== undefined) {
      return signal.aborted ? undefined : answer;
    }
    silent();
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  return undefined;
}
