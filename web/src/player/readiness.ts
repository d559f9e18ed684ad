import type { NamecastPlayer } from "./element.ts";
import { MediaKeys } from "./media-keys.ts";
import type { PlayerState } from "./state.ts";
import { WakeLock } from "./wake-lock.ts";

/** States of `readyState`, as HTMLMediaElement has them. */
export const [HAVE_NOTHING, HAVE_METADATA, HAVE_CURRENT_DATA, HAVE_ENOUGH_DATA] = [0, 1, 2, 4];

/** What went wrong, as MediaError has it. */
export interface PlayerError {
  /** 2: network, 3: decoding, 4: cannot be played here. */
  code: number;
  message: string;
}

/** How ready a player is and what went wrong, with the events and the media keys of a `<video>` in that state. */
export class Readiness {
  readonly #player: NamecastPlayer;
  readonly #emit: (name: string) => void;
  readonly #mediaKeys: MediaKeys;
  readonly #wakeLock = new WakeLock();
  #state = HAVE_NOTHING;
  #error: PlayerError | null = null;

  constructor(player: NamecastPlayer, emit: (name: string) => void) {
    this.#player = player;
    this.#emit = emit;
    this.#mediaKeys = new MediaKeys(player);
  }

  get state(): number {
    return this.#state;
  }

  get error(): PlayerError | null {
    return this.#error;
  }

  /** Nothing is known of the stream any more. */
  forget(): void {
    this.#state = HAVE_NOTHING;
  }

  /** Takes what the player does. */
  follow({ kind, isPlaying }: PlayerState): void {
    if (isPlaying) {
      this.#set(HAVE_ENOUGH_DATA);
    } else if (kind !== "hidden") {
      this.#set(Math.min(this.#state, HAVE_CURRENT_DATA));
    }
  }

  /** Takes what went wrong, if anything did. */
  showError({ error, sentence, kind }: PlayerState): void {
    // A connection that is lost comes back by itself; one that was never made may need a person.
    const code = kind === "cut" && this.#state > HAVE_NOTHING ? 0 : error;
    if (code !== (this.#error?.code ?? 0)) {
      this.#error = code === 0 ? null : { code, message: sentence };
      if (code !== 0) {
        this.#emit("error");
      }
    }
  }

  #set(state: number): void {
    const { paused, controls } = this.#player;
    const before = this.#state;
    this.#state = state;
    if (before < HAVE_METADATA && state >= HAVE_METADATA) {
      this.#emit("loadedmetadata");
      this.#emit("durationchange");
    }
    if (before < HAVE_ENOUGH_DATA && state === HAVE_ENOUGH_DATA) {
      this.#emit("canplay");
      this.#emit("playing");
    } else if (before === HAVE_ENOUGH_DATA && state < before && !paused) {
      this.#emit("waiting");
    }
    this.#mediaKeys.show(state > HAVE_NOTHING && controls);
    this.#wakeLock.want(state === HAVE_ENOUGH_DATA && !paused && controls);
  }
}
