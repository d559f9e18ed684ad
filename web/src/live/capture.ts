import { t } from "../shared/language.ts";

/** What is to be sent. */
export interface Wanted {
  picture: "camera" | "screen" | "none";
  /** Device to use; absent: whichever the browser likes. */
  camera?: string;
  microphone: boolean;
  microphoneDevice?: string;
}

/** Pictures a second, and the size, that are requested. */
const RATE = 30;
const WIDTH = 1_280;
const HEIGHT = 720;

/**
 * Captures what is wanted, after the browser has asked its user.
 *
 * @throws Error in words that say what to do.
 */
export async function capture(wanted: Wanted): Promise<MediaStream> {
  const lack = missing();
  if (lack !== "") {
    throw new Error(lack);
  }
  if (wanted.picture === "none" && !wanted.microphone) {
    throw new Error(t("There is nothing to send: choose a camera, a screen or the microphone."));
  }
  const tracks: MediaStreamTrack[] = [];
  try {
    if (wanted.picture === "screen") {
      if (typeof navigator.mediaDevices.getDisplayMedia === "undefined") {
        throw new DOMException("", "NotSupportedError");
      }
      const video = { width: { max: WIDTH }, height: { max: HEIGHT }, frameRate: { max: RATE } };
      tracks.push(...(await navigator.mediaDevices.getDisplayMedia({ video, audio: false })).getTracks());
    }
    const video = wanted.picture === "camera" && { width: { ideal: WIDTH }, height: { ideal: HEIGHT }, frameRate: { ideal: RATE, max: RATE }, ...device(wanted.camera) };
    const audio = wanted.microphone && device(wanted.microphoneDevice);
    if (video !== false || audio !== false) {
      tracks.push(...(await navigator.mediaDevices.getUserMedia({ video, audio })).getTracks());
    }
  } catch (error) {
    tracks.forEach((track) => track.stop());
    throw new Error(explain(error, wanted, await absent(error, wanted)), { cause: error });
  }
  return new MediaStream(tracks);
}

/** Pictures a second that a track gives at most. */
export function rateOf(track: MediaStreamTrack): number {
  return Math.min(60, Math.max(1, Math.round(track.getSettings().frameRate ?? RATE)));
}

/** What this browser lacks to go live; empty if nothing. */
export function missing(): string {
  if (!isSecureContext) {
    return t("Browsers give camera and microphone only to pages that come by https or from the machine itself, and this one came by plain http from another. Open it by https.");
  }
  if (typeof VideoEncoder === "undefined" || typeof AudioEncoder === "undefined") {
    return t("This browser cannot encode live pictures and sound for a page (WebCodecs). Open this link in Chrome, Edge or Firefox.");
  }
  return "";
}

/** What has ended by itself when a track has, and what to do. */
export function farewell(kind: string, picture: Wanted["picture"]): string {
  if (kind === "audio") {
    return t("The microphone is gone: plug it in again or choose something else to send, and go live again.");
  }
  return picture === "screen"
    ? t("The screen is not shared any more: that was stopped, or its window was closed. Go live again when you like.")
    : t("The camera is gone: plug it in again or choose something else to send, and go live again.");
}

/** Which of the wanted devices there is none of, if that is what went wrong and the browser tells. */
async function absent(error: unknown, { picture, microphone }: Wanted): Promise<string | undefined> {
  if (nameOf(error) !== "NotFoundError") {
    return undefined;
  }
  const kinds = (await navigator.mediaDevices.enumerateDevices()).map(({ kind }) => kind);
  const lacks = (isWanted: boolean, kind: MediaDeviceKind): boolean => isWanted && !kinds.includes(kind);
  const found = [...(lacks(picture === "camera", "videoinput") ? [t("camera")] : []), ...(lacks(microphone, "audioinput") ? [t("microphone")] : [])];
  return found.length === 0 ? undefined : found.join(` ${t("and no")} `);
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : "");

/** Why nothing is captured, and what to do. `absent`: the devices that there are none of, if that is known. */
export function explain(error: unknown, wanted: Wanted, absent?: string): string {
  const what = wanted.picture === "camera" ? (wanted.microphone ? t("camera or microphone") : t("camera")) : t("microphone");
  switch (nameOf(error)) {
    case "NotAllowedError":
      return wanted.picture === "screen"
        ? t("Nothing was chosen to be shared. Try again, and choose a screen or a window; if the microphone is asked for, allow it.")
        : t("The browser does not let this page use the {device}. Allow it at the sign beside the address, and try again.", { device: what });
    case "NotFoundError":
      return t("There is no {device}. Plug one in, or choose something else to send.", { device: absent ?? what });
    case "NotReadableError":
      return t("The {device} cannot be read, mostly because another program uses it. Close that, and try again.", { device: what });
    case "OverconstrainedError":
      return t("The chosen device is gone. Choose another one.");
    case "NotSupportedError":
      return t("This browser cannot share a screen. Choose the camera, or open this link on a computer.");
    default:
      return t("Nothing can be captured: {cause}", { cause: error instanceof Error ? error.message : String(error) });
  }
}

function device(id: string | undefined): MediaTrackConstraints {
  return id === undefined || id === "" ? {} : { deviceId: { exact: id } };
}
