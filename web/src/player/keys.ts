import type { NamecastPlayer } from "./element.ts";

/** Step of the volume keys. */
const VOLUME_STEP = 0.1;
/** Seconds by which the arrow keys move playback. */
const SEEK_STEP = 5;
/** A second click within this time makes a double click, in milliseconds. */
const DOUBLE_CLICK = 250;

/** Carries out a key for a player. Returns whether the key means something. */
export function handlePlayerKey(player: NamecastPlayer, key: string): boolean {
  switch (key.toLowerCase()) {
    case " ":
    case "k":
      togglePlay(player);
      return true;
    case "m":
      player.muted = !player.muted;
      return true;
    case "f":
      void toggleFullScreen(player);
      return true;
    case "arrowleft":
      player.step(-SEEK_STEP);
      return true;
    case "arrowright":
      player.step(SEEK_STEP);
      return true;
    case "arrowup":
    case "arrowdown":
      player.volume = Math.min(1, Math.max(0, player.volume + (key.toLowerCase() === "arrowup" ? VOLUME_STEP : -VOLUME_STEP)));
      return true;
    case "l":
      player.seek(null);
      return true;
    default:
      return false;
  }
}

/** Plays or pauses at a click of the mouse on the picture; a double click is full screen. */
export function followClicks(player: NamecastPlayer, surface: HTMLElement): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  surface.addEventListener("click", (event) => {
    const isMouse = !(event instanceof PointerEvent) || event.pointerType === "mouse";
    if (event.target !== surface || !isMouse) {
      return;
    }
    clearTimeout(timer);
    // A pause gives the connection up, so a double click must not begin with one.
    timer = event.detail > 1 ? undefined : setTimeout(() => togglePlay(player), DOUBLE_CLICK);
  });
  surface.addEventListener("dblclick", (event) => {
    if (event.target === surface) {
      clearTimeout(timer);
      void toggleFullScreen(player);
    }
  });
}

function togglePlay(player: NamecastPlayer): void {
  if (player.paused) {
    void player.play().catch(() => undefined);
  } else {
    player.pause();
  }
}

async function toggleFullScreen(player: NamecastPlayer): Promise<void> {
  try {
    await (document.fullscreenElement ? document.exitFullscreen() : player.requestFullscreen());
  } catch {
    // The browser does not allow it here.
  }
}

/** Returns whether a key is meant for the player, and not for the field, slider or button that has the focus. */
export function meansKey(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element)) {
    return !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey;
  }
  if (target.matches("select, textarea, [contenteditable], input:not([type=range], [type=checkbox], [type=radio])")) {
    return false;
  }
  const isButton = target.matches("button, a[href], summary, [role=button]");
  const isSlider = target.matches("input[type=range], [role=slider]");
  return !(isButton && event.key === " ") && !(isSlider && event.key.startsWith("Arrow"));
}
