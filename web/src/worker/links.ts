import type { NodeInfo } from "../shared/node.ts";
import type { Transport } from "../shared/summary.ts";
import { message, openWebSocket, openWebTransport, type Link, type LinkEvents } from "./link.ts";

/** What `Links` needs of the rest. */
export interface LinksHost {
  /** Asks the server what it offers; certificates change, so this is asked before each connection. */
  fetchNode(): Promise<NodeInfo>;
  up(link: Link, node: NodeInfo): void;
  down(reason: string): void;
  frame(octets: Uint8Array<ArrayBuffer>): void;
  /** The browser dropped packets that had arrived, as nobody read them in time. */
  dropped?(): void;
  /** Something worth telling about which transport is used and why. */
  step(text: string): void;
}

/** Head start of WebTransport before WebSocket is tried too, in milliseconds. */
const HEAD_START = 500;
/** How long one attempt may take, in milliseconds. */
const ATTEMPT_LIMIT = 3_000;
/** Pause before the next attempt: doubles from the first to the last, in milliseconds. */
const FIRST_PAUSE = 100;
const LAST_PAUSE = 2_000;
/** Silence after which the server is asked whether it still lives, in milliseconds: it answers each Interest, if only with a Nack. */
const SILENCE_ASK = 2_000;
/** Silence after which a new connection is made whatever the server says: doubles while that brings nothing, in milliseconds. */
const FIRST_SILENCE_LIMIT = 6_000;
const LAST_SILENCE_LIMIT = 60_000;

/** One attempt to connect, and why each transport failed in it. */
interface Attempt {
  node: NodeInfo;
  lost: string[];
}

/** Keeps one transport up: tries, falls back, notices silence, and tries again. */
export class Links {
  readonly #host: LinksHost;
  readonly #only: Transport | undefined;
  #link: Link | undefined;
  #pause = FIRST_PAUSE;
  #heardAt = 0;
  #silenceLimit = FIRST_SILENCE_LIMIT;
  /** Whether something was sent since the node was heard, and when it was first. */
  #sentSince = false;
  #askedAt = 0;
  #asking = false;
  /** Packets of this connection that the browser dropped. */
  #dropped = 0;
  #connecting = false;
  #closed = false;
  #hash = "";
  /** Until when tests keep everything from passing, and from connecting. */
  #blackholeUntil = 0;
  #refuseUntil = 0;

  constructor(host: LinksHost, only: Transport | undefined) {
    this.#host = host;
    this.#only = only;
  }

  /** The connection, while there is one. */
  get link(): Link | undefined {
    return this.#link;
  }

  /** Connects now, and again whenever the connection ends. `node`: what the server said a moment ago, if it was asked. */
  async connect(node?: NodeInfo): Promise<void> {
    if (this.#connecting) {
      return;
    }
    this.#connecting = true;
    let told: string | undefined;
    for (let failure = await this.#attempt(node); failure !== undefined; failure = await this.#attempt()) {
      if (failure !== told) {
        told = failure;
        this.#host.step(`No connection, trying again and again: ${failure}`);
      }
      await pause(this.#pause);
      this.#pause = Math.min(LAST_PAUSE, this.#pause * 2);
    }
    this.#connecting = false;
  }

  /** Time since which the node has answered nothing that was sent, in milliseconds; 0: it answers. */
  unanswered(now: number): number {
    return this.#link !== undefined && this.#sentSince ? now - Math.max(this.#heardAt, this.#askedAt) : 0;
  }

  /** Ends the connection for good. */
  close(): void {
    this.#closed = true;
    this.#link?.close();
    this.#link = undefined;
  }

  send(frame: Uint8Array<ArrayBuffer>): void {
    if (performance.now() >= this.#blackholeUntil) {
      this.#link?.send(frame);
    }
    if (!this.#sentSince) {
      this.#sentSince = true;
      this.#askedAt = performance.now();
    }
  }

  /** To be called about once a second: notices a transport that is up but dead, and packets that were dropped here. */
  async watch(): Promise<void> {
    void this.#countDrops();
    const silence = performance.now() - this.#heardAt;
    if (this.#link === undefined || !this.#sentSince || silence < SILENCE_ASK || this.#asking) {
      return;
    }
    if (silence >= this.#silenceLimit) {
      this.#silenceLimit = Math.min(LAST_SILENCE_LIMIT, this.#silenceLimit * 2);
      this.#lose("nothing arrives any more");
      return;
    }
    this.#asking = true;
    const silent = this.#link;
    try {
      const node = await this.#host.fetchNode();
      if (this.#link === silent && hashOf(node) !== this.#hash) {
        this.#lose("the server was started again");
      }
    } catch {
      if (this.#link === silent) {
        this.#lose("the server does not answer");
      }
    } finally {
      this.#asking = false;
    }
  }

  async #countDrops(): Promise<void> {
    const link = this.#link;
    const dropped = await link?.dropped?.().catch(() => 0);
    if (link !== undefined && link === this.#link && dropped !== undefined) {
      if (dropped > this.#dropped) {
        this.#host.dropped?.();
      }
      this.#dropped = dropped;
    }
  }

  /** Loses everything in both directions for a while. */
  blackhole(milliseconds: number): void {
    this.#blackholeUntil = performance.now() + milliseconds;
  }

  /** Closes the transport, and connects no sooner than after `milliseconds`. */
  disconnect(milliseconds: number): void {
    this.#refuseUntil = performance.now() + milliseconds;
    this.#lose("it was cut on purpose");
  }

  /** One attempt; the reason if it failed. */
  async #attempt(known?: NodeInfo): Promise<string | undefined> {
    if (this.#closed) {
      return undefined;
    }
    if (performance.now() < this.#refuseUntil) {
      return "it was cut on purpose";
    }
    try {
      const node = known ?? (await this.#host.fetchNode());
      const link = await this.#race(node);
      if (this.#closed) {
        link.close();
        return undefined;
      }
      this.#hash = hashOf(node);
      this.#link = link;
      this.#dropped = 0;
      this.#pause = FIRST_PAUSE;
      this.#heardAt = performance.now();
      this.#sentSince = false;
      this.#host.up(link, node);
      return undefined;
    } catch (error) {
      return message(error);
    }
  }

  /** The first transport that is ready; WebTransport has a head start, as it neither waits for what was lost nor reorders. */
  async #race(node: NodeInfo): Promise<Link> {
    const lost: string[] = [];
    const abort = { webtransport: new AbortController(), websocket: new AbortController() };
    const limit = setTimeout(() => Object.values(abort).forEach((each) => each.abort()), ATTEMPT_LIMIT);
    const attempt = { node, lost };
    const first = this.#open("webtransport", attempt, abort.webtransport.signal);
    const headStart = this.#only === undefined ? Promise.race([first.catch(() => undefined), pause(HEAD_START)]) : undefined;
    const second = this.#open("websocket", attempt, abort.websocket.signal, headStart);
    try {
      const link = await Promise.any([first, second]);
      const [other, loser] = link.transport === "websocket" ? [abort.webtransport, first] : [abort.websocket, second];
      other.abort();
      loser.then((late) => late.close(), () => undefined);
      if (link.transport === "websocket" && this.#only === undefined) {
        this.#host.step(`WebSocket instead of WebTransport: ${lost[0] ?? "that took too long"}`);
      }
      return link;
    } catch {
      throw new Error(lost.join("; ") || "no transport got ready in time");
    } finally {
      clearTimeout(limit);
    }
  }

  /** Opens one transport, once `after` is settled. */
  async #open(transport: Transport, attempt: Attempt, signal: AbortSignal, after?: Promise<unknown>): Promise<Link> {
    if (this.#only !== undefined && this.#only !== transport) {
      throw new Error("another transport was asked for");
    }
    try {
      await after;
      signal.throwIfAborted();
      const holder: { link?: Link } = {};
      holder.link = await this.#start(transport, signal, attempt.node, this.#events(holder));
      return holder.link;
    } catch (error) {
      attempt.lost.push(`${transport === "websocket" ? "WebSocket" : "WebTransport"}: ${message(error)}`);
      throw error;
    }
  }

  #start(transport: Transport, signal: AbortSignal, node: NodeInfo, events: LinkEvents): Promise<Link> {
    if (transport === "websocket") {
      return openWebSocket(node, events, signal);
    }
    if (node.webTransport === undefined) {
      throw new Error("the server offers none");
    }
    return openWebTransport(node.webTransport, events, signal);
  }

  #events(holder: { link?: Link }): LinkEvents {
    return {
      frame: (octets) => {
        if (holder.link === this.#link && performance.now() >= this.#blackholeUntil) {
          this.#heardAt = performance.now();
          this.#sentSince = false;
          this.#silenceLimit = FIRST_SILENCE_LIMIT;
          this.#host.frame(octets);
        }
      },
      closed: (reason) => {
        if (holder.link !== undefined && holder.link === this.#link) {
          this.#lose(reason);
        }
      },
    };
  }

  #lose(reason: string): void {
    const link = this.#link;
    if (link === undefined) {
      return;
    }
    this.#link = undefined;
    link.close();
    this.#host.down(reason);
    void this.connect();
  }
}

function hashOf(node: NodeInfo): string {
  return node.webTransport?.certificateHash.join() ?? "";
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
