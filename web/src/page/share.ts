import { fetchNode, type NodeInfo } from "../shared/node.ts";
import type { Summary } from "../shared/summary.ts";
import { element } from "./elements.ts";

/** The link to what plays. It carries the key, so that whoever opens it sees this stream or none. */
export class Share {
  readonly #button = element<HTMLButtonElement>("share");
  readonly #box = element("share-box");
  readonly #link = element<HTMLInputElement>("share-link");

  constructor() {
    this.#button.disabled = true;
    this.#button.addEventListener("click", () => this.toggle());
    this.#link.addEventListener("focus", () => this.#link.select());
  }

  /** Follows what plays. */
  show(name: string, { signer }: Summary): void {
    if (signer?.trusted === true) {
      const link = shareLink(location.href, name, signer.digest);
      // The address of the page in front of it may be another by now.
      if (!this.#link.value.endsWith(new URL(link).search)) {
        this.#link.value = link;
      }
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
      void this.#copy();
    }
  }

  async #copy(): Promise<void> {
    const address = await sharedAddress(location.href, () => fetchNode(location.href));
    this.#link.value = new URL(new URL(this.#link.value).search, address ?? location.href).href;
    const reach = address === undefined ? " This link opens on this machine only: start the node with --listen for others." : "";
    try {
      await navigator.clipboard.writeText(this.#link.value);
      element("share-said").textContent = `Copied.${reach}`;
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

/** Address that shows the stream `name`, signed by the key of this digest if there is one, on the page at `address`. */
export function shareLink(address: string, name: string, digest?: string): string {
  const link = new URL("/", address);
  link.searchParams.set("name", name);
  if (digest !== undefined) {
    link.searchParams.set("key", digest);
  }
  return link.href;
}
