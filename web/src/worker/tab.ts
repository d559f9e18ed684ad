import init, { Tab } from "../wasm/namecast_web.js";
import wasm from "../wasm/namecast_web_bg.wasm?url";
import type { TabConfig, TabPort } from "./tab-port.ts";

/** Loads the core. */
export async function loadTab(): Promise<(config: TabConfig, now: number) => TabPort> {
  await init({ module_or_path: wasm });
  return (config, now) => new Tab(JSON.stringify(config), now);
}
