import { fetchStream, fetchViewers, type StreamAbout } from "../shared/node.ts";
import { readableName } from "../shared/readable-name.ts";
import { element, setText } from "./elements.ts";
import { shareLink } from "./share.ts";
import { t } from "../shared/language.ts";

/** Streams that are shown; the node lists no more. */
const MAX_STREAMS = 64;
/** Streams that are looked at at a time: the node has places for more than one visitor. */
const AT_A_TIME = 4;
/** Tiles that a person sees are renewed this often, in milliseconds. */
const INTERVAL = 10_000;

interface Listed {
  name: string;
  key?: string;
}

/** A stream of the list, with what shows it. */
interface Tile {
  listed: Listed;
  item: HTMLLIElement;
  isSeen: boolean;
}

/** The streams of the node, each with title, picture and viewers. The node takes the pictures: a page needs no decoder for them. */
export class Streams {
  readonly #list = element("streams-list");
  readonly #tiles = new Map<string, Tile>();
  readonly #seen = new IntersectionObserver((entries) => entries.forEach((entry) => this.#notice(entry)));
  #name = "";
  #started = false;

  /** The stream that plays is not among the others. */
  follow(name: string): void {
    this.#name = name;
  }

  /** Asks the node, once the page has its own picture. */
  start(): void {
    if (!this.#started) {
      this.#started = true;
      void this.#renew();
    }
  }

  async #renew(): Promise<void> {
    if (!document.hidden) {
      await this.#load();
      const seen = [...this.#tiles.values()].filter(({ isSeen, item }) => isSeen || item.hidden);
      await eachOf(seen, AT_A_TIME, showTile);
      const isEmpty = [...this.#tiles.values()].every(({ item }) => item.hidden);
      element("streams").hidden = isEmpty && this.#name !== "";
      setText(element("streams-none"), isEmpty ? t("No stream is live here at the moment.") : "");
    }
    setTimeout(() => void this.#renew(), INTERVAL);
  }

  /** Follows the node's list. */
  async #load(): Promise<void> {
    const answer = await fetch("/streams.json").catch(() => undefined);
    if (answer?.ok !== true) {
      return;
    }
    const { streams } = (await answer.json()) as { streams: Listed[] };
    const listed = streams.filter(({ name }) => name !== this.#name).slice(0, MAX_STREAMS);
    const names = new Set(listed.map(({ name }) => name));
    for (const [name, { item }] of this.#tiles) {
      if (!names.has(name)) {
        this.#seen.unobserve(item);
        item.remove();
        this.#tiles.delete(name);
      }
    }
    for (const each of listed) {
      if (!this.#tiles.has(each.name)) {
        const item = makeTile(each);
        this.#list.append(item);
        this.#seen.observe(item);
        this.#tiles.set(each.name, { listed: each, item, isSeen: false });
      }
    }
  }

  #notice({ target, isIntersecting }: IntersectionObserverEntry): void {
    for (const tile of this.#tiles.values()) {
      if (tile.item === target) {
        tile.isSeen = isIntersecting;
      }
    }
  }
}

function makeTile({ name, key }: Listed): HTMLLIElement {
  const item = document.createElement("li");
  // Not every name that somebody registered is a stream: it shows itself once it answers.
  item.hidden = true;
  item.innerHTML = `<a><span class="thumbnail"><img alt="" hidden /></span><b class="title" dir="auto"></b><span class="viewers faint"></span></a>`;
  const link = item.querySelector("a") as HTMLAnchorElement;
  link.href = shareLink(location.href, name, key, null, location.hash);
  link.title = name;
  return item;
}

/** Renews a tile. A stream that does not answer is hidden. */
async function showTile({ listed: { name }, item }: Tile): Promise<void> {
  // Viewers first: whoever looks counts for a moment.
  const viewers = await fetchViewers(name);
  const about = await fetchStream(name);
  item.hidden = about === undefined;
  if (about === undefined) {
    return;
  }
  const part = (selector: string): HTMLElement => item.querySelector(selector) as HTMLElement;
  setText(part(".title"), about.title ?? readableName(name));
  setText(part(".viewers"), viewers === undefined || viewers === 0 ? "" : t("at least {viewers} watching", { viewers }));
  part(".thumbnail").dataset["kind"] = kindOf(about);
  const image = part("img") as HTMLImageElement;
  image.hidden = !about.picture;
  if (about.picture) {
    image.src = `/thumbnail.jpg?name=${encodeURIComponent(name)}&again=${Date.now()}`;
  }
}

/** How a tile looks that has no picture. */
function kindOf({ kinds }: StreamAbout): string {
  if (kinds.includes("audio") && !kinds.includes("video")) {
    return "sound";
  }
  return kinds.every((kind) => kind === "data") ? "data" : "video";
}

/** Does `act` for each item, for `limit` of them at a time. */
async function eachOf<T>(items: T[], limit: number, act: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const work = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      await act(item);
    }
  };
  await Promise.all(Array.from({ length: limit }, work));
}
