import type { NamecastPlayer } from "./element.ts";

/** The keys of keyboards, headsets and the system's own controls, for the player that plays. */
export class MediaKeys {
  readonly #player: NamecastPlayer;
  #isShown = false;

  constructor(player: NamecastPlayer) {
    this.#player = player;
  }

  /** Tells the system of the player, or takes that back. */
  show(shows: boolean): void {
    const { mediaSession } = navigator as { mediaSession?: MediaSession };
    if (mediaSession === undefined) {
      return;
    }
    if (shows !== this.#isShown) {
      this.#isShown = shows;
      this.#handle(mediaSession, "play", shows ? () => void this.#player.play().catch(() => undefined) : null);
      this.#handle(mediaSession, "pause", shows ? () => this.#player.pause() : null);
      this.#handle(mediaSession, "enterpictureinpicture", shows ? () => void this.#player.requestPictureInPicture().catch(() => undefined) : null);
      mediaSession.metadata = shows ? new MediaMetadata({ title: this.#player.streamTitle ?? this.#player.streamName, artist: "Namecast" }) : null;
    }
    if (shows) {
      mediaSession.playbackState = this.#player.paused ? "paused" : "playing";
    }
  }

  #handle(session: MediaSession, action: string, act: (() => void) | null): void {
    try {
      session.setActionHandler(action as MediaSessionAction, act);
    } catch {
      // This browser does not know the action.
    }
  }
}
