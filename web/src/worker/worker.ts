import { loadTab } from "#tab";
import type { Command, Report } from "../shared/messages.ts";
import { message } from "./link.ts";
import { Session } from "./session.ts";

/** This file's own thread, as TypeScript's library for it does not name it. */
const thread = self as unknown as DedicatedWorkerGlobalScope;

const report = (message: Report): void => thread.postMessage(message);
const now = (): number => performance.timeOrigin + performance.now();
/** Steps that are over before the page listens. */
const early: Report[] = [{ type: "step", at: now(), text: "The worker runs" }];

type Start = Extract<Command, { type: "start" }>;

/** What plays, and what is wanted if it has to begin again. */
let start: Start | undefined;
let core: ReturnType<typeof loadTab> | undefined;
let session: Promise<Session | undefined> | undefined;
let wanted = new AbortController();

thread.onmessage = (event: MessageEvent<Command>) => {
  const command = event.data;
  switch (command.type) {
    case "start":
      start ??= command;
      open(start);
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
    core ??= load(start.core);
    session = Session.open(start, core, report, wanted.signal);
    session.then(() => early.splice(0).forEach(report)).catch(fail);
  }
}

async function load(compiled: WebAssembly.Module | undefined): ReturnType<typeof loadTab> {
  const loaded = await loadTab(compiled);
  early.push({ type: "step", at: now(), text: "The core runs" });
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
  }
}

function fail(error: unknown): void {
  report({ type: "notice", topic: "fatal", text: `The page cannot play: ${message(error)}` });
}
