import init, { Tab } from "../wasm/namecast_web.js";
import type { TabConfig, TabPort } from "./tab-port.ts";

/** Loads the core. */
export async function loadTab(): Promise<(config: TabConfig, now: number) => TabPort> {
  await init();
  return (config, now) => new Tab(JSON.stringify(config), now);
}
