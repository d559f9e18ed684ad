/** Texts of a language, by the English text that stands in the source. `{name}` stands for a value in both. */
export type Texts = Readonly<Record<string, string>>;

/** A language's file: the project's texts, and those of media-chrome's buttons. */
interface Language {
  default: Texts;
  controls: Texts;
}

/** Languages beside English, one file each. A new one is translated there, and listed here. */
const LANGUAGES: Readonly<Record<string, () => Promise<Language>>> = {
  de: () => import("../languages/de.ts"),
};
/** Languages that are written from right to left, by ISO 639. */
const RIGHT_TO_LEFT = ["ar", "fa", "he", "ur"];

const ENGLISH: Language = { default: {}, controls: {} };

let current = "en";
let used = ENGLISH;
/** What was asked for last, which may still be loaded. */
let wanted = current;

/** Returns a text in the language in use, with these values in place of `{their names}`. */
export function t(english: string, values: Readonly<Record<string, string | number>> = {}): string {
  const text = used.default[english] ?? english;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The language in use, as ISO 639 has it. */
export function language(): string {
  return current;
}

/** Texts of media-chrome's buttons in the language in use; none: media-chrome has them. */
export function controlTexts(): Texts {
  return used.controls;
}

/** The direction in which that language is written. */
export function direction(): "ltr" | "rtl" {
  return RIGHT_TO_LEFT.includes(current) ? "rtl" : "ltr";
}

/** Returns the first of these language tags, by preference, that there are texts of; English if there is none. */
export function choose(tags: readonly string[]): string {
  const languages = tags.map((tag) => tag.toLowerCase().split("-")[0] ?? "");
  return languages.find((each) => each === "en" || Object.hasOwn(LANGUAGES, each)) ?? "en";
}

/** Uses the first of these languages that there are texts of. All of a page is in one language: the one that was asked for last. */
export async function speak(tags: readonly string[]): Promise<void> {
  wanted = choose(tags);
  const chosen = wanted;
  const loaded = (await LANGUAGES[chosen]?.()) ?? ENGLISH;
  if (chosen === wanted) {
    [current, used] = [chosen, loaded];
  }
}

/** What the reader of the page prefers: an attribute first, then the browser's languages. */
export function preferred(attribute: string | null): readonly string[] {
  return attribute === null || attribute === "" ? navigator.languages : [attribute];
}
