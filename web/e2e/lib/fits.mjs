// What a page owes to whoever looks at it, on each kind of screen, and to whoever cannot look.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";

const AXE = path.resolve(import.meta.dirname, "../../node_modules/axe-core/axe.min.js");
/** A desk, a telephone, a telephone held sideways: width and height. */
export const SIZES = [[1280, 900], [390, 844], [844, 390]];

/** Fails unless the page fits, and all of the picture and the controls of the player `selector` are seen. */
export async function assertFits(page, selector, what) {
  const player = page.locator(selector);
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForFunction((selector) => document.querySelector(selector).shadowRoot.querySelector("media-control-bar") !== null, selector);
  // The controls come with the pointer, and go without it.
  const { x, y, width, height } = await player.boundingBox();
  for (let moves = 0, opacity = "0"; opacity !== "1"; moves += 1) {
    assert.ok(moves < 100, `the controls stay hidden: ${what} at ${JSON.stringify(page.viewportSize())}`);
    await page.mouse.move(x + width / 2, y + height / 2 + (moves % 2));
    await page.waitForTimeout(50);
    opacity = await player.evaluate((player) => getComputedStyle(player.shadowRoot.querySelector("media-control-bar")).opacity);
  }
  await assertInside(page, [selector, ...["play", "sound", "quality", "full"].map((id) => `${selector} #${id}`)], what);
}

/** Fails unless the page is no wider than the screen, and all of what these selectors find, one each, is on it. */
export async function assertInside(page, selectors, what) {
  const outside = [];
  for (const selector of selectors) {
    const isInside = await page.locator(selector).evaluate((found) => {
      const { left, top, right, bottom } = found.getBoundingClientRect();
      return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    });
    if (!isInside) {
      outside.push(selector);
    }
  }
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.deepEqual({ outside, overflow }, { outside: [], overflow: 0 }, `${what} at ${JSON.stringify(page.viewportSize())}`);
}

/** Fails if a screen reader would stumble over something. */
export async function assertAccessible(page, what) {
  if (!(await page.evaluate(() => globalThis.axe !== undefined))) {
    // As a script of its own it would be refused: the node allows the page's only.
    await page.evaluate(await readFile(AXE, "utf8"));
  }
  const violations = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(" ")} (${failureSummary})`).join("; ")}`);
  });
  assert.deepEqual(violations, [], `${what} at ${JSON.stringify(page.viewportSize())}`);
}
