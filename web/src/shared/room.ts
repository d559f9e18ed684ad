/** The room that a tab enters; `RoomConfig` in `crates/web`. */
export interface RoomConfig {
  /** Root of the room. */
  root: string;
  /** Digest of its anchor's key, in hexadecimal. */
  key: string;
  /** Secret of this browser's key there, 64 hexadecimal digits: the keys that sign and that open what is sealed follow from it. */
  secret: string;
  /** Token of the link; absent: the link has none. */
  token?: string;
  /** Name shown to the host. */
  label?: string;
  /** Certificate of an earlier visit, in hexadecimal. */
  certificate?: string;
}

/** How a tab stands in its room: it waits to join (`away`, `undecided`, `crowded`), cannot, is a member, waits for the rules, or has them. */
export type RoomState = "away" | "undecided" | "crowded" | "failed" | "joined" | "unserved" | "ready";

/** What the core reports of the room. */
export interface RoomEvent {
  type: "room";
  state: RoomState;
  /** Why the tab cannot join, or the name under which it is a member. */
  why: string | null;
  /** The member's certificate, to be kept. */
  certificate: string | null;
}

/** What people need to know of the room. */
export interface RoomFact {
  root: string;
  state: RoomState;
  /** Why the tab cannot join. */
  why: string | null;
  isMember: boolean;
}

/** Why a tab waits in front of the room `root`; empty: it does not wait. */
export function waitingText(root: string, state: RoomState, t: (text: string, values: Record<string, string>) => string): string {
  switch (state) {
    case "away":
      return t("Nobody hosts {root} at the moment. You join as soon as its host is back.", { root });
    case "undecided":
      return t("You wait in front of {root}: its host has to let you in, or cannot be reached.", { root });
    case "crowded":
      return t("Many people are joining {root}. You are next in a moment.", { root });
    case "unserved":
      return t("The rules of {root} are missing: its host is away. Playback starts when the host is back.", { root });
    default:
      return "";
  }
}

/** Whether the stream `name` belongs to the room. */
export function isInRoom(name: string, { root }: Pick<RoomConfig, "root">): boolean {
  return `${name}/`.startsWith(`${root.replace(/\/$/, "")}/`);
}
