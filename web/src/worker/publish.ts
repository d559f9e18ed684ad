import type { LiveReport, LiveStart } from "../shared/live.ts";
import { message } from "./link.ts";
import { LiveSession } from "./publish-session.ts";

/** This file's own thread, as TypeScript's library for it does not name it. */
const thread = self as unknown as DedicatedWorkerGlobalScope;

const report = (message: LiveReport): void => thread.postMessage(message);

/** One start; the page ends the worker to end the stream, which closes its connection. */
thread.onmessage = (event: MessageEvent<LiveStart>) => {
  LiveSession.open(event.data, report).catch((error: unknown) => {
    report({ type: "failed", text: `This tab cannot go live: ${message(error)}` });
  });
};
