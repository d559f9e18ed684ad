import init, { Tab } from "../wasm/namecast_web.js";
import wasm from "../wasm/namecast_web_bg.wasm?url";
import type { Core } from "./tab-port.ts";

/** Loads the core, unless it is compiled already. */
export async function loadTab(compiled: WebAssembly.Module | undefined): Promise<Core> {
  const { memory } = await init({ module_or_path: compiled ?? wasm });
  return {
    make: (config) => new Tab(JSON.stringify(config)),
    memory: () => memory.buffer.byteLength,
  };
}
