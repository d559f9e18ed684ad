import type { NamecastPlayer } from "./element.ts";
import { timeOfDay } from "./format.ts";

/** Pictures stand this far apart at least, and this many over the whole bar at most, in milliseconds: the node makes each anew. */
const MIN_STEP = 10_000;
const MAX_PICTURES = 60;
/** The pointer rests this long before a picture is requested, in milliseconds. */
const REST = 150;

/** Shows over the seek bar what was captured at the place under the pointer: time of day, and a picture that the node takes of its archive. */
export class SeekPreview {
  readonly #player: NamecastPlayer;
  readonly #time: HTMLElement;
  readonly #image: HTMLImageElement;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(player: NamecastPlayer, place: HTMLElement) {
    this.#player = player;
    const [image, time] = [document.createElement("img"), document.createElement("span")];
    place.replaceChildren(image, time);
    [this.#image, this.#time] = [image, time];
    image.alt = "";
    image.hidden = true;
    // The player may be part of another site's page, which the node allows.
    image.crossOrigin = "anonymous";
    image.addEventListener("load", () => (image.hidden = false));
    image.addEventListener("error", () => (image.hidden = true));
  }

  /** Shows the place that is `seconds` after the player's start date. */
  show(seconds: number): void {
    const time = this.#player.getStartDate().getTime() + seconds * 1_000;
    this.#time.textContent = Number.isFinite(time) ? timeOfDay(time) : "";
    const address = Number.isFinite(time) ? this.#addressAt(time) : undefined;
    if (address !== this.#image.dataset["address"]) {
      clearTimeout(this.#timer);
      this.#image.hidden = true;
      this.#image.dataset["address"] = address ?? "";
      this.#timer = address === undefined ? undefined : setTimeout(() => (this.#image.src = address), REST);
    }
  }

  /** Address of the picture of a time; undefined: nobody keeps one. */
  #addressAt(time: number): string | undefined {
    const { seekable, streamName, src } = this.#player;
    if (seekable.length === 0 || this.#player.package.isOpen) {
      return undefined;
    }
    const [begin, end] = [seekable.start(0), seekable.end(0)].map((each) => this.#player.getStartDate().getTime() + each * 1_000) as [number, number];
    const step = stepOf(end - begin);
    const at = Math.floor(time / step) * step;
    if (at < begin || end - begin < MIN_STEP) {
      return undefined;
    }
    const address = new URL("/thumbnail.jpg", new URL(src, document.baseURI));
    address.searchParams.set("name", streamName);
    address.searchParams.set("at", String(at));
    return address.href;
  }
}

/** Time between two pictures of a bar over `span`, in milliseconds: whole steps, so that pictures stay the same while the bar moves on. */
export function stepOf(span: number): number {
  return MIN_STEP * Math.max(1, 2 ** Math.ceil(Math.log2(span / MAX_PICTURES / MIN_STEP)));
}
