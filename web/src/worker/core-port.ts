/**
 * What every core is: a node as one value without clock, socket or timer. `crates/web` has the same methods.
 *
 * Times are milliseconds on one monotonic clock, faces are numbers that `faceUp` gives.
 */
export interface CorePort {
  /** A transport is up that carries frames of at most `mtu` octets; 0: any. `local`: the node at its other end takes commands of this page. */
  faceUp(transport: string, mtu: number, local: boolean, now: number): number;
  faceDown(face: number, now: number): void;
  handleFrame(face: number, octets: Uint8Array, now: number): void;
  handleTimeout(now: number): void;
  /** When to call `handleTimeout` next; infinite: never. */
  pollTimeout(): number;
  /** What happened since the last call, as records. */
  drain(): Uint8Array;
}
