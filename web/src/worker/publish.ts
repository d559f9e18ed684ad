import type { LiveChange, LiveReport, LiveStart } from "../shared/live.ts";
import { message } from "./link.ts";
import { LiveSession } from "./publish-session.ts";

/** This file's own thread, as TypeScript's library for it does not name it. */
const thread = self as unknown as DedicatedWorkerGlobalScope;

const report = (message: LiveReport): void => thread.postMessage(message);

let session: Promise<LiveSession> | undefined;

/** One start, then changes, each once the one before is made; the page ends the worker to end the stream, which closes its connection. */
thread.onmessage = ({ data }: MessageEvent<LiveStart | LiveChange>) => {
  session = session === undefined ? LiveSession.open(data as LiveStart, report) : session.then((opened) => opened.change(data));
  session.catch((error: unknown) => report({ type: "failed", text: `This tab cannot go live: ${message(error)}` }));
};
