import type { Command } from "../shared/messages.ts";
import type { RungInfo, Summary } from "../shared/summary.ts";
import { clampTarget, withOption } from "./options.ts";
import { element } from "./panel.ts";

/** What the controls act on. */
export interface ControlsHost {
  send(command: Command): void;
  toggleSound(): void;
  toggleTheme(): void;
}

/** The knob, the rung, the buttons and the keys. */
export class Controls {
  readonly #host: ControlsHost;
  readonly #target = element<HTMLInputElement>("target");
  readonly #rung = element<HTMLSelectElement>("rung");
  #rungs = "";

  constructor(host: ControlsHost, target: number, rung: string | undefined) {
    this.#host = host;
    this.#showTarget(target);
    this.#target.addEventListener("input", () => this.setTarget(this.#target.valueAsNumber));
    this.#rung.append(new Option("auto", "auto"));
    this.#rung.dataset["wanted"] = rung ?? "auto";
    this.#rung.addEventListener("change", () => this.#setRung(this.#rung.value));
    element("sound").addEventListener("click", () => host.toggleSound());
    element("full").addEventListener("click", () => void toggleFullScreen());
    element("theme").addEventListener("click", () => host.toggleTheme());
    document.addEventListener("keydown", (event) => this.#handleKey(event));
  }

  /** Moves the knob, and playback with it. */
  setTarget(wanted: number): void {
    const target = clampTarget(wanted);
    if (target !== undefined) {
      this.#showTarget(target);
      this.#host.send({ type: "target", target });
      history.replaceState(null, "", withOption(location.href, "target", String(target)));
    }
  }

  /** Offers the rungs that are published. */
  show(summary: Summary): void {
    const rungs = summary.rungs.map(describeRung).join("\n");
    if (rungs === this.#rungs) {
      return;
    }
    this.#rungs = rungs;
    const wanted = this.#rung.dataset["wanted"] ?? "auto";
    this.#rung.replaceChildren(new Option("auto", "auto"), new Option("highest", "highest"), ...summary.rungs.map((rung) => new Option(describeRung(rung), rung.name)));
    this.#rung.value = wanted;
    if (this.#rung.selectedIndex < 0) {
      this.#rung.value = "auto";
    }
  }

  /** Shows whether sound is on. */
  showSound(on: boolean): void {
    element("sound").setAttribute("aria-pressed", String(on));
  }

  #setRung(rung: string): void {
    this.#rung.dataset["wanted"] = rung;
    this.#host.send({ type: "rung", rung });
    history.replaceState(null, "", withOption(location.href, "rung", rung));
  }

  #showTarget(target: number): void {
    this.#target.valueAsNumber = target;
    this.#target.setAttribute("aria-valuetext", `${target} milliseconds`);
    element("target-value").textContent = `${target} ms`;
  }

  #handleKey(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLSelectElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    switch (event.key.toLowerCase()) {
      case "s":
      case "m":
        this.#host.toggleSound();
        break;
      case "f":
        void toggleFullScreen();
        break;
      case "t":
        this.#host.toggleTheme();
        break;
    }
  }
}

function describeRung(rung: RungInfo): string {
  return rung.width > 0 ? `${rung.name} · ${rung.width}×${rung.height}` : rung.name;
}

async function toggleFullScreen(): Promise<void> {
  try {
    await (document.fullscreenElement ? document.exitFullscreen() : element("player").requestFullscreen());
  } catch {
    // The browser does not allow it here.
  }
}
