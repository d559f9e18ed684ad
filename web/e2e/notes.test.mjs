// A data stream from one tab to another, through a forwarder.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { openPage, startBrowser } from "./lib/browser.mjs";
import { findBinary, makeHome, startServer } from "./lib/processes.mjs";
import { startProxy } from "./lib/proxy.mjs";

let binary;
let home;
let browser;

before(async () => {
  binary = await findBinary();
  home = await makeHome();
  browser = await startBrowser(home.directory);
});

after(async () => {
  await browser?.close();
  await home?.remove();
});

/** Runs `check` with a forwarder, and a proxy behind which its page is not local. */
async function withForwarder(name, management, check) {
  const file = path.join(home.directory, `${name}.toml`);
  const socket = path.join(home.directory, `${name}.sock`);
  await writeFile(file, `
    listen = { udp = [], tcp = [], unix = ["${socket}"] }
    web = { trusted-proxies = ["127.0.0.2"] }
    management = { ${management} }
  `);
  const forwarder = await startServer(binary, ["forwarder", "--config", file], home.directory);
  const proxy = await startProxy({ to: forwarder.url, from: "127.0.0.2" });
  try {
    await check(forwarder.url, proxy.url);
  } finally {
    await proxy.close();
    await forwarder.program.end();
  }
}

const NOTES = Array.from({ length: 20 }, (_, number) => `note ${number}`);

/** Texts of the samples that a page got. */
const received = ({ page }) => page.evaluate(() => globalThis.namecast.samples.map(({ octets }) => new TextDecoder().decode(octets)));

/** Waits until `list()` has `count` entries, as it will if all is well. */
async function untilThere(player, list, count) {
  await player.page.waitForFunction((count) => globalThis.namecast.samples.length >= count, count, { timeout: 60_000 });
  return list(player);
}

/** Publishes by the button, and waits until the node sends those who want `name` to the page. */
const publish = async ({ page }, name) => {
  await page.getByRole("button", { name: `Publish notes as ${name}` }).click();
  await page.locator("#steps li span").getByText(`Publishing ${name}`, { exact: true }).first().waitFor({ timeout: 60_000 });
};

/** Publishes notes in a page from `from`, and reads them in one from `to`. */
async function exchange(from, to, name) {
  const reader = await openPage(browser, `${to}?name=${name}`);
  // A proxy carries no WebTransport.
  const transport = from === to ? "" : "&transport=ws";
  const writer = await openPage(browser, `${from}?name=${name}&publish=${name}${transport}`);
  try {
    await publish(writer, name);
    await reader.untilStats("signer", ({ signer }) => signer !== null && signer.trusted);
    const line = writer.page.locator("#note");
    for (const note of NOTES) {
      await line.fill(note);
      await line.press("Enter");
      await writer.page.waitForTimeout(100);
    }
    assert.deepEqual(await untilThere(reader, received, NOTES.length), NOTES);
    assert.match(await reader.page.locator("#notes-list li").first().textContent(), /note 19$/);
    assert.deepEqual([...reader.errors, ...writer.errors], []);
    // The browser keeps the key, so who has read once goes on after the page was loaded anew.
    const { signer } = await reader.stats();
    await writer.page.reload();
    await reader.untilStats("the page that was loaded anew", ({ signer: now }) => now?.trusted);
    await publish(writer, name);
    await writer.page.evaluate(async () => {
      for (let number = 0; number < 50; number += 1) {
        globalThis.namecast.send(new TextEncoder().encode("again"));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    });
    assert.ok((await received(reader)).includes("again"), "nothing after the reload");
    assert.equal((await reader.stats()).signer.digest, signer.digest);
  } finally {
    await writer.close();
    await reader.close();
  }
}

describe("what one tab publishes", () => {
  test("another reads, on the machine of the forwarder", () => withForwarder("local", "", (own) => exchange(own, own, "/notes/local")));

  test("another reads, where the forwarder lets neighbours register", () =>
    withForwarder("localhop", "localhop = true", (own, proxied) => exchange(proxied, own, "/notes/localhop")));

  test("nobody gets where it does not, and the page says so", () =>
    withForwarder("refusing", "", async (_, proxied) => {
      const writer = await openPage(browser, `${proxied}?name=/notes/refused&publish=/notes/refused`);
      try {
        const failure = writer.page.locator("#notes-failure");
        // The address alone publishes nothing.
        await writer.untilStats("the link", ({ transport }) => transport !== null);
        assert.equal(await failure.isVisible(), false);
        assert.deepEqual(await writer.page.evaluate(() => Object.keys(localStorage).filter((entry) => entry.startsWith("namecast-secret"))), []);
        await writer.page.locator("#notes-publish").click();
        await failure.waitFor({ timeout: 60_000 });
        assert.match(await failure.textContent(), /localhop = true/);
      } finally {
        await writer.close();
      }
    }));
});
