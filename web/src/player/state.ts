import type { Evidence, Facts, SignerRefusal } from "../shared/facts.ts";
import type { Summary } from "../shared/summary.ts";
import { bitrate, duration, timeOfDay } from "./format.ts";

/** Without a picture for this long it does not play, in milliseconds; slow streams have three pictures' time. */
const STILL = 1_500;
/** Without figures for this long the worker gets no processor time, in milliseconds. */
const SILENT_WORKER = 3_000;
/** The first segment arrives within this time where one is published, in milliseconds. */
const SEGMENT_WAIT = 10_000;
/** A decoder this far behind shows nothing that is live, in milliseconds. */
const DECODER_BEHIND = 1_500;

/** What the player does, in one word. */
export type StateKind =
  | "ready"
  | "connecting"
  | "unreachable"
  | "joining"
  | "unpublished"
  | "live"
  | "unconfirmed"
  | "recorded"
  | "past"
  | "seeking"
  | "muted"
  | "data"
  | "segments"
  | "gone"
  | "cut"
  | "unanswered"
  | "slow"
  | "busy"
  | "interrupted"
  | "hidden"
  | "paused"
  | "refused"
  | "insecure"
  | "unsupported"
  | "codec"
  | "failed";

/** How the badge looks: live, older than live, waiting, in need of a person, or neither. */
export type Look = "live" | "past" | "wait" | "bad" | "idle";

/** The player's state for people: one badge and one sentence, made of what was shown, heard and measured. */
export interface PlayerState {
  kind: StateKind;
  badge: string;
  look: Look;
  /** Names the measured cause where something is wrong. */
  sentence: string;
  /** Whether picture, sound or data reaches a person. */
  isPlaying: boolean;
  /** Whether the sentence stands in place of the picture, as there is none. */
  covers: boolean;
  /** How a person ends it: forgets the remembered key, or allows sound. */
  action: "forget" | "sound" | null;
  /** Code of MediaError: 2 network, 3 decoding or signature, 4 cannot be played here; 0: no error. */
  error: number;
}

/** What this browser lacks. */
export interface Lack {
  kind: "insecure" | "unsupported";
  sentence: string;
}

/** How a stream of segments plays. */
export interface SegmentsState {
  /** Height of the picture in lines; 0: unknown. */
  height: number;
  /** Why no segment is fetched, and whether that stays so; null: they are fetched. */
  failure: { sentence: string; isFinal: boolean } | null;
  /** Time since the picture moved, in milliseconds. */
  still: number;
  /** Time behind the newest segment, in seconds. */
  behind: number;
  /** Whether a picture was shown. */
  hasBegun: boolean;
}

/** Everything that a state is made of. */
export interface Situation {
  name: string;
  /** Host of the node, and origin of the page if that is another one. */
  host: string;
  foreignPage: string | null;
  lack: Lack | null;
  hasBegun: boolean;
  paused: boolean;
  /** Whether a person can see the picture. */
  isSeen: boolean;
  muted: boolean;
  /** Whether the browser wants a click before it plays sound. */
  soundNeedsClick: boolean;
  /** Why the audio device does not play; empty: it does. */
  soundFailure: string;
  facts: Facts;
  summary: Summary | undefined;
  /** Age of the summary, in milliseconds. */
  summaryAge: number;
  /** Time since the element that shows the picture got a new one, in milliseconds; null: unknown. */
  presented: number | null;
  segments: SegmentsState | null;
}

/** Returns the state of a player. */
export function describe(situation: Situation): PlayerState {
  const state = blocked(situation) ?? resting(situation) ?? segments(situation) ?? playing(situation) ?? waiting(situation);
  return state.isPlaying ? withNote(situation, state) : state;
}

function make(kind: StateKind, badge: string, look: Look, sentence: string, rest: Partial<PlayerState> = {}): PlayerState {
  return { kind, badge, look, sentence, isPlaying: false, covers: look === "wait" || look === "bad", action: null, error: 0, ...rest };
}

/** States that only a person ends. */
function blocked({ lack, facts, name, segments }: Situation): PlayerState | undefined {
  if (lack !== null) {
    return make(lack.kind, "Cannot play", "bad", lack.sentence, { error: 4 });
  }
  if (facts.refusal !== null) {
    const action = facts.refusal.why === "changed" ? "forget" : null;
    return make("refused", "Refused", "bad", refusalSentence(name, facts.refusal), { error: 3, action });
  }
  if (facts.failure !== null) {
    return make("failed", "Failed", "bad", `The player failed: ${facts.failure}. Reload the page to try again.`, { error: 4 });
  }
  if (facts.videoCodec !== null && segments === null) {
    return make("codec", "Cannot play", "bad", `This browser cannot decode ${facts.videoCodec}. Try another browser, or publish with another codec.`, { error: 4 });
  }
  return undefined;
}

function refusalSentence(name: string, { why, signer, verdict, since }: SignerRefusal): string {
  switch (why) {
    case "changed":
      return `${name} carries the signature of another key than the one remembered on ${since}. If the publisher has a new key, forget the old one.`;
    case "pinned":
      return `${name} carries the signature of another key than this link names. Ask the sender for a new link.`;
    case "untrusted":
      return `${name} carries the signature of ${signer}, which was ${verdict}.`;
  }
}

/** States in which nothing is to be shown. */
function resting({ paused, hasBegun, isSeen, segments, summary }: Situation): PlayerState | undefined {
  if (paused) {
    return hasBegun ? make("paused", "Paused", "idle", "Paused. The player receives nothing.") : make("ready", "Ready", "idle", "Press play to watch.");
  }
  if (!isSeen && segments === null && summary !== undefined) {
    return make("hidden", "Hidden", "idle", "Nobody sees the picture, so the player does not receive it.");
  }
  return undefined;
}

function segments({ segments, name }: Situation): PlayerState | undefined {
  if (segments === null) {
    return undefined;
  }
  const { height, failure, still, behind, hasBegun } = segments;
  if (failure?.isFinal === true) {
    return make("codec", "Cannot play", "bad", failure.sentence, { error: 4 });
  }
  if (failure !== null) {
    return make("interrupted", "Waiting", "wait", failure.sentence);
  }
  if (!hasBegun && still <= SEGMENT_WAIT) {
    return make("joining", "Joining", "wait", `Looking for the segments of ${name}…`);
  }
  if (still > 2 * STILL) {
    return make("interrupted", "Waiting", "wait", `No new segment of ${name} arrives. Playback resumes with the next one.`);
  }
  const delay = behind > 0 ? `${behind.toFixed(0)} s behind the publisher` : "";
  return make("segments", "Segments", "past", parts("Plays segments", lines(height), delay), { isPlaying: true });
}

/** States in which picture, sound or data reach a person. */
function playing(situation: Situation): PlayerState | undefined {
  const { summary, facts, muted } = situation;
  if (summary === undefined || situation.summaryAge > SILENT_WORKER) {
    return undefined;
  }
  const { kinds, evidence } = summary;
  if (kinds.video) {
    return isShowing(situation, evidence) ? picture(summary) : undefined;
  }
  if (kinds.audio) {
    if (facts.audioCodec !== null) {
      return make("codec", "Cannot play", "bad", `This browser cannot decode ${facts.audioCodec}. Try another browser, or publish with another codec.`, { error: 4 });
    }
    if (muted) {
      return make("muted", "Sound only", "idle", "This stream has sound only. Turn the sound on to listen.", { isPlaying: true, covers: true });
    }
    return isRecent(evidence.heard) ? { ...timed(summary, "sound only"), covers: true } : undefined;
  }
  return kinds.data && isRecent(evidence.arrived) ? make("data", "Data", "live", "This stream has data only.", { isPlaying: true, covers: true }) : undefined;
}

function isShowing({ presented }: Situation, { shown, interval }: Evidence): boolean {
  const limit = Math.max(STILL, 3 * interval);
  return isRecent(shown, limit) && (presented === null || presented < limit + STILL);
}

function isRecent(age: number | null, limit = STILL): boolean {
  return age !== null && age < limit;
}

/** A picture is shown: its time, its size, and why it is not the best one. */
function picture(summary: Summary): PlayerState {
  const { rungs, rung, overload, path, picture } = summary;
  const height = rungs.find(({ name }) => name === rung)?.height ?? 0;
  const state = timed(summary, lines(height));
  const isBest = rung === null || rungs[0]?.name === rung;
  if (overload.level !== "none") {
    const cause = `this device is busy (wake-ups ${Math.round(overload.delay)} ms late)`;
    return { ...state, sentence: `${state.sentence} · ${cause}` };
  }
  if (!isBest && picture !== null && path.carried !== null && summary.position.live) {
    return { ...state, sentence: `${state.sentence} · the connection carries ${bitrate(path.carried)}` };
  }
  return state;
}

/** The badge says live only while the publisher itself confirms it. */
function timed({ position, liveness, recordedFrom }: Summary, detail: string): PlayerState {
  const rest = { isPlaying: true };
  if (position.seeking !== null) {
    return make("seeking", "Seeking", "past", `Going to ${timeOfDay(position.seeking)}…`, rest);
  }
  if (!position.live) {
    const behind = `${duration(position.now - (position.shown ?? position.now))} behind`;
    return make("past", behind, "past", parts(`${behind} live`, detail), rest);
  }
  switch (liveness) {
    case "live":
      return make("live", "Live", "live", parts("Live", detail), rest);
    case "recorded":
      return make("recorded", "Recorded", "past", parts(recordedFrom === null ? "Recorded" : `Recorded ${timeOfDay(recordedFrom)}`, detail), rest);
    case "unconfirmed":
      return make("unconfirmed", "Not confirmed", "past", parts("The publisher does not confirm that this is live", detail), rest);
  }
}

/** Nothing reaches a person: the first cause for which there is a proof. */
function waiting(situation: Situation): PlayerState {
  const { facts, summary, summaryAge, host, name } = situation;
  if (!facts.link.isUp || summary === undefined) {
    return disconnected(situation);
  }
  if (summaryAge > SILENT_WORKER) {
    return make("busy", "Busy", "bad", "This device is too busy: the player gets no processor time. Close other programs.");
  }
  const { evidence, signer } = summary;
  const [isArriving, isRefused] = [isRecent(evidence.arrived), evidence.refused > 0];
  if (evidence.settled < STILL) {
    return make("joining", "Joining", "wait", `Looking for ${name}…`);
  }
  if (evidence.decoding > DECODER_BEHIND || (summary.overload.level !== "none" && (isArriving || !isRefused))) {
    return make("busy", "Busy", "bad", busySentence(summary));
  }
  if (evidence.unanswered > STILL) {
    return make("unanswered", "No answer", "wait", `No data arrives from ${host}: the connection is cut, or the publisher has stopped.`);
  }
  if (summary.picture?.startsWith("nothing fits") === true) {
    return make("slow", "Too slow", "wait", slowSentence(summary));
  }
  if (evidence.arrived === null) {
    return signer === null
      ? make("unpublished", "Not live", "wait", `Nobody publishes ${name} at the moment. Playback starts when somebody does.`)
      : make("interrupted", "Waiting", "wait", `The publisher of ${name} answers, but has sent nothing yet.`);
  }
  if (isArriving) {
    return make("interrupted", "Waiting", "wait", "The picture is incomplete. Playback resumes at the next complete one.");
  }
  if (isRefused || summary.liveness !== "live") {
    return make("gone", "Offline", "wait", `The publisher of ${name} is offline. Playback resumes when it returns.`);
  }
  return make("interrupted", "Waiting", "wait", `The publisher of ${name} answers, but sends no new picture.`);
}

function disconnected({ facts, host, foreignPage, name }: Situation): PlayerState {
  const { server, link } = facts;
  if (server === "silent" && foreignPage !== null) {
    const advice = `Its operator may have to add "${foreignPage}" to allow-origins in [web] of its configuration file.`;
    return make("unreachable", "No answer", "bad", `${host} does not answer pages of ${foreignPage}. ${advice}`, { error: 2 });
  }
  if (server === "silent") {
    return make("unreachable", "No answer", "bad", `${host} does not answer. Trying again…`, { error: 2 });
  }
  if (link.lost !== null) {
    return make("cut", "Reconnecting", "wait", `The connection to ${host} is lost: ${link.lost.replace(/\.$/, "")}. Reconnecting…`, { error: 2 });
  }
  return link.isUp ? make("joining", "Joining", "wait", `Looking for ${name}…`) : make("connecting", "Connecting", "wait", `Connecting to ${host}…`);
}

function busySentence({ overload, evidence, rung, rungs }: Summary): string {
  const isLowest = rungs.length < 2 || rungs.at(-1)?.name === rung;
  const advice = isLowest ? "Close other programs." : "Close other programs or choose a lower quality.";
  const cause = evidence.decoding > DECODER_BEHIND ? `decoding is ${(evidence.decoding / 1_000).toFixed(0)} s behind` : `wake-ups are ${Math.round(overload.delay)} ms late`;
  return `This device is too busy: ${cause}. ${advice}`;
}

function slowSentence({ path, rungs }: Summary): string {
  const least = rungs.at(-1)?.bitrate ?? 0;
  const carried = path.carried === null ? "too little" : bitrate(path.carried);
  return least > 0 ? `The connection carries ${carried}; the lowest quality needs ${bitrate(least)}.` : `The connection carries ${carried} for a picture.`;
}

/** Something that a person has to know while it plays takes the place of the sentence. */
function withNote(situation: Situation, state: PlayerState): PlayerState {
  const { facts, soundNeedsClick, soundFailure, muted } = situation;
  if (facts.missed !== null) {
    return { ...state, sentence: missedSentence(facts.missed, state) };
  }
  if (soundNeedsClick) {
    return { ...state, sentence: "The browser plays sound only after a click.", action: "sound" };
  }
  if (soundFailure !== "") {
    return { ...state, sentence: `No sound: ${soundFailure}` };
  }
  if (facts.audioCodec !== null && !muted) {
    return { ...state, sentence: `${state.sentence} · no sound: this browser cannot decode ${facts.audioCodec}` };
  }
  return state;
}

function missedSentence({ to, since, answered }: NonNullable<Facts["missed"]>, { kind }: PlayerState): string {
  const end = kind === "past" ? "Playback stays where it was." : "Playback stays live.";
  if (!answered) {
    return `No archive answers. ${end}`;
  }
  return since === null ? `The archive has nothing of ${timeOfDay(to)}. ${end}` : `The archive starts at ${timeOfDay(since)}. ${end}`;
}

function lines(height: number): string {
  return height > 0 ? `${height}p` : "";
}

function parts(...texts: string[]): string {
  return texts.filter((text) => text !== "").join(" · ");
}
