import { describe, expect, test } from "vitest";
import { bitrate, milliseconds, percent } from "../src/player/format.ts";
import { clampTarget, readOptions, withOption } from "../src/player/options.ts";
import { plotTop, Series } from "../src/page/series.ts";
import { embedCode, sharedAddress, shareLink } from "../src/page/share.ts";
import { why, whyPicture } from "../src/page/why.ts";
import type { PlayerState } from "../src/player/state.ts";
import { qualitiesOf } from "../src/player/qualities.ts";
import { parseHash, parseNodeInfo } from "../src/shared/node.ts";
import { readableName } from "../src/shared/readable-name.ts";
import type { StageTimes, Summary } from "../src/shared/summary.ts";
import { clockAhead, meanStages, pathOf, sharesOf } from "../src/worker/figures.ts";
import { Meter } from "../src/worker/meter.ts";

describe("the address of the page", () => {
  test("says what to play", () => {
    const query = new URLSearchParams("name=/a/b&key=00ff&rung=1M&target=250&transport=ws");
    expect(readOptions(query)).toEqual({ name: "/a/b", key: "00ff", rung: "1M", target: 250, transport: "websocket" });
    expect(readOptions(new URLSearchParams("stream=video-2&stream=audio-2"))).toEqual({ streams: ["video-2", "audio-2"] });
    expect(readOptions(new URLSearchParams("controller=rfcc-delay"))).toEqual({ controller: "rfcc-delay" });
    expect(readOptions(new URLSearchParams("transport=wt"))).toEqual({ transport: "webtransport" });
  });

  test("may hold nonsense", () => {
    expect(readOptions(new URLSearchParams("name=&target=abc&transport=carrier-pigeon"))).toEqual({});
    expect([clampTarget(5), clampTarget(9e9), clampTarget(99.6), clampTarget(NaN)]).toEqual([20, 1_000, 100, undefined]);
  });

  test("keeps what was chosen", () => {
    expect(withOption("http://127.0.0.1:8080/?name=%2Fdemo", "target", "120")).toBe("http://127.0.0.1:8080/?name=%2Fdemo&target=120");
  });
});

describe("the server's description of itself", () => {
  const base = new URL("http://localhost:8080/?x");
  const hash = "ab".repeat(32);

  test("is read", () => {
    const node = parseNodeInfo({ name: "/x", key: "12", local: true, ws: "/socket", webtransport: { port: 4433, certificate_hash: hash } }, base);
    expect(node).toMatchObject({ name: "/x", key: "12", local: true, websocket: "ws://localhost:8080/socket" });
    // IPv4, since QUIC to ::1 would wait for a server that is not there.
    expect(node.webTransport).toEqual({ url: "https://127.0.0.1:4433/", certificateHash: new Uint8Array(32).fill(0xab) });
  });

  test("has defaults, and follows the page's scheme", () => {
    expect(parseNodeInfo({}, new URL("https://a.example/"))).toEqual({ name: "/demo", hasName: false, key: undefined, securePage: undefined, local: false, websocket: "wss://a.example/ws", webTransport: undefined, elsewhere: [] });
  });

  test("is refused if it is none, and loses a transport that makes no sense", () => {
    expect(() => parseNodeInfo("x", base)).toThrow(TypeError);
    expect(() => parseNodeInfo(null, base)).toThrow(TypeError);
    expect(parseNodeInfo({ webtransport: { port: "4433", certificate_hash: hash } }, base).webTransport).toBeUndefined();
    expect(parseNodeInfo({ webtransport: { port: 1, certificate_hash: "abc" } }, base).webTransport).toBeUndefined();
  });

  test("writes hashes in either way", () => {
    const octets = Uint8Array.from({ length: 32 }, (_, index) => index);
    const hexadecimal = [...octets].map((octet) => octet.toString(16).padStart(2, "0"));
    expect(parseHash(hexadecimal.join(""))).toEqual(octets);
    expect(parseHash(hexadecimal.join(":"))).toEqual(octets);
    expect(parseHash(btoa(String.fromCharCode(...octets)))).toEqual(octets);
  });
});

describe("Series", () => {
  test("keeps the last while, in order, with holes", () => {
    const series = new Series(10, 100);
    series.push(0, 1);
    series.push(5, null);
    series.push(5, 9); // not later: refused
    series.push(9, Number.NaN);
    series.push(11, 4);
    expect(series.data()).toEqual([[5, 9, 11], [null, null, 4]]);
  });

  test("keeps several quantities in step", () => {
    const series = new Series(10, 100, 2);
    series.push(0, 1, 8);
    series.push(5, 2); // the other is unknown
    series.push(11, Number.NaN, 6);
    expect(series.data()).toEqual([[5, 11], [2, null], [null, 6]]);
    expect([series.largest(0), series.largest(1), series.largest(2)]).toEqual([2, 6, 0]);
  });

  test("is bounded", () => {
    const series = new Series(1e9, 3);
    [10, 20, 40, 30].forEach((value, at) => series.push(at, value));
    expect(series.data()[1]).toEqual([20, 40, 30]);
    expect(series.largest()).toBe(40);
  });
});

test("a plot has room above its values, and its limits do not flatten them", () => {
  expect(plotTop(40, 0, 10)).toBeCloseTo(46);
  expect(plotTop(40, 0, 100)).toBe(100);
  expect(plotTop(40, 60, 10)).toBeCloseTo(69);
  expect(plotTop(40, 1e9, 10)).toBe(80);
});

describe("Meter", () => {
  test("takes percentiles by nearest rank of the last values", () => {
    const meter = new Meter(100);
    expect(meter.spread()).toBeNull();
    for (let value = -50; value <= 100; value += 1) {
      meter.push(value);
    }
    expect(meter.spread()).toEqual({ p50: 50, p95: 95, p99: 99 });
    expect(meter.mean()).toBe(50.5);
  });
});

describe("figures", () => {
  test("shares are of all samples that should have come", () => {
    const video = { received: 90, lost: 10, recovered_fec: 5, recovered_retransmission: 2 };
    const audio = { received: 100, lost: 0 };
    expect(sharesOf({ video, audio })).toEqual({ loss: 0.05, parity: 0.025, retransmission: 0.01 });
    expect(sharesOf({})).toEqual({ loss: 0, parity: 0, retransmission: 0 });
  });

  test("shares are of the last while: what was lost before tells nothing of now", () => {
    const before = { video: { received: 100, lost: 50, recovered_fec: 5 } };
    expect(sharesOf({ video: { received: 200, lost: 50, recovered_fec: 15 } }, before)).toEqual({ loss: 0, parity: 0.1, retransmission: 0 });
    expect(sharesOf({ video: { received: 196, lost: 54, recovered_fec: 5 } }, before).loss).toBeCloseTo(0.04);
    expect(sharesOf({ video: { received: 5, lost: 0 } }, before)).toEqual({ loss: 0, parity: 0, retransmission: 0 });
  });

  test("the path is unknown until it was measured", () => {
    expect(pathOf({})).toEqual({ received: 0, allowed: null, carried: null, queueing: 0, loss: 0, jitter: 0, probes: 0, holding: false });
    expect(pathOf({ throughput_bps: 2e6, controller_rate_bps: 5e6, path: { queueing_ms: 7, capacity_bps: 4e6, loss: 0.1, jitter_ms: 2, probes: 3, holding: true } })).toEqual({
      received: 2e6,
      allowed: 5e6,
      carried: 4e6,
      queueing: 7,
      loss: 0.1,
      jitter: 2,
      probes: 3,
      holding: true,
    });
    expect(pathOf({ controller_rate_bps: null, path: { capacity_bps: 0 } })).toMatchObject({ allowed: null, carried: null });
  });

  test("a difference of clocks counts only if it is no noise", () => {
    expect(clockAhead({ clock_offset_ms: 4, clock_offset_rtt_ms: 1 })).toBe(0);
    expect(clockAhead({ clock_offset_ms: -30, clock_offset_rtt_ms: 80 })).toBe(0);
    expect(clockAhead({ clock_offset_ms: -300, clock_offset_rtt_ms: 80 })).toBe(-300);
    expect(clockAhead({})).toBe(0);
  });

  test("stages are means", () => {
    const [one, two] = [stages({ buffer: 10, decode: 2 }), stages({ buffer: 30, decode: 4 })];
    expect(meanStages([one, two])).toEqual(stages({ buffer: 20, decode: 3 }));
    expect(meanStages([])).toBeNull();
  });
});

test("numbers read well", () => {
  expect([milliseconds(null), milliseconds(0), milliseconds(3.14), milliseconds(123.4), milliseconds(-0.4)]).toEqual(["–", "0 ms", "3.1 ms", "123 ms", "-0.4 ms"]);
  expect([bitrate(990_000), bitrate(3_040_000), bitrate(null)]).toEqual(["990 kbit/s", "3.0 Mbit/s", "–"]);
  expect([percent(0), percent(0.0004), percent(0.021), percent(0.5)]).toEqual(["0 %", "< 0.1 %", "2.1 %", "50 %"]);
});

function stages(some: Partial<StageTimes>): StageTimes {
  return { capture: 0, encode: 0, publish: 0, network: 0, reassembly: 0, buffer: 0, decode: 0, display: 0, ...some };
}

describe("why", () => {
  const PLAYS = { isPlaying: true } as PlayerState;
  const RUNGS = ["3M", "1M"].map((name) => ({ name, bitrate: 1, width: 1, height: 1 }));
  const summary = (some: Partial<StageTimes>, rest: Partial<Summary> = {}): Summary =>
    ({
      position: { live: true },
      latency: { p50: 1, p95: 1, p99: 1 },
      stages: stages(some),
      target: 100,
      reorder: 0,
      rttMin: 1,
      lossShare: 0,
      rung: "3M",
      rungs: RUNGS,
      path: pathOf({}),
      playout: { target: 0, needed: 20, isCapped: false },
      audio: { delay: 0 },
      ...rest,
    }) as Summary;
  const said = (some: Partial<StageTimes>, rest: Partial<Summary> = {}): string => why(summary(some, rest), PLAYS);

  test("names the main stage and the remedy", () => {
    expect(said({ buffer: 300, network: 5 }, { target: 300 })).toContain("About 30 ms would do");
    expect(said({ buffer: 300, network: 50 }, { target: 300, rttMin: 100 })).toContain("need it");
    expect(said({ encode: 80, buffer: 30 })).toContain("to encode");
    expect(said({ buffer: 300, encode: 100 }, { target: 100, reorder: 200 })).toContain("takes 200 ms");
    expect(said({ network: 80, buffer: 30 })).toContain("network");
    expect(said({ decode: 80, buffer: 30 })).toContain("lower quality shortens");
    expect(said({ buffer: 30, network: 30, encode: 30 })).toContain("No single stage");
  });

  test("recommends no delay below what queues, jitter and this machine need", () => {
    const queued = pathOf({ path: { queueing_ms: 94, jitter_ms: 8 } });
    expect(said({ buffer: 300 }, { target: 300, path: queued })).toContain("About 110 ms would do");
    expect(said({ buffer: 300 }, { target: 150, path: queued })).toContain("need it");
    expect(said({ buffer: 300 }, { target: 300, playout: { target: 300, needed: 140, isCapped: false } })).toContain("About 140 ms would do");
    expect(said({ buffer: 300 }, { target: 100, playout: { target: 240, needed: 240, isCapped: false } })).toContain("need 240 ms");
  });

  test("recommends no lower quality where none exists", () => {
    expect(said({ decode: 80, buffer: 30 }, { rung: "1M" })).not.toContain("lower quality");
    expect(said({ decode: 80, buffer: 30 }, { rungs: RUNGS.slice(0, 1) })).not.toContain("lower quality");
    expect(said({ buffer: 300 }, { lossShare: 0.02 })).toContain("choose a lower quality");
    expect(said({ buffer: 300 }, { lossShare: 0.02, rung: "1M" })).not.toContain("lower quality");
  });

  test("puts loss before advice to decrease the latency", () => {
    expect(said({ buffer: 300 }, { target: 300, lossShare: 0.02 })).toContain("2.0 % of the last 10 s");
    expect(said({ buffer: 300 }, { target: 300, lossShare: 0.002 })).toContain("decrease the latency");
  });

  test("names sound if that holds the picture back", () => {
    expect(said({ buffer: 60 }, { target: 20, audio: { delay: 50 } as Summary["audio"] })).toContain("audio device needs 50 ms more");
  });

  test("has nothing to explain of recordings, or while nothing plays", () => {
    expect(said({ buffer: 300 }, { position: { live: false } as Summary["position"], latency: null })).toContain("no latency");
    expect(why(summary({ buffer: 300 }), { isPlaying: false } as PlayerState)).toBe("");
  });
});

test("qualities are lines of the picture, and the rate where several have as many", () => {
  const rung = (name: string, height: number, bitrate: number) => ({ name, height, width: height * 2, bitrate });
  expect(qualitiesOf([rung("3M", 720, 3e6), rung("1M", 360, 1e6), rung("200k", 360, 2e5), rung("sound", 0, 1)])).toEqual([
    { name: "3M", label: "720p" },
    { name: "1M", label: "360p, 1.0 Mbit/s" },
    { name: "200k", label: "360p, 0.2 Mbit/s" },
    { name: "sound", label: "sound" },
  ]);
});

test("a shared link carries the key, and nothing of what only its sender chose", () => {
  const link = shareLink("https://a.example/?view=inspect&target=20", "/cam/1", "00ff");
  expect(link).toBe("https://a.example/?name=%2Fcam%2F1&key=00ff");
});

test("a link may name a time, which the player begins at", () => {
  const link = shareLink("https://a.example/", "/cam", "00ff", Date.UTC(2026, 10, 29, 9, 12, 5, 250));
  expect(link).toBe("https://a.example/?name=%2Fcam&key=00ff&t=2026-11-29T09%3A12%3A05.250Z");
  expect(readOptions(new URL(link).searchParams)).toEqual({ name: "/cam", key: "00ff", at: Date.UTC(2026, 10, 29, 9, 12, 5, 250) });
  expect(readOptions(new URLSearchParams("t=yesterday"))).toEqual({});
});

test("code to embed a player holds a title as text", () => {
  const code = embedCode("https://a.example/", "https://a.example/?name=%2Fcam&key=00ff", `"><script>`);
  expect(code).toContain(`src="https://a.example/embed.html?name=%2Fcam&amp;key=00ff"`);
  expect(code).toContain(`title="&quot;&gt;&lt;script&gt;"`);
});

test("names are readable where they are text", () => {
  expect(readableName("/caf%C3%A9/two%20words")).toBe("/café/two words");
  // Octets that are no UTF-8, a line feed, and a mark that turns the direction of what follows.
  for (const name of ["/%FF", "/a%0Ab", "/%E2%80%AEgpj"]) {
    expect(readableName(name)).toBe(name);
  }
});

test("a link is for others, where there is a way to them", async () => {
  const node = (elsewhere: string[]) => () => Promise.resolve({ elsewhere });
  const others = ["https://192.0.2.7:8443/", "https://198.51.100.7:8443/"];
  expect(await sharedAddress("https://a.example/?name=/x", node(others))).toBe("https://a.example/");
  for (const host of ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"]) {
    expect(await sharedAddress(`http://${host}/`, node(others))).toBe(others[0]);
    expect(await sharedAddress(`http://${host}/`, node([]))).toBeUndefined();
  }
  expect(await sharedAddress("http://127.0.0.1/", () => Promise.reject(new Error("gone")))).toBeUndefined();
});

test("the quality of the picture is explained while it plays, and never against what is shown", () => {
  const evidence = (shown: number): Summary["evidence"] => ({ shown }) as Summary["evidence"];
  const summary = (some: Partial<Summary>): Summary => ({ position: { live: true }, rung: "1M", requestedRung: "1M", picture: "the highest bitrate that fits", evidence: evidence(30), ...some }) as Summary;
  const said = (some: Partial<Summary>, isPlaying = true): string => whyPicture(summary(some), { isPlaying } as PlayerState);
  expect(said({})).toBe("Quality 1M: the highest bitrate that fits.");
  expect(said({ requestedRung: "200k", picture: "the network carries no more" })).toBe("Quality 1M, soon 200k: the network carries no more.");
  expect(said({ picture: null })).toBe("Quality 1M: as you chose.");
  expect(said({ picture: null, position: { live: false } as Summary["position"] })).toBe("Quality 1M: as recorded.");
  expect(said({ picture: "nothing arrives" })).toBe("Quality 1M.");
  expect(said({ picture: "nothing arrives", evidence: evidence(900) })).toBe("Quality 1M: nothing arrives.");
  expect([said({}, false), said({ rung: null })]).toEqual(["", ""]);
});
