import type { Command, Report } from "../shared/messages.ts";
import { message } from "./link.ts";
import { openScreen, type Screen } from "./screen.ts";
import { Session } from "./session.ts";
import { loadTab } from "./tab.ts";

/** This file's own thread, as TypeScript's library for it does not name it. */
const thread = self as unknown as DedicatedWorkerGlobalScope;

const report = (message: Report, transfer: Transferable[] = []): void => thread.postMessage(message, transfer);
const now = (): number => performance.timeOrigin + performance.now();
/** When the worker ran, which is before the page listens. */
const ranAt = now();

type Start = Extract<Command, { type: "start" }>;

/** What plays, and what is wanted if it has to begin again. */
let start: Start | undefined;
/** The core that the page compiles, and what takes it. */
let takeCore: (core: WebAssembly.Module | undefined) => void;
const compiled = new Promise<WebAssembly.Module | undefined>((resolve) => (takeCore = resolve));
let core: ReturnType<typeof loadTab> | undefined;
/** One for all sessions: its target can be taken once. */
let screen: Screen | undefined;
let session: Promise<Session | undefined> | undefined;
let wanted = new AbortController();

thread.onmessage = (event: MessageEvent<Command>) => {
  const command = event.data;
  switch (command.type) {
    case "start":
      start = command;
      report({ type: "step", at: ranAt, text: "The worker runs" });
      open(start);
      break;
    case "core":
      takeCore(command.core);
      break;
    case "play":
      if (start !== undefined) {
        start = { ...start, openedAt: command.openedAt, known: command.known, node: undefined };
        open(start);
      }
      break;
    case "pause":
      wanted.abort();
      session?.then((opened) => opened?.close()).catch(fail);
      session = undefined;
      break;
    default:
      remember(command);
      session?.then((opened) => opened?.handle(command)).catch(fail);
  }
};

function open(start: Start): void {
  if (session === undefined) {
    wanted = new AbortController();
    core ??= load(start.compiles ? compiled : undefined);
    screen ??= openScreen(start.screen);
    session = Session.open({ start, screen, report }, core, wanted.signal);
    session.catch(fail);
  }
}

async function load(compiled: Promise<WebAssembly.Module | undefined> | undefined): ReturnType<typeof loadTab> {
  const loaded = await loadTab(await compiled);
  report({ type: "step", at: now(), text: "The core runs" });
  return loaded;
}

/** Keeps what was chosen for the next session. */
function remember(command: Command): void {
  if (start === undefined) {
    return;
  }
  if (command.type === "visible") {
    start = { ...start, visible: command.visible };
  } else if (command.type === "target") {
    start = { ...start, options: { ...start.options, target: command.target } };
  } else if (command.type === "rung") {
    start = { ...start, options: { ...start.options, rung: command.rung } };
  } else if (command.type === "publish") {
    start = { ...start, publishes: command.publishes };
  }
}

function fail(error: unknown): void {
  report({ type: "facts", facts: { failure: message(error) } });
}
