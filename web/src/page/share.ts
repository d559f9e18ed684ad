import { timeOfDay } from "../player/format.ts";
import { fetchNode, type NodeInfo } from "../shared/node.ts";
import type { Position, Summary } from "../shared/summary.ts";
import { isInRoom } from "../shared/room.ts";
import { element, setText } from "./elements.ts";
import { hashOf, parseRoom } from "./room.ts";
import { t } from "../shared/language.ts";

/** Without an archive the publisher alone keeps some seconds: they are gone when somebody follows a link. In milliseconds. */
const KEPT_FOR_OTHERS = 60_000;

/** What is shared. The link carries the key, so that whoever opens it sees this stream or none. */
interface Shared {
  name: string;
  digest: string;
  title: string;
}

/** The link to what plays, at a time or live, with code to embed it and a picture of it for telephones. */
export class Share {
  readonly #button = element<HTMLButtonElement>("share");
  readonly #box = element("share-box");
  readonly #link = element<HTMLInputElement>("share-link");
  readonly #code = element<HTMLInputElement>("share-code");
  readonly #isAtTime = element<HTMLInputElement>("share-at-time");
  #shared: Shared | undefined;
  /** Capture of the picture that was shown when the box was opened, in milliseconds since 1970. */
  #time: number | null = null;
  #position: Position | undefined;
  /** The page for others, once the node said it. */
  #address: string | undefined;

  constructor() {
    this.#button.disabled = true;
    this.#button.addEventListener("click", () => this.toggle());
    this.#isAtTime.addEventListener("change", () => void this.#show());
    for (const field of [this.#link, this.#code]) {
      field.addEventListener("focus", () => field.select());
    }
  }

  /** Follows what plays. */
  follow(name: string, title: string | null, { signer, position }: Summary): void {
    this.#position = position;
    if (signer?.trusted === true) {
      this.#shared = { name, digest: signer.digest, title: title ?? name };
      this.#button.disabled = false;
    }
  }

  /** Shows the link and copies it, or hides it. */
  toggle(): void {
    if (this.#button.disabled) {
      return;
    }
    this.#box.hidden = !this.#box.hidden;
    this.#button.setAttribute("aria-expanded", String(!this.#box.hidden));
    if (!this.#box.hidden) {
      void this.#open();
    }
  }

  async #open(): Promise<void> {
    const { shown, since, live, now } = this.#position ?? { shown: null, since: null, live: true, now: 0 };
    this.#time = since === null || now - since < KEPT_FOR_OTHERS ? null : shown;
    element("share-time").hidden = this.#time === null;
    setText(element("share-time-shown"), this.#time === null ? "" : timeOfDay(this.#time));
    // Whoever went back wants to show what is there.
    this.#isAtTime.checked = this.#time !== null && !live;
    this.#write();
    this.#address = await sharedAddress(location.href, () => fetchNode(location.href));
    await this.#show();
  }

  #write(): void {
    const { name, digest, title } = this.#shared as Shared;
    const address = this.#address ?? location.href;
    this.#link.value = shareLink(address, name, digest, this.#isAtTime.checked ? this.#time : null, location.hash);
    this.#code.value = embedCode(address, this.#link.value, title);
  }

  async #show(): Promise<void> {
    this.#write();
    const reach = this.#address === undefined ? ` ${t("This link opens on this machine only: start the node with --listen for others.")}` : "";
    const { drawCode } = await import("./qr.ts");
    drawCode(element("share-picture"), this.#link.value);
    try {
      await navigator.clipboard.writeText(this.#link.value);
      element("share-said").textContent = `${t("Copied.")}${reach}`;
    } catch {
      // Not allowed here: then a person copies it.
      element("share-said").textContent = reach;
      this.#link.focus();
    }
  }
}

/** The page for others: where it was opened, or, if that was this machine alone, where the node says that others find it; undefined: nowhere. */
export async function sharedAddress(address: string, node: () => Promise<Pick<NodeInfo, "elsewhere">>): Promise<string | undefined> {
  const { hostname } = new URL(address);
  if (hostname !== "localhost" && hostname !== "[::1]" && !hostname.startsWith("127.")) {
    return new URL("/", address).href;
  }
  try {
    return (await node()).elsewhere[0];
  } catch {
    return undefined;
  }
}

/**
 * Address that shows the stream `name`, signed by the key of this digest if there is one, on the page at `address`, from a time of
 * capture on (milliseconds since 1970) or live. A stream of the room that `hash` leads to gets the room's anchor instead, and no token.
 */
export function shareLink(address: string, name: string, digest?: string, at: number | null = null, hash = ""): string {
  const link = new URL("/", address);
  link.searchParams.set("name", name);
  const room = parseRoom(hash);
  if (room !== undefined && isInRoom(name, room)) {
    link.hash = hashOf(room);
  } else if (digest !== undefined) {
    link.searchParams.set("key", digest);
  }
  if (at !== null) {
    link.searchParams.set("t", new Date(at).toISOString());
  }
  return link.href;
}

/** HTML with which other pages show what `link` shows, by the page of a player alone at `address`. */
export function embedCode(address: string, link: string, title: string): string {
  const source = new URL(`/embed.html${new URL(link).search}`, address).href;
  const allowed = "autoplay; fullscreen; picture-in-picture; clipboard-write";
  return `<iframe src="${escaped(source)}" title="${escaped(title)}" allow="${allowed}" style="border:0;width:100%;aspect-ratio:16/9"></iframe>`;
}

/** Text as attributes of HTML have it. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
