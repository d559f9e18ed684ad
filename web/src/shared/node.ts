/** What the server behind the page says about itself: the answer to `GET /node.json`. */
export interface NodeInfo {
  /** Name of the stream to play if the address names none. */
  name: string;
  /** Whether the node offers that stream; otherwise the name is a guess. */
  hasName: boolean;
  /** Digest of the key that must have signed the stream, in hexadecimal; absent: trust what is met first. */
  key: string | undefined;
  /** Address of the WebSocket face. */
  websocket: string;
  /** Whether the node is on this machine and takes commands of this page. */
  local: boolean;
  /** The WebTransport face, if the server has one. */
  webTransport: WebTransportInfo | undefined;
  /** The page by https at the same host; undefined: the server has none, or none for others. */
  securePage: string | undefined;
  /** Where other machines find the page; empty: nowhere, or it is not for this visitor to know. */
  elsewhere: string[];
}

/** Where the WebTransport face listens, and how to know it. */
export interface WebTransportInfo {
  url: string;
  /** SHA-256 of the server's certificate. */
  certificateHash: Uint8Array<ArrayBuffer>;
}

/** How long the server may take to describe itself, in milliseconds. */
const NODE_LIMIT = 2_000;

/**
 * Requests the description of the server at `base`.
 *
 * @throws Error if there is none.
 */
export async function fetchNode(base: string): Promise<NodeInfo> {
  return readNode(await fetch(new URL("/node.json", base), { cache: "no-store", signal: AbortSignal.timeout(NODE_LIMIT) }), base);
}

/** How many watch the stream `name` at least, through the node whose page this is; undefined: it does not say. */
export async function fetchViewers(name: string): Promise<number | undefined> {
  const answer = await fetch(`/viewers.json?name=${encodeURIComponent(name)}`).catch(() => undefined);
  return answer?.ok === true ? ((await answer.json()) as { viewers: number }).viewers : undefined;
}

/** What the node says of a stream that it looked at. */
export interface StreamAbout {
  title: string | null;
  /** Kinds of its streams: `video`, `audio`, `data`, `other`. */
  kinds: string[];
  /** Digest of the key that signs it, in hexadecimal. */
  key: string;
  /** Whether there is a picture of it. */
  picture: boolean;
}

/** What the stream `name` is, as the node whose page this is says; undefined: it does not answer. */
export async function fetchStream(name: string): Promise<StreamAbout | undefined> {
  const answer = await fetch(`/about.json?name=${encodeURIComponent(name)}`).catch(() => undefined);
  return answer?.ok === true ? ((await answer.json()) as StreamAbout) : undefined;
}

/** Reads a node's description of itself. */
export async function readNode(answer: Response, base: string): Promise<NodeInfo> {
  if (!answer.ok) {
    throw new Error(`the server answers ${answer.status}`);
  }
  return parseNodeInfo(await answer.json(), new URL(base));
}

/**
 * Reads the answer of the server at `base`; what is missing gets its default, what is malformed is left out.
 *
 * @throws TypeError if the answer is no object.
 */
export function parseNodeInfo(answer: unknown, base: URL): NodeInfo {
  if (typeof answer !== "object" || answer === null) {
    throw new TypeError("the server's description of itself is no object");
  }
  const fields = answer as Record<string, unknown>;
  const websocket = new URL(text(fields["ws"]) ?? "/ws", base);
  websocket.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return {
    name: text(fields["name"]) ?? "/demo",
    hasName: text(fields["name"]) !== undefined,
    key: text(fields["key"]),
    local: fields["local"] === true,
    websocket: websocket.href,
    webTransport: parseWebTransport(fields["webtransport"], base),
    securePage: parseSecurePage(fields["https"], base),
    elsewhere: list(fields["elsewhere"]).filter((address) => URL.canParse(address)),
  };
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function parseSecurePage(port: unknown, { hostname }: URL): string | undefined {
  return typeof port === "number" && port > 0 && port < 65_536 ? `https://${hostname}:${port}/` : undefined;
}

function parseWebTransport(value: unknown, base: URL): WebTransportInfo | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const fields = value as Record<string, unknown>;
  const hash = parseHash(text(fields["certificate_hash"]) ?? "");
  const port = fields["port"];
  if (hash === undefined || typeof port !== "number") {
    return undefined;
  }
  // `localhost` may mean ::1 first, where a server of IPv4 does not listen: QUIC would wait, not fall back.
  const host = base.hostname === "localhost" ? "127.0.0.1" : base.hostname;
  return { url: `https://${host}:${port}/`, certificateHash: hash };
}

/** Octets of 64 hexadecimal digits, or of 32 octets in base64; undefined for anything else. */
export function parseHash(value: string): Uint8Array<ArrayBuffer> | undefined {
  const digits = value.replaceAll(":", "");
  if (/^[0-9a-f]{64}$/i.test(digits)) {
    return Uint8Array.from(digits.match(/../g) ?? [], (octet) => parseInt(octet, 16));
  }
  if (/^[A-Za-z0-9+/]{43}=$/.test(value)) {
    return Uint8Array.from(atob(value), (octet) => octet.charCodeAt(0));
  }
  return undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
