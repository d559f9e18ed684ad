import "../player/element.ts";
import { element } from "../page/elements.ts";
import { translatePage } from "../page/translate.ts";
import { readableName } from "../shared/readable-name.ts";

/** The page of a player alone, which others show inside of theirs. */
const player = element<HTMLElementTagNameMap["namecast-player"]>("player");
for (const event of ["loadedmetadata", "titlechange"]) {
  player.addEventListener(event, () => (document.title = player.streamTitle ?? readableName(player.streamName)));
}
player.src = location.href;
void translatePage();
element<HTMLAnchorElement>("whole").href = `./${location.search}`;
