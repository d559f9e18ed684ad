import { expect, test } from "vitest";
import { AnnexB } from "../src/worker/annex-b.ts";

/** Lengths of two octets; one sequence parameter set `67 01 02`, two picture parameter sets `68 03` and `68 04`. */
const DESCRIPTION = Uint8Array.of(1, 0x42, 0xe0, 0x1f, 0xfd, 0xe1, 0, 3, 0x67, 1, 2, 2, 0, 2, 0x68, 3, 0, 2, 0x68, 4);
const PARAMETERS = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3, 0, 0, 0, 1, 0x68, 4];

test("lengths become start codes, and key pictures follow their parameter sets", () => {
  const annexB = new AnnexB(DESCRIPTION);
  const picture = Uint8Array.of(0, 2, 0x06, 9, 0, 3, 0x65, 7, 8);
  const units = [0, 0, 0, 1, 0x06, 9, 0, 0, 0, 1, 0x65, 7, 8];
  expect([...annexB.convert(picture, true)]).toEqual([...PARAMETERS, ...units]);
  expect([...annexB.convert(picture, false)]).toEqual(units);
});

test("what is cut short ends there", () => {
  const annexB = new AnnexB(DESCRIPTION);
  expect([...annexB.convert(Uint8Array.of(0, 9, 0x41, 5), false)]).toEqual([0, 0, 0, 1, 0x41, 5]);
  expect([...annexB.convert(Uint8Array.of(0), false)]).toEqual([]);
  expect(() => new AnnexB(DESCRIPTION.subarray(0, 9)).convert(new Uint8Array(), true)).not.toThrow();
});
