import { direction, language, preferred, speak, t } from "../shared/language.ts";

/** Attributes that people read or hear. */
const ATTRIBUTES = ["title", "aria-label", "placeholder"];

/** Puts the markup of the page into the language of its reader, or that of the field `lang` of its address. Returns once it is. */
export async function translatePage(): Promise<void> {
  await speak(preferred(new URLSearchParams(location.search).get("lang")));
  if (language() === document.documentElement.lang) {
    return;
  }
  document.documentElement.lang = language();
  document.documentElement.dir = direction();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node instanceof Element) {
      translateAttributes(node);
    } else {
      const text = node.textContent ?? "";
      const [trimmed, translated] = [text.trim(), t(text.trim())];
      if (trimmed !== translated) {
        node.textContent = text.replace(trimmed, () => translated);
      }
    }
  }
}

function translateAttributes(found: Element): void {
  for (const attribute of ATTRIBUTES) {
    const text = found.getAttribute(attribute);
    if (text !== null && text !== t(text)) {
      found.setAttribute(attribute, t(text));
    }
  }
}
