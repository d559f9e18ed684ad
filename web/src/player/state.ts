import type { Evidence, Facts, SignerRefusal } from "../shared/facts.ts";
import { waitingText } from "../shared/room.ts";
import type { Summary } from "../shared/summary.ts";
import { t } from "../shared/language.ts";
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
  | "room"
  | "sealed"
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
  /** How a person ends it: forgets the remembered key, allows sound, or opens the page by https. */
  action: "forget" | "sound" | "https" | null;
  /** Code of MediaError: 2 network, 3 decoding or signature, 4 cannot be played here; 0: no error. */
  error: number;
}

/** What this browser lacks. */
export interface Lack {
  kind: "insecure" | "unsupported";
  sentence: string;
  /** Address at which nothing is lacking; null: unknown. */
  remedy: string | null;
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
  /** Whether the node made the segments, and checked the signatures. */
  isOfNode: boolean;
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
  return { kind, badge: t(badge), look, sentence, isPlaying: false, covers: look === "wait" || look === "bad", action: null, error: 0, ...rest };
}

/** States that only a person ends. */
function blocked({ lack, facts, name, segments }: Situation): PlayerState | undefined {
  if (lack !== null) {
    return make(lack.kind, "Cannot play", "bad", lack.sentence, { error: 4, action: lack.remedy === null ? null : "https" });
  }
  if (facts.refusal !== null) {
    const action = facts.refusal.why === "changed" ? "forget" : null;
    return make("refused", "Refused", "bad", refusalSentence(name, facts.refusal), { error: 3, action });
  }
  if (facts.room?.state === "failed") {
    return make("room", "Not a member", "bad", t("You cannot join {root}: {cause}.", { root: facts.room.root, cause: facts.room.why ?? "" }), { error: 2 });
  }
  if (facts.failure !== null) {
    return make("failed", "Failed", "bad", t("The player failed: {cause}. Reload the page to try again.", { cause: facts.failure }), { error: 4 });
  }
  if (facts.videoCodec !== null && segments === null) {
    return make("codec", "Cannot play", "bad", undecodable(facts.videoCodec), { error: 4 });
  }
  return undefined;
}

function undecodable(codec: string): string {
  return t("This browser cannot decode {codec}. Try another browser, or publish with another codec.", { codec });
}

function refusalSentence(name: string, { why, signer, verdict, since }: SignerRefusal): string {
  switch (why) {
    case "changed":
      return t("{name} carries the signature of another key than the one remembered on {since}. If the publisher has a new key, forget the old one.", { name, since: since ?? "" });
    case "pinned":
      return t("{name} carries the signature of another key than this link names. Ask the sender for a new link.", { name });
    case "untrusted":
      return t("{name} carries the signature of {signer}, which was {verdict}.", { name, signer, verdict });
  }
}

/** States in which nothing is to be shown. */
function resting({ paused, hasBegun, isSeen, segments, summary }: Situation): PlayerState | undefined {
  if (paused) {
    return hasBegun ? make("paused", "Paused", "idle", t("Paused. The player receives nothing.")) : make("ready", "Ready", "idle", t("Press play to watch."));
  }
  if (!isSeen && segments === null && summary !== undefined) {
    return make("hidden", "Hidden", "idle", t("Nobody sees the picture, so the player does not receive it."));
  }
  return undefined;
}

function segments({ segments, name }: Situation): PlayerState | undefined {
  if (segments === null) {
    return undefined;
  }
  const { height, failure, still, behind, hasBegun, isOfNode } = segments;
  if (failure?.isFinal === true) {
    return make("codec", "Cannot play", "bad", failure.sentence, { error: 4 });
  }
  if (failure !== null) {
    return make("interrupted", "Waiting", "wait", failure.sentence);
  }
  if (!hasBegun && still <= SEGMENT_WAIT) {
    return make("joining", "Joining", "wait", t("Looking for the segments of {name}…", { name }));
  }
  if (still > 2 * STILL) {
    return make("interrupted", "Waiting", "wait", t("No new segment of {name} arrives. Playback resumes with the next one.", { name }));
  }
  const delay = behind > 0 ? t("{seconds} s behind the publisher", { seconds: behind.toFixed(0) }) : "";
  return make("segments", "Segments", "past", parts(isOfNode ? t("Plays segments that the node checked") : t("Plays segments"), lines(height), delay), { isPlaying: true });
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
      return make("codec", "Cannot play", "bad", undecodable(facts.audioCodec), { error: 4 });
    }
    if (muted) {
      return make("muted", "Sound only", "idle", t("This stream has sound only. Turn the sound on to listen."), { isPlaying: true, covers: true });
    }
    return isRecent(evidence.heard) ? { ...timed(summary, t("sound only")), covers: true } : undefined;
  }
  return kinds.data && isRecent(evidence.arrived) ? make("data", "Data", "live", t("This stream has data only."), { isPlaying: true, covers: true }) : undefined;
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
    const cause = t("this device is busy (wake-ups {delay} ms late)", { delay: Math.round(overload.delay) });
    return { ...state, sentence: `${state.sentence} · ${cause}` };
  }
  if (!isBest && picture !== null && path.carried !== null && summary.position.live) {
    return { ...state, sentence: `${state.sentence} · ${t("the connection carries {rate}", { rate: bitrate(path.carried) })}` };
  }
  return state;
}

/** The badge says live only while the publisher itself confirms it. */
function timed({ position, liveness, recordedFrom }: Summary, detail: string): PlayerState {
  const rest = { isPlaying: true };
  if (position.seeking !== null) {
    return make("seeking", "Seeking", "past", t("Going to {time}…", { time: timeOfDay(position.seeking) }), rest);
  }
  if (!position.live) {
    const behind = t("{duration} behind", { duration: duration(position.now - (position.shown ?? position.now)) });
    return make("past", behind, "past", parts(t("{duration} behind live", { duration: duration(position.now - (position.shown ?? position.now)) }), detail), rest);
  }
  switch (liveness) {
    case "live":
      return make("live", "Live", "live", parts(t("Live"), detail), rest);
    case "recorded":
      return make("recorded", "Recorded", "past", parts(recordedFrom === null ? t("Recorded") : t("Recorded {time}", { time: timeOfDay(recordedFrom) }), detail), rest);
    case "unconfirmed":
      return make("unconfirmed", "Not confirmed", "past", parts(t("The publisher does not confirm that this is live"), detail), rest);
  }
}

/** Nothing reaches a person: the first cause for which there is a proof. */
function waiting(situation: Situation): PlayerState {
  const { facts, summary, summaryAge, host, name } = situation;
  if (!facts.link.isUp || summary === undefined) {
    return disconnected(situation);
  }
  if (summaryAge > SILENT_WORKER) {
    return make("busy", "Busy", "bad", t("This device is too busy: the player gets no processor time. Close other programs."));
  }
  const sentence = facts.room === null ? "" : waitingText(facts.room.root, facts.room.state, t);
  if (sentence !== "") {
    return make("room", "Waiting", "wait", sentence);
  }
  if (facts.sealed !== null) {
    return make("sealed", "Sealed", "bad", sealedSentence(name, facts), { error: 3 });
  }
  const { evidence, signer } = summary;
  const [isArriving, isRefused] = [isRecent(evidence.arrived), evidence.refused > 0];
  if (evidence.settled < STILL) {
    return make("joining", "Joining", "wait", t("Looking for {name}…", { name }));
  }
  if (evidence.decoding > DECODER_BEHIND || (summary.overload.level !== "none" && (isArriving || !isRefused))) {
    return make("busy", "Busy", "bad", busySentence(summary));
  }
  if (evidence.unanswered > STILL) {
    return make("unanswered", "No answer", "wait", t("No data arrives from {host}: the connection is cut, or the publisher has stopped.", { host }));
  }
  if (isTooSlow(summary)) {
    return make("slow", "Too slow", "wait", slowSentence(summary));
  }
  if (evidence.arrived === null) {
    return signer === null
      ? make("unpublished", "Not live", "wait", t("Nobody publishes {name} at the moment. Playback starts when somebody does.", { name }))
      : make("interrupted", "Waiting", "wait", t("The publisher of {name} answers, but has sent nothing yet.", { name }));
  }
  if (isArriving) {
    return make("interrupted", "Waiting", "wait", t("The picture is incomplete. Playback resumes at the next complete one."));
  }
  if (isRefused || summary.liveness !== "live") {
    return make("gone", "Offline", "wait", t("The publisher of {name} is offline. Playback resumes when it returns.", { name }));
  }
  return make("interrupted", "Waiting", "wait", t("The publisher of {name} answers, but sends no new picture.", { name }));
}

/** Why nothing of a sealed stream is shown. */
function sealedSentence(name: string, { room, sealed }: Facts): string {
  switch (sealed) {
    case "beforejoining":
      return t("{name} was sealed before you joined. Playback starts with what is published from now on.", { name });
    case "boxmissing":
      return t("The key of {name} is missing. Playback starts when it arrives.", { name });
    case "damaged":
      return t("{name} is sealed with a key that does not fit: somebody changed it on its way.", { name });
    default:
      return room?.isMember === true
        ? t("{name} is sealed, and its publisher has no key for you: your membership was revoked, has ended, or is too new. Ask the host.", { name })
        : t("{name} is sealed for the members of its room. Ask the host for a link to join.", { name });
  }
}

function disconnected({ facts, host, foreignPage, name }: Situation): PlayerState {
  const { server, link } = facts;
  if (server === "silent" && foreignPage !== null) {
    return make("unreachable", "No answer", "bad", t("{host} does not answer pages of {page}. Its operator may have to add \"{page}\" to allow-origins in [web] of its configuration file.", { host, page: foreignPage }), { error: 2 });
  }
  if (server === "silent") {
    return make("unreachable", "No answer", "bad", t("{host} does not answer. Trying again…", { host }), { error: 2 });
  }
  if (link.lost !== null) {
    return make("cut", "Reconnecting", "wait", t("The connection to {host} is lost: {cause}. Reconnecting…", { host, cause: link.lost.replace(/\.$/, "") }), { error: 2 });
  }
  return link.isUp ? make("joining", "Joining", "wait", t("Looking for {name}…", { name })) : make("connecting", "Connecting", "wait", t("Connecting to {host}…", { host }));
}

function busySentence({ overload, evidence, rung, rungs }: Summary): string {
  const isLowest = rungs.length < 2 || rungs.at(-1)?.name === rung;
  const advice = isLowest ? t("Close other programs.") : t("Close other programs or choose a lower quality.");
  const cause = evidence.decoding > DECODER_BEHIND ? t("decoding is {seconds} s behind", { seconds: (evidence.decoding / 1_000).toFixed(0) }) : t("wake-ups are {delay} ms late", { delay: Math.round(overload.delay) });
  return t("This device is too busy: {cause}. {advice}", { cause, advice });
}

/** Whether no quality fits: by the core's choice, or by what the link was measured to carry. A node that refuses has another cause. */
function isTooSlow({ picture, path, rungs, evidence }: Summary): boolean {
  const least = rungs.at(-1)?.bitrate ?? 0;
  return picture?.startsWith("nothing fits") === true || (path.carried !== null && path.carried < least && evidence.refused === 0);
}

function slowSentence({ path, rungs }: Summary): string {
  const least = rungs.at(-1)?.bitrate ?? 0;
  const carried = path.carried === null ? t("too little") : bitrate(path.carried);
  return least > 0 ? t("The connection carries {carried}; the lowest quality needs {least}.", { carried, least: bitrate(least) }) : t("The connection carries {carried} for a picture.", { carried });
}

/** Something that a person has to know while it plays takes the place of the sentence. */
function withNote(situation: Situation, state: PlayerState): PlayerState {
  const { facts, soundNeedsClick, soundFailure, muted } = situation;
  if (facts.missed !== null) {
    return { ...state, sentence: missedSentence(facts.missed, state) };
  }
  if (soundNeedsClick) {
    return { ...state, sentence: t("The browser plays sound only after a click."), action: "sound" };
  }
  if (soundFailure !== "") {
    return { ...state, sentence: t("No sound: {cause}", { cause: soundFailure }) };
  }
  if (facts.audioCodec !== null && !muted) {
    return { ...state, sentence: `${state.sentence} · ${t("no sound: this browser cannot decode {codec}", { codec: facts.audioCodec })}` };
  }
  return state;
}

function missedSentence({ to, since, answered }: NonNullable<Facts["missed"]>, { kind }: PlayerState): string {
  const end = kind === "past" ? t("Playback stays where it was.") : t("Playback stays live.");
  if (!answered) {
    return `${t("No archive answers.")} ${end}`;
  }
  return since === null ? `${t("The archive has nothing of {time}.", { time: timeOfDay(to) })} ${end}` : `${t("The archive starts at {time}.", { time: timeOfDay(since) })} ${end}`;
}

function lines(height: number): string {
  return height > 0 ? `${height}p` : "";
}

function parts(...texts: string[]): string {
  return texts.filter((text) => text !== "").join(" · ");
}
