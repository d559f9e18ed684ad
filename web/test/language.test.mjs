import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import german from "../src/languages/de.ts";
import { choose, direction, language, speak, t } from "../src/shared/language.ts";

const WEB = path.resolve(import.meta.dirname, "..");
const sources = readdirSync(path.join(WEB, "src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts") && !file.startsWith("languages"));
const text = (file) => readFileSync(path.join(WEB, file), "utf8");

/** All that is translated where it is used. */
const used = new Set(sources.flatMap((file) => [...text(path.join("src", file)).matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)].map(([, found]) => JSON.parse(found))));
/** Badges are translated where a state is made, and words of the page to go live where it enters a state. */
const badges = [...text("src/player/state.ts").matchAll(/make\([^,]+, "([^"]+)"/g)].map(([, badge]) => badge);
const states = ["not live", "starting", "live", "connecting"];
/** All that the markup of the pages says. */
const markup = ["index.html", "live.html", "embed.html"].map(text).join("");
const attributes = [...markup.matchAll(/ (?:title|aria-label|placeholder)="([^"]+)"/g)].map(([, found]) => found);
const contents = [...markup.replace(/<(head|noscript|svg)\b[\s\S]*?<\/\1>/g, "").matchAll(/>([^<>]*\p{L}[^<>]*)</gu)].map(([, found]) => (found).trim());
const inMarkup = new Set([...attributes, ...contents]);

/** Names and units, which are the same in all languages. */
const NAMES = ["Namecast", "100 ms", "ms"];

beforeEach(() => speak(["en"]));

describe("German", () => {
  test("has each text of player and pages, and none beside", () => {
    const all = new Set([...used, ...badges, ...states, ...inMarkup]);
    const missing = [...all].filter((english) => !Object.hasOwn(german, english) && !NAMES.includes(english));
    expect(missing).toEqual([]);
    expect(Object.keys(german).filter((english) => !all.has(english))).toEqual([]);
  });

  test("has the same values in each text", () => {
    const values = (text) => [...text.matchAll(/\{\w+\}/g)].map(([value]) => value).sort();
    for (const [english, translated] of Object.entries(german)) {
      expect(values(translated), english).toEqual(values(english));
    }
  });
});

test("style sheets name sides by the direction of writing", () => {
  const sheets = ["src/page/style.css", "src/live/live.css", "src/embed/embed.css"].map(text).join("");
  const physical = /^\s*(?:(?:margin|padding|border)-(?:left|right)|text-align: (?:left|right)|float|right)\b/gm;
  expect(sheets.match(physical)).toBeNull();
});

test("the first language of the reader that there are texts of is used", async () => {
  expect(choose(["fr-CA", "de-AT", "en"])).toBe("de");
  expect(choose(["en-GB", "de"])).toBe("en");
  // `C` is what a browser says under some systems; `constructor` is no language.
  expect(choose(["C", "constructor"])).toBe("en");
  await speak(["de-AT"]);
  expect([language(), direction(), t("Paused"), t("Looking for {name}…", { name: "/cam" })]).toEqual(["de", "ltr", "Pausiert", "Sucht /cam …"]);
  expect(t("What nobody translated: {cause}", { cause: "x" })).toBe("What nobody translated: x");
});

test("the language that was asked for last is used, whatever is loaded first", async () => {
  await Promise.all([speak(["de"]), speak(["en"])]);
  expect([language(), t("Paused")]).toEqual(["en", "Paused"]);
});

test("a value is put in as it is", () => {
  expect(t("Looking for {name}…", { name: "/{host}$&" })).toBe("Looking for /{host}$&…");
});
