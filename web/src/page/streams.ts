import type { NamecastPlayer } from "../player/element.ts";
import { fetchViewers } from "../shared/node.ts";
import { element } from "./elements.ts";
import { shareLink } from "./share.ts";

/** Streams that are shown: each takes a worker while its picture is taken. */
const MAX_STREAMS = 8;
/** A picture is taken so often, in milliseconds, and so long is waited for one. */
const INTERVAL = 10_000;
const TIME_LIMIT = 4_000;

interface Listed {
  name: string;
  key?: string;
}

/** The other streams of the node, each with a picture of it that is taken again and again. */
export class Streams {
  readonly #list = element("streams-list");
  #name = "";
  #started = false;
  #next = 0;

  /** What plays is not among the others. */
  follow(name: string): void {
    this.#name = name;
  }

  /** Asks the node, once the page has its own picture. */
  start(): void {
    if (!this.#started) {
      this.#started = true;
      void this.#load();
    }
  }

  async #load(): Promise<void> {
    const answer = await fetch("/streams.json").catch(() => undefined);
    if (answer?.ok !== true) {
      return;
    }
    const listed = ((await answer.json()) as { streams: Listed[] }).streams;
    const others = listed.filter(({ name }) => name !== this.#name).slice(0, MAX_STREAMS);
    for (const stream of others) {
      this.#add(stream);
    }
    if (others.length > 0) {
      this.#takeNext();
    }
  }

  #add({ name, key }: Listed): void {
    const address = shareLink(location.href, name, key);
    const item = document.createElement("li");
    // Not every name that somebody registered is a stream: it shows itself once there is a picture of it.
    item.hidden = true;
    const link = document.createElement("a");
    link.href = address;
    const player = document.createElement("namecast-player");
    player.inert = true;
    player.muted = true;
    // Its picture is taken before it shows.
    player.background = true;
    player.dataset["address"] = address;
    player.addEventListener("playing", () => {
      item.hidden = false;
      element("streams").hidden = false;
    });
    player.dataset["name"] = name;
    const words = document.createElement("span");
    words.textContent = name;
    const viewers = document.createElement("span");
    viewers.className = "viewers faint";
    link.append(player, words, viewers);
    item.append(link);
    this.#list.append(item);
  }

  /** Takes the picture of one stream after the other, so that they cost little. */
  #takeNext(): void {
    const players = [...this.#list.querySelectorAll("namecast-player")];
    const player = players[this.#next % players.length];
    this.#next += 1;
    const pause = Math.max(TIME_LIMIT, INTERVAL / players.length);
    if (player !== undefined && !document.hidden) {
      // Before the picture, for which this page is a viewer itself.
      void countViewers(player).then(() => takePicture(player));
    }
    setTimeout(() => this.#takeNext(), this.#next < players.length ? TIME_LIMIT : pause);
  }
}

async function countViewers(player: NamecastPlayer): Promise<void> {
  const viewers = await fetchViewers(player.dataset["name"] ?? "");
  const place = player.parentElement?.querySelector(".viewers");
  if (place != null) {
    place.textContent = viewers === undefined || viewers === 0 ? "" : `at least ${viewers} watching`;
  }
}

function takePicture(player: NamecastPlayer): void {
  const stop = (): void => {
    clearTimeout(limit);
    player.removeEventListener("playing", stop);
    player.pause();
  };
  const limit = setTimeout(stop, TIME_LIMIT - 200);
  player.addEventListener("playing", stop);
  const address = new URL(player.dataset["address"] ?? "");
  address.searchParams.set("rung", "lowest");
  if (player.src === address.href) {
    void player.play().catch(() => undefined);
  } else {
    player.autoplay = true;
    player.src = address.href;
  }
}
