import { generate } from "lean-qr";
import { toSvg } from "lean-qr/extras/svg";
import { t } from "../shared/language.ts";

/** Draws `link` as a code for a telephone's camera into `place`, dark on light in both themes: not every camera reads it inverted. */
export function drawCode(place: HTMLElement, link: string): void {
  if (place.dataset["link"] === link) {
    return;
  }
  const code = toSvg(generate(link), document, { on: "#10201c", off: "#fff", padX: 4, padY: 4 });
  code.setAttribute("role", "img");
  code.setAttribute("aria-label", t("The link as a code for a telephone's camera"));
  place.replaceChildren(code);
  place.dataset["link"] = link;
}
