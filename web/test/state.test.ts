import { describe, expect, test } from "vitest";
import { diagnostics } from "../src/page/diagnostics.ts";
import { timeOfDay } from "../src/player/format.ts";
import { describe as describeState, type PlayerState, type Situation, type StateKind } from "../src/player/state.ts";
import { NO_FACTS, type Evidence, type Facts } from "../src/shared/facts.ts";
import type { Summary } from "../src/shared/summary.ts";

const NOW = Date.UTC(2026, 4, 1, 12);
const RUNGS = [
  { name: "3M", bitrate: 3e6, width: 1280, height: 720 },
  { name: "300k", bitrate: 3e5, width: 320, height: 180 },
];
/** A second after the last picture, everything else as while it plays. */
const EVIDENCE: Evidence = { shown: 30, heard: null, arrived: 20, unanswered: 0, settled: 60_000, refused: 0, interval: 33, decoding: 10 };
const STOPPED: Partial<Evidence> = { shown: 4_000, arrived: 4_000 };

type Changes = Partial<Omit<Summary, "evidence" | "kinds" | "position" | "path" | "overload">> & {
  evidence?: Partial<Evidence>;
  kinds?: Partial<Summary["kinds"]>;
  position?: Partial<Summary["position"]>;
  carried?: number;
  busy?: number;
};

function summary({ evidence, kinds, position, carried, busy, ...rest }: Changes = {}): Summary {
  return {
    evidence: { ...EVIDENCE, ...evidence },
    kinds: { video: true, audio: true, data: false, ...kinds },
    position: { live: true, shown: NOW - 100, now: NOW, since: null, seeking: null, answers: 0, ...position },
    path: { carried: carried ?? null },
    overload: busy === undefined ? { level: "none", delay: 1 } : { level: "quality", delay: busy },
    rung: "3M",
    rungs: RUNGS,
    picture: "the highest bitrate there is",
    liveness: "live",
    recordedFrom: null,
    signer: { name: "/cam/KEY/1", digest: "ab".repeat(32), verdict: "trusted", trusted: true },
    ...rest,
  } as Summary;
}

function situation(some: Partial<Omit<Situation, "facts">> & { facts?: Partial<Facts> } = {}): Situation {
  return {
    name: "/cam",
    host: "node.example",
    foreignPage: null,
    lack: null,
    hasBegun: true,
    paused: false,
    isSeen: true,
    muted: true,
    soundNeedsClick: false,
    soundFailure: "",
    summary: summary(),
    summaryAge: 100,
    presented: null,
    segments: null,
    ...some,
    facts: { ...NO_FACTS, server: "answers", link: { isUp: true, lost: null }, ...some.facts },
  };
}

const REFUSAL = { signer: "/cam/KEY/1", verdict: "refused: unknown root", since: "2026-05-01" };
const ROOM = { root: "/calls/fox", state: "ready", why: null, isMember: false } as const;
const SEGMENTS = { height: 720, failure: null, still: 100, behind: 6.2, hasBegun: true, isOfNode: false };
const down = (lost: string | null): Partial<Facts> => ({ link: { isUp: false, lost } });

/** What happened, and what people read: kind, badge and sentence. */
const TABLE: [what: string, given: Situation, kind: StateKind, badge: string, sentence: string][] = [
  ["not begun", situation({ paused: true, hasBegun: false, summary: undefined }), "ready", "Ready", "Press play to watch."],
  ["connecting", situation({ summary: undefined, facts: down(null) }), "connecting", "Connecting", "Connecting to node.example…"],
  ["no server", situation({ summary: undefined, facts: { ...down(null), server: "silent" } }), "unreachable", "No answer", "node.example does not answer. Trying again…"],
  [
    "a server that lets other pages in only",
    situation({ summary: undefined, foreignPage: "https://site.example", facts: { ...down(null), server: "silent" } }),
    "unreachable",
    "No answer",
    'node.example does not answer pages of https://site.example. Its operator may have to add "https://site.example" to allow-origins in [web] of its configuration file.',
  ],
  ["joining", situation({ summary: summary({ evidence: { shown: null, arrived: null, settled: 400 } }) }), "joining", "Joining", "Looking for /cam…"],
  [
    "nothing published",
    situation({ summary: summary({ signer: null, kinds: { video: false, audio: false }, liveness: "unconfirmed", evidence: { shown: null, arrived: null, refused: 5 } }) }),
    "unpublished",
    "Not live",
    "Nobody publishes /cam at the moment. Playback starts when somebody does.",
  ],
  [
    "a host that has to say yes",
    situation({ summary: summary({ evidence: STOPPED }), facts: { room: { ...ROOM, state: "undecided" } } }),
    "room",
    "Waiting",
    "You wait in front of /calls/fox: its host has to let you in, or cannot be reached.",
  ],
  [
    "a room without a host",
    situation({ summary: summary({ evidence: STOPPED }), facts: { room: { ...ROOM, state: "away" } } }),
    "room",
    "Waiting",
    "Nobody hosts /calls/fox at the moment. You join as soon as its host is back.",
  ],
  ["a used link", situation({ facts: { room: { ...ROOM, state: "failed", why: "the link was used" } } }), "room", "Not a member", "You cannot join /calls/fox: the link was used."],
  [
    "sealed, for a stranger",
    situation({ summary: summary({ evidence: STOPPED }), facts: { room: ROOM, sealed: "notareader" } }),
    "sealed",
    "Sealed",
    "/cam is sealed for the members of its room. Ask the host for a link to join.",
  ],
  [
    "sealed, for a former member",
    situation({ summary: summary({ evidence: STOPPED }), facts: { room: { ...ROOM, isMember: true }, sealed: "notareader" } }),
    "sealed",
    "Sealed",
    "/cam is sealed, and its publisher has no key for you: your membership was revoked, has ended, or is too new. Ask the host.",
  ],
  ["sealed and shown", situation({ facts: { room: { ...ROOM, isMember: true }, sealed: "beforejoining" } }), "live", "Live", "Live · 720p"],
  ["live", situation(), "live", "Live", "Live · 720p"],
  ["live, not confirmed", situation({ summary: summary({ liveness: "unconfirmed" }) }), "unconfirmed", "Not confirmed", "The publisher does not confirm that this is live · 720p"],
  ["recorded", situation({ summary: summary({ liveness: "recorded", recordedFrom: NOW }) }), "recorded", "Recorded", `Recorded ${timeOfDay(NOW)} · 720p`],
  ["the past", situation({ summary: summary({ position: { live: false, shown: NOW - 75_000 } }) }), "past", "1:15 behind", "1:15 behind live · 720p"],
  ["seeking", situation({ summary: summary({ position: { seeking: NOW - 60_000 } }) }), "seeking", "Seeking", `Going to ${timeOfDay(NOW - 60_000)}…`],
  ["killed", situation({ summary: summary({ evidence: { ...STOPPED, refused: 3 } }) }), "gone", "Offline", "The publisher of /cam is offline. Playback resumes when it returns."],
  ["killed long ago", situation({ summary: summary({ liveness: "unconfirmed", evidence: STOPPED }) }), "gone", "Offline", "The publisher of /cam is offline. Playback resumes when it returns."],
  ["back", situation({ summary: summary({ evidence: { refused: 0 } }) }), "live", "Live", "Live · 720p"],
  ["cut, with pictures left", situation({ facts: down("Connection lost.") }), "live", "Live", "Live · 720p"],
  ["cut", situation({ facts: down("Connection lost."), summary: summary({ evidence: STOPPED }) }), "cut", "Reconnecting", "The connection to node.example is lost: Connection lost. Reconnecting…"],
  [
    "cut, and nobody noticed yet",
    situation({ summary: summary({ evidence: { ...STOPPED, unanswered: 3_000 } }) }),
    "unanswered",
    "No answer",
    "No data arrives from node.example: the connection is cut, or the publisher has stopped.",
  ],
  [
    "too slow",
    situation({ summary: summary({ picture: "nothing fits until the next key frame", carried: 120_000, evidence: STOPPED }) }),
    "slow",
    "Too slow",
    "The connection carries 120 kbit/s; the lowest quality needs 300 kbit/s.",
  ],
  [
    "too slow, whatever the core waits for",
    situation({ summary: summary({ picture: "nothing arrives", carried: 88_000, evidence: STOPPED }) }),
    "slow",
    "Too slow",
    "The connection carries 88 kbit/s; the lowest quality needs 300 kbit/s.",
  ],
  ["killed behind a slow link", situation({ summary: summary({ picture: "nothing arrives", carried: 88_000, evidence: { ...STOPPED, refused: 3 } }) }), "gone", "Offline", "The publisher of /cam is offline. Playback resumes when it returns."],
  ["slow", situation({ summary: summary({ rung: "300k", picture: "the highest bitrate that fits", carried: 900_000 }) }), "live", "Live", "Live · 180p · the connection carries 900 kbit/s"],
  ["busy", situation({ summary: summary({ rung: "300k", picture: "the highest bitrate that fits", carried: 900_000, busy: 80 }) }), "live", "Live", "Live · 180p · this device is busy (wake-ups 80 ms late)"],
  [
    "too busy",
    situation({ summary: summary({ busy: 120, evidence: { shown: 4_000 } }) }),
    "busy",
    "Busy",
    "This device is too busy: wake-ups are 120 ms late. Close other programs or choose a lower quality.",
  ],
  [
    "too busy at the lowest quality, and with nothing that fits",
    situation({ summary: summary({ busy: 120, rung: "300k", picture: "nothing fits until the next key frame", evidence: STOPPED }) }),
    "busy",
    "Busy",
    "This device is too busy: wake-ups are 120 ms late. Close other programs.",
  ],
  [
    "too busy to decode",
    situation({ summary: summary({ rung: "300k", evidence: { shown: 4_000, decoding: 3_100 } }) }),
    "busy",
    "Busy",
    "This device is too busy: decoding is 3 s behind. Close other programs.",
  ],
  ["too busy to tell", situation({ summaryAge: 4_000 }), "busy", "Busy", "This device is too busy: the player gets no processor time. Close other programs."],
  [
    "pictures that arrive and cannot be shown",
    situation({ summary: summary({ evidence: { shown: 4_000 } }) }),
    "interrupted",
    "Waiting",
    "The picture is incomplete. Playback resumes at the next complete one.",
  ],
  ["pictures that the page does not present", situation({ presented: 5_000 }), "interrupted", "Waiting", "The picture is incomplete. Playback resumes at the next complete one."],
  ["a publisher that pauses", situation({ summary: summary({ evidence: STOPPED }) }), "interrupted", "Waiting", "The publisher of /cam answers, but sends no new picture."],
  ["hidden", situation({ isSeen: false }), "hidden", "Hidden", "Nobody sees the picture, so the player does not receive it."],
  ["paused", situation({ paused: true }), "paused", "Paused", "Paused. The player receives nothing."],
  ["paused without a connection", situation({ paused: true, facts: down("Connection lost.") }), "paused", "Paused", "Paused. The player receives nothing."],
  [
    "another key than the link's",
    situation({ facts: { refusal: { ...REFUSAL, why: "pinned" } }, summary: summary({ evidence: { shown: null, arrived: null } }) }),
    "refused",
    "Refused",
    "/cam carries the signature of another key than this link names. Ask the sender for a new link.",
  ],
  [
    "another key than the remembered one",
    situation({ facts: { refusal: { ...REFUSAL, why: "changed" } } }),
    "refused",
    "Refused",
    "/cam carries the signature of another key than the one remembered on 2026-05-01. If the publisher has a new key, forget the old one.",
  ],
  ["an untrusted key", situation({ facts: { refusal: { ...REFUSAL, why: "untrusted" } } }), "refused", "Refused", "/cam carries the signature of /cam/KEY/1, which was refused: unknown root."],
  ["sound only", situation({ muted: false, summary: summary({ kinds: { video: false }, rung: null, rungs: [], evidence: { shown: null, heard: 200 } }) }), "live", "Live", "Live · sound only"],
  [
    "sound only, muted",
    situation({ summary: summary({ kinds: { video: false }, rung: null, rungs: [], evidence: { shown: null } }) }),
    "muted",
    "Sound only",
    "This stream has sound only. Turn the sound on to listen.",
  ],
  ["data only", situation({ summary: summary({ kinds: { video: false, audio: false, data: true }, evidence: { shown: null } }) }), "data", "Data", "This stream has data only."],
  ["HLS", situation({ segments: SEGMENTS }), "segments", "Segments", "Plays segments · 720p · 6 s behind the publisher"],
  ["HLS of the node", situation({ segments: { ...SEGMENTS, isOfNode: true } }), "segments", "Segments", "Plays segments that the node checked · 720p · 6 s behind the publisher"],
  ["HLS without new segments", situation({ segments: { ...SEGMENTS, still: 5_000 } }), "interrupted", "Waiting", "No new segment of /cam arrives. Playback resumes with the next one."],
  ["HLS that joins", situation({ segments: { ...SEGMENTS, still: 5_000, hasBegun: false } }), "joining", "Joining", "Looking for the segments of /cam…"],
  ["HLS that cannot be fetched", situation({ segments: { ...SEGMENTS, failure: { sentence: "Fetching failed.", isFinal: false } } }), "interrupted", "Waiting", "Fetching failed."],
  ["http", situation({ lack: { kind: "insecure", sentence: "Open the page by https.", remedy: null } }), "insecure", "Cannot play", "Open the page by https."],
  ["no WebCodecs", situation({ lack: { kind: "unsupported", sentence: "Try a newer browser.", remedy: null } }), "unsupported", "Cannot play", "Try a newer browser."],
  ["an unknown codec", situation({ facts: { videoCodec: "hvc1" } }), "codec", "Cannot play", "This browser cannot decode hvc1. Try another browser, or publish with another codec."],
  ["a worker that failed", situation({ facts: { failure: "out of memory" } }), "failed", "Failed", "The player failed: out of memory. Reload the page to try again."],
  ["a click for sound", situation({ soundNeedsClick: true }), "live", "Live", "The browser plays sound only after a click."],
  ["no audio device", situation({ soundFailure: "no device" }), "live", "Live", "No sound: no device"],
  [
    "a time that is not kept",
    situation({ facts: { missed: { to: NOW - 9e6, since: NOW - 60_000, answered: true } } }),
    "live",
    "Live",
    `The archive starts at ${timeOfDay(NOW - 60_000)}. Playback stays live.`,
  ],
  [
    "an archive that is gone",
    situation({ summary: summary({ position: { live: false, shown: NOW - 75_000 } }), facts: { missed: { to: NOW, since: null, answered: false } } }),
    "past",
    "1:15 behind",
    "No archive answers. Playback stays where it was.",
  ],
];

/** States in which the picture is seen, or a person chose that it is not: nothing may cover it. */
const UNCOVERED: StateKind[] = ["ready", "live", "unconfirmed", "recorded", "past", "seeking", "segments", "hidden", "paused"];

describe("the state of a player", () => {
  test.each(TABLE)("%s", (_, given, kind, badge, sentence) => {
    const state = describeState(given);
    expect([state.kind, state.badge, state.sentence]).toEqual([kind, badge, sentence]);
  });

  test.each(TABLE)("%s: a sentence takes the place of the picture only where there is none", (_, given) => {
    const { kind, covers, isPlaying } = describeState(given);
    const hasPicture = given.segments !== null || given.summary?.kinds.video !== false;
    expect(covers).toBe(!UNCOVERED.includes(kind) || (isPlaying && !hasPicture));
  });

  test("is live only while pictures are shown, whatever arrives", () => {
    const shown = (age: number | null, interval = 33): PlayerState => describeState(situation({ summary: summary({ evidence: { shown: age, interval } }) }));
    expect([shown(1_400).kind, shown(1_600).kind, shown(null).kind]).toEqual(["live", "interrupted", "interrupted"]);
    // A picture every two seconds is no pause.
    expect([shown(5_000, 2_000).kind, shown(6_100, 2_000).kind]).toEqual(["live", "interrupted"]);
  });

  test("is an error as MediaError has it", () => {
    const codes = TABLE.map(([, given]) => describeState(given)).map(({ kind, error }) => [kind, error] as const);
    const errors = Object.fromEntries(codes.filter(([, error]) => error > 0));
    expect(errors).toEqual({ unreachable: 2, cut: 2, refused: 3, room: 2, sealed: 3, insecure: 4, unsupported: 4, codec: 4, failed: 4 });
  });

  test("offers to forget a key only where that helps", () => {
    const offered = TABLE.filter(([, given]) => describeState(given).action === "forget").map(([what]) => what);
    expect(offered).toEqual(["another key than the remembered one"]);
  });
});

test("diagnostics hold state, figures and log, and neither keys nor tokens", () => {
  const [key, token] = ["ab".repeat(32), "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4"];
  const text = diagnostics({
    state: describeState(situation()),
    summary: summary(),
    steps: [{ at: 1_250, text: `Signed by /cam/KEY/%08X1: digest ${key}` }],
    openedAt: 1_000,
    address: `https://node.example/?name=/cam&key=${key}&token=${token}&view=inspect#${token}`,
    browser: "Browser/1",
  });
  expect(text).toContain('live, "Live"');
  expect(text).toContain("Page: https://node.example/?name=/cam&view=inspect");
  expect(text).toContain("0.25 s  Signed by /cam/KEY/…: digest …");
  expect(text).toContain('"shown": 30');
  for (const secret of [key, key.slice(0, 16), token, token.slice(0, 20), "%08X1"]) {
    expect(text).not.toContain(secret);
  }
});
