import { expect, test } from "vitest";
import { hashOf, keepCertificate, parseRoom, roomOf } from "../src/page/room.ts";
import { shareLink } from "../src/page/share.ts";
import { isInRoom } from "../src/shared/room.ts";

const KEY = "0a".repeat(32);
const HASH = `#room=/calls/fox&key=${KEY}&t=${"09".repeat(16)}&name=Ann`;

function store(): Map<string, string> & { getItem(key: string): string | null; setItem(key: string, value: string): void } {
  const map = new Map<string, string>();
  return Object.assign(map, { getItem: (key: string) => map.get(key) ?? null, setItem: (key: string, value: string) => void map.set(key, value) });
}

test("a link is read as the host prints it, and nothing else", () => {
  expect(parseRoom(HASH)).toEqual({ root: "/calls/fox", key: KEY, token: "09".repeat(16), label: "Ann" });
  for (const hash of ["", "#0123456789abcdef0123456789abcdef", "#room=/calls/fox", `#room=fox&key=${KEY}`, `#room=/calls/fox&key=${KEY.slice(1)}`]) {
    expect(parseRoom(hash), hash).toBeUndefined();
  }
});

test("a browser keeps its key and its certificate of each room", () => {
  const kept = store();
  let drawn = 0;
  const random = () => new Uint8Array(32).fill(++drawn);
  const first = roomOf(HASH, kept, random);
  expect(first).toEqual({ root: "/calls/fox", key: KEY, secret: "01".repeat(32), token: "09".repeat(16), label: "Ann" });
  const hash = keepCertificate({ root: "/calls/fox", key: KEY, secret: "" }, "abcd", kept);
  expect(hash).toBe(`#room=/calls/fox&key=${KEY}`);
  expect(roomOf(hash ?? "", kept, random)).toEqual({ root: "/calls/fox", key: KEY, secret: "01".repeat(32), label: "", certificate: "abcd" });
  expect(roomOf(`#room=/calls/hen&key=${KEY}`, kept, random)?.secret).toBe("02".repeat(32));
  // Without a store the link stays as it is, for a reload.
  expect(keepCertificate({ root: "/calls/fox", key: KEY, secret: "" }, "abcd", undefined)).toBeUndefined();
});

test("links to streams of a room have its anchor, and no token", () => {
  expect(shareLink("https://a.example/x", "/calls/fox/ann", "ff", null, HASH)).toBe(`https://a.example/?name=%2Fcalls%2Ffox%2Fann${hashOf({ root: "/calls/fox", key: KEY })}`);
  expect(shareLink("https://a.example/x", "/calls/foxes", "ff", null, HASH)).toBe("https://a.example/?name=%2Fcalls%2Ffoxes&key=ff");
  expect([isInRoom("/calls/fox", { root: "/calls/fox" }), isInRoom("/a", { root: "/" }), isInRoom("/calls/foxes", { root: "/calls/fox" })]).toEqual([true, true, false]);
});
