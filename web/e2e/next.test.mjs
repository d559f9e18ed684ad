// The npm package in a site that Next builds. Not part of `make test`: it installs Next from the npm registry (30 s).

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { openSite, startSite } from "./lib/embedding.mjs";

const run = promisify(execFile);

const FILES = {
  "package.json": '{ "private": true }',
  "next.config.mjs": 'export default { output: "export" };',
  "app/layout.jsx": 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;',
  "app/page.jsx": 'import { Site } from "./site";\nexport default () => <main><Site /></main>;',
  "app/site.jsx": `"use client";
import { useEffect, useState } from "react";
import { NamecastPlayer } from "namecast-player/react";
export function Site() {
  const [src, setSrc] = useState();
  useEffect(() => setSrc(new URLSearchParams(location.search).get("src")), []);
  return <NamecastPlayer src={src} autoplay muted />;
}`,
};

let world;
let built;

before(async () => {
  world = await startSite(async ({ directory, tarball }) => {
    const root = path.join(directory, "next-site");
    await mkdir(path.join(root, "app"), { recursive: true });
    for (const [file, text] of Object.entries(FILES)) {
      await writeFile(path.join(root, file), text);
    }
    await run("npm", ["install", "--no-audit", "--no-fund", "next@16", "react@19", "react-dom@19", tarball], { cwd: root });
    await run(path.join(root, "node_modules/.bin/next"), ["build"], { cwd: root, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
    built = path.join(root, "out");
    return built;
  });
});

after(() => world?.end());

test("Next renders the bare element on its server", async () => {
  assert.match(await readFile(path.join(built, "index.html"), "utf8"), /<main><namecast-player><\/namecast-player><\/main>/);
});

test("a site that Next built plays picture and sound", async () => {
  const { page, errors } = await openSite(world);
  try {
    await page.waitForFunction(() => document.querySelector("namecast-player").state?.kind === "live", null, { timeout: 30_000 });
    await page.locator("namecast-player").click();
    await page.evaluate(() => (document.querySelector("namecast-player").muted = false));
    await page.waitForFunction(() => document.querySelector("namecast-player").summary.audio.state === "playing", null, { timeout: 30_000 });
    assert.deepEqual(errors, []);
  } finally {
    await page.close();
  }
});
