import { loadTab } from "#tab";
import type { Command, Report } from "../shared/messages.ts";
import { message } from "./link.ts";
import { Session } from "./session.ts";

/** This file's own thread, as TypeScript's library for it does not name it. */
const thread = self as unknown as DedicatedWorkerGlobalScope;

const report = (message: Report): void => thread.postMessage(message);

// Begun before the page says what to play: compiling takes as long as finding the server.
const core = loadTab();
core.catch(() => undefined);

let session: Promise<Session> | undefined;

thread.onmessage = (event: MessageEvent<Command>) => {
  const command = event.data;
  if (command.type === "start") {
    session ??= Session.open(command, core, report);
    session.catch(fail);
  } else {
    session?.then((opened) => opened.handle(command)).catch(fail);
  }
};

function fail(error: unknown): void {
  report({ type: "notice", topic: "fatal", text: `The page cannot play: ${message(error)}` });
}
