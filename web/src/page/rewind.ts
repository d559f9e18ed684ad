import type { Position } from "../shared/summary.ts";
import { duration, timeOfDay } from "../player/format.ts";
import { t } from "../shared/language.ts";
import { element } from "./elements.ts";
import { behind, KEY_STEPS, meant, reach, stepped } from "../player/timeline.ts";

/** While the bar is dragged, playback is asked to follow so often, in milliseconds. */
const DRAG_INTERVAL = 150;
/** And no later than this, even if the last wish was not fulfilled yet. */
const DRAG_TIMEOUT = 1_000;

/** The bar under the picture by which one goes back in time, and the button back to live. */
export class Rewind {
  /** Goes to a time, and gives the number of that wish. */
  readonly #goTo: (to: number | null) => number;
  readonly #bar = element<HTMLInputElement>("rewind-bar");
  readonly #tip = element("rewind-tip");
  readonly #live = element("live");
  #position: Position = { live: true, shown: null, now: Date.now(), since: null, seeking: null, answers: 0 };
  /** When that was so, on the page's clock. */
  #positionAt = performance.now();
  #sent = 0;
  #sentAt = -Infinity;
  #sentTo: number | null = null;
  /** Where it goes until the worker says how far it came; undefined: what the worker says counts. */
  #wish: number | null | undefined;
  #dragging = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(goTo: (to: number | null) => number) {
    this.#goTo = goTo;
    this.#bar.addEventListener("pointerdown", () => (this.#dragging = true));
    this.#bar.addEventListener("input", () => this.#dragged());
    this.#bar.addEventListener("change", () => this.#dropped());
    // A press that ends where it began changes nothing, and so tells nothing but this.
    for (const end of ["pointerup", "pointercancel"]) {
      this.#bar.addEventListener(end, () => setTimeout(() => this.#dropped()));
    }
    this.#bar.addEventListener("pointermove", (event) => this.#hovered(event));
    this.#bar.addEventListener("pointerleave", () => this.#hideTip());
    this.#bar.addEventListener("blur", () => this.#hideTip());
    this.#live.addEventListener("click", () => this.seek(null));
    this.#bar.addEventListener("keydown", (event) => this.#handleKey(event));
    this.#draw();
  }

  /** Goes to a time (publisher's clock, milliseconds since 1970); null: to live. */
  seek(to: number | null): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#wish = to;
    this.#sentTo = to;
    this.#sentAt = performance.now();
    this.#sent = this.#goTo(to);
    this.#draw();
  }

  /** Shows where playback is. */
  show(position: Position): void {
    this.#position = position;
    this.#positionAt = performance.now();
    if (position.answers >= this.#sent && !this.#dragging) {
      this.#wish = undefined;
    }
    this.#draw();
  }

  /** The position as it is by now, going where it was told to. */
  get #current(): Position {
    const now = this.#position.now + performance.now() - this.#positionAt;
    if (this.#wish === undefined) {
      return { ...this.#position, now };
    }
    return { ...this.#position, now, live: this.#wish === null, seeking: this.#wish };
  }

  #dragged(): void {
    const position = this.#current;
    this.#wish = meant(-this.#bar.valueAsNumber * 1_000, position);
    this.#draw();
    this.#showTip(-this.#bar.valueAsNumber * 1_000);
    this.#follow();
  }

  /** Lets playback follow the bar, as fast as it can. */
  #follow(): void {
    if (this.#timer !== undefined) {
      return;
    }
    const since = performance.now() - this.#sentAt;
    const busy = this.#position.answers < this.#sent || this.#position.seeking !== null;
    if (since >= DRAG_INTERVAL && (!busy || since >= DRAG_TIMEOUT)) {
      this.#goToWish();
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#dragging) {
        this.#follow();
      }
    }, 50);
  }

  #goToWish(): void {
    if (this.#wish !== undefined) {
      this.seek(this.#wish);
    }
  }

  #dropped(): void {
    if (this.#dragging) {
      this.#dragging = false;
      this.#hideTip();
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (this.#wish !== this.#sentTo) {
        this.#goToWish();
      }
    }
  }

  #handleKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const step = KEY_STEPS[event.key];
    const position = this.#current;
    if (step !== undefined) {
      if (reach(position) > 0 || !position.live) {
        this.seek(stepped(step, position));
      }
    } else if (event.key === "Home") {
      this.seek(position.since);
    } else if (event.key === "End") {
      this.seek(null);
    } else {
      return;
    }
    event.preventDefault();
  }

  #hovered(event: PointerEvent): void {
    if (this.#bar.disabled || this.#dragging) {
      return;
    }
    const { left, width } = this.#bar.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    this.#showTip((1 - share) * reach(this.#current));
  }

  #showTip(before: number): void {
    const position = this.#current;
    const time = meant(before, position);
    this.#tip.textContent = time === null ? t("Live") : `${timeOfDay(time)} · −${duration(position.now - time)}`;
    const share = 1 - before / Math.max(1, reach(position));
    this.#tip.style.setProperty("--at", String(Math.min(1, Math.max(0, share))));
    this.#tip.dataset["on"] = "true";
  }

  #hideTip(): void {
    if (!this.#dragging) {
      this.#tip.dataset["on"] = "false";
    }
  }

  #draw(): void {
    const position = this.#current;
    const [span, before] = [reach(position), behind(position)];
    const live = before === 0;
    this.#bar.disabled = span === 0 && live;
    this.#bar.min = String(-Math.max(span, before, 1) / 1_000);
    if (!this.#dragging) {
      this.#bar.valueAsNumber = -before / 1_000;
    }
    const share = 1 - before / Math.max(span, before, 1);
    this.#bar.style.setProperty("--at", String(share));
    setAttribute(this.#bar, "aria-valuetext", live ? t("live") : t("{duration} behind live", { duration: duration(before) }));
    setAttribute(this.#live, "aria-pressed", String(live));
    const shown = this.#wish ?? position.seeking ?? position.shown;
    setText("rewind-time", shown === null ? "" : timeOfDay(shown));
    setText("rewind-behind", live ? "" : `−${duration(before)}`);
    setText("rewind-since", span === 0 ? "" : t("kept since {time}", { time: timeOfDay(position.since ?? 0) }));
    element("rewind").dataset["seeking"] = String(this.#wish !== undefined || position.seeking !== null);
  }
}

/** Writes only what changed, so that screen readers are not told four times a second. */
function setAttribute(target: HTMLElement, name: string, value: string): void {
  if (target.getAttribute(name) !== value) {
    target.setAttribute(name, value);
  }
}

function setText(id: string, text: string): void {
  const target = element(id);
  if (target.textContent !== text) {
    target.textContent = text;
  }
}
