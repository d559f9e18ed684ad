import type { NamecastPlayer } from "../player/element.ts";
import { withOption } from "../player/options.ts";
import { t } from "../shared/language.ts";
import type { RungInfo, Summary } from "../shared/summary.ts";
import { element } from "./elements.ts";

/** The knob and the rung. */
export class Controls {
  readonly #player: NamecastPlayer;
  readonly #target = element<HTMLInputElement>("target");
  readonly #rung = element<HTMLSelectElement>("rung");
  #rungs = "";
  #reorder = 0;

  constructor(player: NamecastPlayer) {
    this.#player = player;
    this.#showTarget(player.target);
    this.#target.addEventListener("input", () => (player.target = this.#target.valueAsNumber));
    this.#rung.append(new Option(t("auto"), "auto"));
    this.#rung.addEventListener("change", () => (player.quality = this.#rung.value));
    player.addEventListener("qualitychange", () => this.#showRung());
    player.addEventListener("latencychange", () => this.#showTarget(player.target));
  }

  /** Offers the rungs that are published. */
  show(summary: Summary): void {
    const rungs = summary.rungs.map(describeRung).join("\n");
    if (this.#reorder !== summary.reorder) {
      this.#reorder = summary.reorder;
      this.#showTarget(this.#player.target);
    }
    if (rungs !== this.#rungs) {
      this.#rungs = rungs;
      this.#rung.replaceChildren(new Option(t("auto"), "auto"), new Option(t("highest"), "highest"), ...summary.rungs.map((rung) => new Option(describeRung(rung), rung.name)));
      this.#showRung();
    }
  }

  #showRung(): void {
    const { quality } = this.#player;
    this.#rung.value = quality;
    if (this.#rung.selectedIndex < 0) {
      this.#rung.value = "auto";
    }
    if (quality !== (new URL(location.href).searchParams.get("rung") ?? "auto")) {
      history.replaceState(null, "", withOption(location.href, "rung", quality));
    }
  }

  #showTarget(target: number): void {
    this.#target.valueAsNumber = target;
    // People read how late the picture is.
    const shown = Math.round(target + this.#reorder);
    this.#target.setAttribute("aria-valuetext", t("{time} milliseconds", { time: shown }));
    element("target-value").textContent = `${shown} ms`;
  }
}

function describeRung(rung: RungInfo): string {
  return rung.width > 0 ? `${rung.name} · ${rung.width}×${rung.height}` : rung.name;
}
