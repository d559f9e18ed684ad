import init, { Tab } from "../wasm/namecast_web.js";
import wasm from "../wasm/namecast_web_bg.wasm?url";
import type { Core } from "./tab-port.ts";

/** Loads the core. */
export async function loadTab(): Promise<Core> {
  const { memory } = await init({ module_or_path: wasm });
  return {
    make: (config) => new Tab(JSON.stringify(config)),
    memory: () => memory.buffer.byteLength,
  };
}
