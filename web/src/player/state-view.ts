import type { PlayerState } from "./state.ts";
import { t } from "../shared/language.ts";

/** What its button is called, by what it does. */
function label(action: NonNullable<PlayerState["action"]>): string {
  switch (action) {
    case "forget":
      return t("Forget the old key");
    case "sound":
      return t("Tap for sound");
    case "https":
      return t("Open the secure page");
  }
}

/** Markup of the view. */
export const STATE_VIEW = `
  <div id="waiting" part="waiting"><span class="spinner" aria-hidden="true"></span><p id="sentence" role="status"></p><button id="action" type="button" hidden></button></div>
  <button id="sound-action" type="button" hidden></button>`;

/** Shows a player's state in the player: the sentence in place of a picture where there is none, and what a person can do. */
export class StateView {
  readonly #host: HTMLElement;
  readonly #sentence: HTMLElement;
  readonly #action: HTMLButtonElement;
  readonly #sound: HTMLButtonElement;

  /** @param act does what the state offers */
  constructor(host: HTMLElement, root: ShadowRoot, act: () => void) {
    const part = <E extends HTMLElement>(id: string): E => root.getElementById(id) as E;
    this.#host = host;
    this.#sentence = part("sentence");
    this.#action = part("action");
    this.#sound = part("sound-action");
    for (const button of [this.#action, this.#sound]) {
      button.addEventListener("click", act);
    }
  }

  show({ kind, look, covers, sentence, action }: PlayerState): void {
    this.#host.dataset["state"] = kind;
    this.#host.toggleAttribute("data-covered", covers);
    this.#host.toggleAttribute("data-waits", look === "wait");
    this.#sentence.textContent = covers ? sentence : "";
    this.#sound.hidden = action !== "sound";
    this.#sound.textContent = t("Tap for sound");
    this.#action.hidden = !covers || action === null || action === "sound";
    this.#action.textContent = action === null ? "" : label(action);
  }
}
