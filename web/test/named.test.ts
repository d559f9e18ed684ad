import type { LoaderCallbacks, LoaderConfiguration, LoaderContext, LoaderStats } from "hls.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { NamedFetches } from "../src/player/named-fetches.ts";
import { namedLoader } from "../src/player/named-loader.ts";
import type { Command } from "../src/shared/messages.ts";
import { playlistOf } from "../src/shared/package.ts";

const SEGMENT = "ndn:/tv/hls/1M/seq=7";
const CONFIGURATION = { loadPolicy: { maxTimeToFirstByteMs: 10_000, maxLoadTimeMs: 20_000 } } as unknown as LoaderConfiguration;

let sent: Command[];
let fetches: NamedFetches;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  fetches = new NamedFetches((command) => sent.push(command));
});

afterEach(() => {
  vi.useRealTimers();
});

/** Loads an address as hls.js does, and notes what it hears. */
function load(url: string, responseType: string, more: Partial<LoaderContext> = {}) {
  const heard: { what: string; data?: unknown; stats?: LoaderStats }[] = [];
  const callbacks: LoaderCallbacks<LoaderContext> = {
    onSuccess: ({ data }, stats) => heard.push({ what: "success", data, stats }),
    onError: ({ text }) => heard.push({ what: text }),
    onTimeout: () => heard.push({ what: "timeout" }),
    onAbort: () => heard.push({ what: "abort" }),
  };
  const loader = new (namedLoader(fetches))();
  loader.load({ url, responseType, ...more } as LoaderContext, CONFIGURATION, callbacks);
  return { loader, heard };
}

function octets(length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(length).map((_, at) => at);
}

test("a segment is fetched by the name in its address", () => {
  load(SEGMENT, "arraybuffer");
  vi.advanceTimersByTime(0);
  expect(sent).toEqual([{ type: "fetch", number: 1, name: "/tv/hls/1M/seq=7" }]);
  expect(playlistOf("/tv")).toBe("ndn:/tv/hls/index.m3u8");
});

test("the wait for what does not exist yet is no part of the throughput", () => {
  const { loader, heard } = load(SEGMENT, "arraybuffer");
  vi.advanceTimersByTime(3_000);
  fetches.handle({ type: "fetching", number: 1, octets: 250, share: 0.25 });
  expect(loader.stats.loading.start).toBe(performance.now());
  expect([loader.stats.loaded, loader.stats.total]).toEqual([250, 1_000]);
  vi.advanceTimersByTime(300);
  fetches.handle({ type: "fetched", number: 1, waited: 2_980, flowed: 320, octets: octets(1_000) });
  const { start, first, end } = loader.stats.loading;
  expect([end - start, first - start]).toEqual([320, 0]);
  expect(heard[0]).toMatchObject({ what: "success", stats: { loaded: 1_000, total: 1_000 } });
  expect((heard[0]?.data as ArrayBuffer).byteLength).toBe(1_000);
  expect(fetches.counters).toEqual({ fetched: 1, octets: 1_000, failed: 0, refused: 0 });
});

test("what leads elsewhere than to a name is refused, and said", () => {
  for (const address of ["https://example.org/7.mp4", "data:,x", "ndn://host/tv", "file:///etc/passwd"]) {
    const { heard } = load(address, "arraybuffer");
    vi.advanceTimersByTime(0);
    expect(heard).toEqual([{ what: `${address} is no name, so it is not fetched` }]);
  }
  expect(sent).toEqual([]);
  expect(fetches.counters.refused).toBe(4);
});

test("a playlist that wants to be read all the time is read twice a second", () => {
  const playlist = "ndn:/tv/hls/1M/index.m3u8";
  const fetched = () => sent.filter(({ type }) => type === "fetch").length;
  for (let count = 0; count < 1_000; count += 1) {
    const { loader } = load(playlist, "text");
    vi.advanceTimersByTime(10);
    loader.destroy();
  }
  // In ten seconds; what was given up before its turn holds nobody up.
  expect(fetched()).toBeGreaterThan(15);
  expect(fetched()).toBeLessThanOrEqual(21);
});

test("a playlist is text, unless it is absurdly large", () => {
  const { heard } = load("ndn:/tv/hls/index.m3u8", "text");
  fetches.handle({ type: "fetched", number: 1, waited: 0, flowed: 1, octets: new TextEncoder().encode("#EXTM3U") });
  expect(heard[0]?.data).toBe("#EXTM3U");
  const large = load("ndn:/tv/hls/1M/index.m3u8", "text");
  fetches.handle({ type: "fetched", number: 2, waited: 0, flowed: 1, octets: octets(2 << 20) });
  expect(large.heard).toEqual([{ what: "a playlist of 2097152 bytes" }]);
});

test("a range of a file is cut out of it", () => {
  const { heard } = load(SEGMENT, "arraybuffer", { rangeStart: 10, rangeEnd: 14 });
  fetches.handle({ type: "fetched", number: 1, waited: 0, flowed: 1, octets: octets(100) });
  expect([...new Uint8Array(heard[0]?.data as ArrayBuffer)]).toEqual([10, 11, 12, 13]);
});

test("what does not come, or fails, is given up and said once", () => {
  const late = load(SEGMENT, "arraybuffer");
  vi.advanceTimersByTime(10_001);
  expect(late.heard).toEqual([{ what: "timeout" }]);
  expect(sent.at(-1)).toEqual({ type: "giveUp", number: 1 });
  fetches.handle({ type: "fetched", number: 1, waited: 0, flowed: 1, octets: octets(1) });
  expect(late.heard.length).toBe(1);
  const gone = load(SEGMENT, "arraybuffer");
  fetches.handle({ type: "unfetched", number: 2, why: "the object does not exist" });
  expect(gone.heard).toEqual([{ what: "the object does not exist" }]);
  const left = load(SEGMENT, "arraybuffer");
  left.loader.abort();
  left.loader.abort();
  expect(left.heard).toEqual([{ what: "abort" }]);
});
