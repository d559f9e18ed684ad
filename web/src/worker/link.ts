import type { NodeInfo, WebTransportInfo } from "../shared/node.ts";
import type { Transport } from "../shared/summary.ts";

/** A transport that is up. It loses frames rather than queue them without bound. */
export interface Link {
  readonly transport: Transport;
  /** Largest frame it carries, in octets; 0: any. */
  readonly mtu: number;
  /** Whether half of what may wait to be sent does: who makes more should make less. */
  isBehind(): boolean;
  send(frame: Uint8Array<ArrayBuffer>): void;
  /** Number of frames that arrived and that the browser dropped, as they were not read in time; absent where it does not count them. */
  dropped?(): Promise<number>;
  close(): void;
}

/** Not in TypeScript's library yet. */
interface CountingTransport {
  getStats?(): Promise<{ datagrams?: { droppedIncoming?: number } }>;
}

/** What a transport reports once it is up. */
export interface LinkEvents {
  frame(octets: Uint8Array<ArrayBuffer>): void;
  /** It is over; called once, not after `close`. */
  closed(reason: string): void;
}

/** Chromium carries 1211 octets; a margin for other browsers, and what our segments are cut for. */
const DATAGRAM_MTU = 1_200;
/** Datagrams that may wait for the application: a key frame arrives as a burst of a hundred and more. */
const DATAGRAMS_QUEUED = 2_048;
/** Datagrams handed to the browser that it has not sent yet. */
const DATAGRAMS_UNSENT = 512;
/** Octets handed to the browser that it has not sent yet. */
const WEBSOCKET_UNSENT = 1 << 20;

/** Opens a WebTransport session; each frame is one datagram. */
export async function openWebTransport(info: WebTransportInfo, events: LinkEvents, signal: AbortSignal): Promise<Link> {
  if (typeof WebTransport === "undefined") {
    throw new Error("this browser has no WebTransport");
  }
  const session = new WebTransport(info.url, {
    serverCertificateHashes: [{ algorithm: "sha-256", value: info.certificateHash }],
    congestionControl: "low-latency",
  });
  signal.addEventListener("abort", () => closeQuietly(session), { once: true });
  // Both promises reject when the session fails; `closed` is looked at below, once it was ready.
  session.closed.catch(() => undefined);
  await session.ready;
  session.datagrams.incomingHighWaterMark = DATAGRAMS_QUEUED;
  session.datagrams.outgoingHighWaterMark = DATAGRAMS_UNSENT;
  let open = true;
  const end = (reason: string): void => {
    if (open) {
      open = false;
      events.closed(reason);
    }
  };
  session.closed.then(
    () => end("the server closed the session"),
    (error: unknown) => end(message(error)),
  );
  void readDatagrams(session, (octets) => open && events.frame(octets), end);

  const writer = session.datagrams.writable.getWriter();
  writer.closed.catch(() => undefined);
  let unsent = 0;
  const sent = (): void => {
    unsent -= 1;
  };
  return {
    transport: "webtransport",
    mtu: Math.min(DATAGRAM_MTU, session.datagrams.maxDatagramSize || DATAGRAM_MTU),
    isBehind: () => unsent > DATAGRAMS_UNSENT / 2,
    send(frame) {
      if (open && unsent < DATAGRAMS_UNSENT) {
        unsent += 1;
        writer.write(frame).then(sent, sent);
      }
    },
    async dropped() {
      const stats = await (session as CountingTransport).getStats?.();
      return stats?.datagrams?.droppedIncoming ?? 0;
    },
    close() {
      open = false;
      closeQuietly(session);
    },
  };
}

async function readDatagrams(
  session: WebTransport,
  frame: (octets: Uint8Array<ArrayBuffer>) => void,
  end: (reason: string) => void,
): Promise<void> {
  try {
    const reader = session.datagrams.readable.getReader() as ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        end("the server ended the session");
        return;
      }
      frame(value);
    }
  } catch (error) {
    end(message(error));
  }
}

function closeQuietly(session: WebTransport): void {
  try {
    session.close();
  } catch {
    // It failed or was closed before.
  }
}

/** Opens a WebSocket; each frame is one binary message. */
export function openWebSocket(node: NodeInfo, events: LinkEvents, signal: AbortSignal): Promise<Link> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(node.websocket);
    socket.binaryType = "arraybuffer";
    let open = false;
    signal.addEventListener("abort", () => socket.close(), { once: true });
    socket.onmessage = (event: MessageEvent<ArrayBuffer | string>) => {
      if (open && event.data instanceof ArrayBuffer) {
        events.frame(new Uint8Array(event.data));
      }
    };
    socket.onclose = (event) => {
      if (open) {
        open = false;
        events.closed(event.reason || "the server closed the connection");
      } else {
        reject(new Error("the server does not answer"));
      }
    };
    socket.onopen = () => {
      open = true;
      resolve({
        transport: "websocket",
        mtu: 0,
        isBehind: () => socket.bufferedAmount > WEBSOCKET_UNSENT / 2,
        send(frame) {
          if (open && socket.bufferedAmount < WEBSOCKET_UNSENT) {
            socket.send(frame);
          }
        },
        close() {
          open = false;
          socket.close();
        },
      });
    };
  });
}

/** What went wrong, in words. */
export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
