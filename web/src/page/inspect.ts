import type { NamecastPlayer } from "../player/element.ts";
import { bitrate } from "../player/format.ts";
import type { PackagePlayer } from "../player/package-player.ts";
import type { PlayerState } from "../player/state.ts";
import { t } from "../shared/language.ts";
import type { Summary } from "../shared/summary.ts";
import { Controls } from "./controls.ts";
import { element, setText } from "./elements.ts";
import { Panel } from "./panel.ts";
import { Plots } from "./plots.ts";
import { Rewind } from "./rewind.ts";

/** Everything that is measured, and what can be set: the view for those who want to know how it works. */
export class Inspect {
  readonly #player: NamecastPlayer;
  readonly #panel = new Panel();
  readonly #plots = new Plots();
  readonly #controls: Controls;
  readonly #rewind: Rewind;

  constructor(player: NamecastPlayer) {
    this.#player = player;
    this.#controls = new Controls(player);
    this.#rewind = new Rewind((to) => player.seek(to));
  }

  show(summary: Summary, state: PlayerState): void {
    this.#panel.show(summary, state);
    this.#controls.show(summary);
    this.#rewind.show(summary.position);
    this.#plots.push(performance.now() / 1_000, summary);
    if (this.#player.package.isOpen) {
      showPackage(this.#player.package);
    }
  }

  /** Takes the colours of the theme again. */
  restyle(): void {
    this.#plots.restyle();
  }
}

function showPackage(player: PackagePlayer): void {
  const figures = player.figures();
  element("package").hidden = false;
  setText(element("package-quality"), figures.height > 0 ? t("{lines} lines, {bitrate}", { lines: figures.height, bitrate: bitrate(figures.bitrate) }) : "–");
  setText(element("package-throughput"), figures.throughput > 0 ? bitrate(figures.throughput) : "–");
  setText(element("package-behind"), `${figures.behind.toFixed(1)} s`);
  setText(element("package-buffer"), `${figures.buffer.toFixed(1)} s`);
  setText(element("package-stalls"), String(figures.stalls));
}
