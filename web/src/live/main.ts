import { element, setText } from "../page/elements.ts";
import { showNotice } from "./notices.ts";
import { ownSecret } from "../page/own-key.ts";
import { hashOf, keepCertificate, roomOf } from "../page/room.ts";
import { translatePage } from "../page/translate.ts";
import { Theme } from "../page/theme.ts";
import { bitrate as rateText } from "../player/format.ts";
import { browserStore } from "../player/known-keys.ts";
import type { LiveChange, LiveFigures, LiveReport, LiveStart } from "../shared/live.ts";
import { sharedAddress } from "../page/share.ts";
import { fetchNode, fetchViewers } from "../shared/node.ts";
import { waitingText } from "../shared/room.ts";
import { capture, farewell, missing, rateOf, type Wanted } from "./capture.ts";
import { claim } from "./claim.ts";
import { pictures, sound, type Frames } from "./frames.ts";
import { Level } from "./level.ts";
import { Recording } from "./recording.ts";
import { ticketOf } from "./ticket.ts";
import { t } from "../shared/language.ts";

/** Name to go live as where the address has none. */
const DEFAULT_NAME = "/live";

const randomOctets = (): Uint8Array => crypto.getRandomValues(new Uint8Array(32));
/** Bits a second that go out though nobody watches: answers about what there is. */
const UNWATCHED = 20_000;

/** Viewers are counted so often, in milliseconds. */
const COUNT_INTERVAL = 2_000;

/** What tests and the curious reach from the console. */
export interface LiveHandle {
  figures(): LiveFigures | undefined;
  readonly state: string;
  /** The link to watch; empty before the stream is signed. */
  readonly link: string;
}

declare global {
  interface Window {
    namecastLive: LiveHandle;
  }
}

type State = "not live" | "starting" | "live" | "connecting";

class Live {
  /** The room that the address leads to. */
  readonly #room = roomOf(location.hash, browserStore(), randomOctets);
  /** Name to go live as; in a room its root, until the host has given a name. */
  #name = this.#room?.root ?? (new URLSearchParams(location.search).get("name") || DEFAULT_NAME);
  #stream: MediaStream | undefined;
  /** Its pictures. Requested at once, or nobody would see the one picture of a screen on which nothing moves. */
  #pictures: Frames<VideoFrame> | undefined;
  #sound: Frames<AudioData> | undefined;
  readonly #level = new Level(element<HTMLMeterElement>("level"));
  readonly #recording = new Recording(element("record"), this.#name);
  #worker: Worker | undefined;
  #figures: LiveFigures | undefined;
  #viewers: number | undefined;
  #countedAt = -Infinity;
  #state: State = "not live";
  #link = "";
  /** Certificate of this tab in its room, once it has joined. */
  #membership: { certificate?: string } = {};
  /** What is captured now. */
  #captured: Wanted | undefined;
  /** A change of what is captured, which the next waits for. */
  #changing: Promise<void> = Promise.resolve();
  /** Lets another tab of this browser go live as the name. */
  #unclaim: () => void = () => undefined;

  constructor() {
    element("name").textContent = this.#name;
    const theme = new Theme(() => undefined);
    element("theme").addEventListener("click", () => theme.toggle());
    element("go").addEventListener("click", () => void this.#go());
    element("end").addEventListener("click", () => this.#end());
    element("show").addEventListener("click", () => void this.#preview());
    for (const kind of ["picture", "sound"] as const) {
      element(`${kind}-off`).addEventListener("click", () => this.#switch(kind));
    }
    element("record").addEventListener("click", () => this.#recording.toggle(this.#stream));
    addEventListener("beforeunload", (event) => this.#state !== "not live" && event.preventDefault());
    element("copy").addEventListener("click", () => void this.#copy());
    element("sources").addEventListener("change", () => {
      this.#changing = this.#changing.then(() => this.#choose());
    });
    element("sources").addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", () => location.reload());
    void translatePage().then(() => notice(missing()));
    window.namecastLive = this.#handle();
  }

  #handle(): LiveHandle {
    const [state, link] = [() => this.#state, () => this.#link];
    return {
      figures: () => this.#figures,
      get state() {
        return state();
      },
      get link() {
        return link();
      },
    };
  }

  /** Follows the form: sends other sources while live, else shows them. */
  async #choose(): Promise<void> {
    if (this.#worker === undefined || this.#captured === undefined) {
      await this.#preview();
      return;
    }
    const [before, now] = [this.#captured, wanted()];
    try {
      await this.#exchange(before, now);
      notice("");
    } catch (error) {
      choose(before);
      notice(error instanceof Error ? error.message : String(error));
    }
  }

  /** Captures what is chosen now, and shows it. Returns whether there is anything. */
  async #preview(): Promise<boolean> {
    this.#release();
    const chosen = wanted();
    try {
      const stream = await capture(chosen);
      const [picture] = stream.getVideoTracks();
      this.#pictures = picture && pictures(picture);
      await this.#follow(stream, chosen);
      notice("");
      return true;
    } catch (error) {
      notice(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Shows what is captured by now. */
  async #follow(stream: MediaStream, chosen: Wanted): Promise<void> {
    const before = this.#stream?.getTracks() ?? [];
    [this.#stream, this.#captured] = [stream, chosen];
    for (const track of stream.getTracks().filter((each) => !before.includes(each))) {
      track.addEventListener("ended", () => this.#stream?.getTracks().includes(track) === true && this.#fail(farewell(track.kind, chosen.picture)));
    }
    element<HTMLVideoElement>("preview").srcObject = stream;
    this.#level.follow(stream);
    this.#showSwitches();
    hint(stream.getVideoTracks().length === 0 ? t("Sound alone.") : "");
    await listDevices(stream);
    // The form names the devices by now that the browser chose.
    this.#captured = wanted();
  }

  /** Captures what is chosen otherwise than before, and sends it instead. What stays is not captured again: nobody is asked for a screen twice. */
  async #exchange(before: Wanted, now: Wanted): Promise<void> {
    const picture = before.picture !== now.picture || (now.picture === "camera" && before.camera !== now.camera);
    const microphone = before.microphone !== now.microphone || (now.microphone && before.microphoneDevice !== now.microphoneDevice);
    if (now.picture === "none" && !now.microphone) {
      throw new Error(t("There is nothing to send: choose a camera, a screen or the microphone."));
    }
    const [heard] = microphone && now.microphone ? (await capture({ ...now, picture: "none" })).getAudioTracks() : [];
    const [shown] = picture && now.picture !== "none" ? (await capture({ ...now, microphone: false }).catch((error: unknown) => release(heard, error))).getVideoTracks() : [];
    const change: LiveChange = {};
    const kept = this.#stream?.getTracks() ?? [];
    const left = kept.filter(({ kind }) => (kind === "video" ? picture : microphone));
    if (picture) {
      this.#pictures?.stop();
      this.#pictures = shown && pictures(shown);
      change.video = shown === undefined || this.#pictures === undefined ? null : { frames: this.#pictures.source, rate: rateOf(shown) };
    }
    if (microphone) {
      this.#sound?.stop();
      this.#sound = heard && (await sound(heard));
      change.audio = this.#sound?.source ?? null;
    }
    // A recording is of the tracks with which it began.
    this.#recording.end();
    for (const track of [shown, heard].filter((each) => each !== undefined)) {
      track.enabled = left.find(({ kind }) => kind === track.kind)?.enabled ?? true;
    }
    await this.#follow(new MediaStream([...kept.filter((track) => !left.includes(track)), ...[shown, heard].filter((each) => each !== undefined)]), now);
    left.forEach((track) => track.stop());
    const transfer = [change.video?.frames, change.audio].filter((each) => each !== undefined && each !== null);
    this.#worker?.postMessage(change, transfer);
  }

  async #go(): Promise<void> {
    this.#enter("starting");
    if (this.#stream?.active !== true && !(await this.#preview())) {
      this.#enter("not live");
      return;
    }
    const unclaim = await claim(this.#name);
    if (unclaim === undefined) {
      this.#fail(t("Another tab of this browser is live as {name}. End it there, or go on there.", { name: this.#name }));
      return;
    }
    const secret = ownSecret(this.#name, browserStore(), randomOctets);
    const ticket = await ticketOf(location.hash, secret);
    const [microphone] = this.#tracks("sound");
    const heard = microphone && (await sound(microphone));
    const [stream, shown] = [this.#stream, this.#pictures];
    if (stream === undefined) {
      // It ended meanwhile.
      heard?.stop();
      unclaim();
      return;
    }
    [this.#unclaim, this.#sound] = [unclaim, heard];
    const [picture] = stream.getVideoTracks();
    const title = element<HTMLInputElement>("title").value.trim();
    const start: LiveStart = {
      name: this.#name,
      secret,
      ...(ticket === undefined ? {} : { ticket }),
      ...(this.#room === undefined ? {} : { room: { ...this.#room, ...this.#membership } }),
      ...(title === "" ? {} : { title }),
      base: location.href,
      ...(picture === undefined || shown === undefined ? {} : { video: { frames: shown.source, rate: rateOf(picture) } }),
      ...(heard === undefined ? {} : { audio: heard.source }),
    };
    const worker = new Worker(new URL("../worker/publish.ts", import.meta.url), { type: "module", name: "namecast-live" });
    this.#worker = worker;
    worker.onmessage = (event: MessageEvent<LiveReport>) => this.#hear(event.data);
    worker.onerror = (event) => this.#fail(t("This page cannot go live: {cause}", { cause: event.message || t("its worker did not start") }));
    const transfer = [start.video?.frames, start.audio].filter((each) => each !== undefined);
    worker.postMessage(start, transfer);
  }

  /** Learns how many watch through the node whose page this is. */
  async #count(): Promise<void> {
    if (performance.now() - this.#countedAt < COUNT_INTERVAL) {
      return;
    }
    this.#countedAt = performance.now();
    this.#viewers = await fetchViewers(this.#name);
  }

  #hear(report: LiveReport): void {
    switch (report.type) {
      case "key":
        void this.#share(report.digest);
        break;
      case "connection":
        this.#enter(report.live ? "live" : "connecting");
        notice(report.live ? "" : report.text);
        break;
      case "joined":
        this.#join(report.name, report.certificate);
        break;
      case "room":
        notice(waitingText(report.root, report.state, t));
        break;
      case "failed":
        this.#fail(report.text);
        break;
      case "figures":
        this.#figures = report.figures;
        showFigures(report.figures, this.#viewers);
        void this.#count();
        showNotice("transport", report.figures.isNarrow ? narrow(report.figures) : "");
    }
  }

  /** Goes by the name that the host gave, and keeps the certificate. The token is needed no more. */
  #join(name: string, certificate: string): void {
    this.#name = name;
    element("name").textContent = name;
    this.#membership = { certificate };
    const hash = this.#room && keepCertificate(this.#room, certificate, browserStore());
    if (hash !== undefined) {
      history.replaceState(null, "", hash);
    }
  }

  #fail(text: string): void {
    this.#end();
    notice(text);
  }

  #end(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#figures = undefined;
    showNotice("transport", "");
    this.#release();
    this.#unclaim();
    element("share").hidden = true;
    element("share-picture").hidden = true;
    setText(element("share-hint"), t("It is here once you are live."));
    element("share-hint").hidden = false;
    element("sent").hidden = true;
    element("sent-none").hidden = false;
    hint(t("Choose a camera or a screen, then go live."));
    this.#enter("not live");
  }

  /** Sends black or silence instead, or no more. */
  #switch(kind: "picture" | "sound"): void {
    for (const track of this.#tracks(kind)) {
      track.enabled = !track.enabled;
    }
    this.#showSwitches();
  }

  #tracks(kind: "picture" | "sound"): MediaStreamTrack[] {
    return (kind === "picture" ? this.#stream?.getVideoTracks() : this.#stream?.getAudioTracks()) ?? [];
  }

  #showSwitches(): void {
    element("show").hidden = this.#stream !== undefined || this.#state !== "not live";
    element("record").hidden = this.#stream === undefined;
    for (const kind of ["picture", "sound"] as const) {
      const [button, [track]] = [element(`${kind}-off`), this.#tracks(kind)];
      button.hidden = track === undefined;
      button.setAttribute("aria-pressed", String(track?.enabled === false));
    }
  }

  #release(): void {
    this.#recording.end();
    this.#stream?.getTracks().forEach((track) => track.stop());
    this.#level.follow(undefined);
    this.#pictures?.stop();
    this.#sound?.stop();
    [this.#stream, this.#captured, this.#pictures, this.#sound] = [undefined, undefined, undefined, undefined];
    element<HTMLVideoElement>("preview").srcObject = null;
    this.#showSwitches();
  }

  #enter(state: State): void {
    this.#state = state;
    const pill = element("state");
    pill.textContent = t(state);
    pill.dataset["look"] = state === "not live" ? "idle" : state === "live" ? "live" : "wait";
    const isOff = state === "not live";
    element("go").hidden = !isOff;
    this.#showSwitches();
    element("end").hidden = isOff;
    for (const field of element("sources").querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")) {
      // Other sources may be chosen while it is live, but not while it begins.
      field.disabled = state === "starting";
    }
    // Those who watch know the title from when they joined.
    element<HTMLInputElement>("title").disabled = !isOff;
  }

  async #share(digest: string): Promise<void> {
    const address = await sharedAddress(location.href, () => fetchNode(location.href));
    // Names are written as they are: a slash needs no escape in a query. Members of a room know its anchor's key.
    const name = encodeURIComponent(this.#name).replaceAll("%2F", "/");
    const query = this.#room === undefined ? `?name=${name}&key=${digest}` : `?name=${name}${hashOf(this.#room)}`;
    this.#link = new URL(query, address ?? new URL("./", location.href)).href;
    element<HTMLInputElement>("link").value = this.#link;
    element("share").hidden = false;
    const hint = element("share-hint");
    hint.textContent = t("This link opens on this machine only: start the node with --listen for others.");
    hint.hidden = address !== undefined;
    if (address !== undefined) {
      const { drawCode } = await import("../page/qr.ts");
      drawCode(element("share-picture"), this.#link);
      element("share-picture").hidden = false;
    }
  }

  async #copy(): Promise<void> {
    const button = element("copy");
    try {
      await navigator.clipboard.writeText(this.#link);
      button.textContent = t("Copied");
    } catch {
      element<HTMLInputElement>("link").select();
      button.textContent = t("Press Ctrl+C");
    }
    setTimeout(() => (button.textContent = t("Copy")), 2_000);
  }
}

/** What the form says. */
function wanted(): Wanted {
  const picture = document.querySelector<HTMLInputElement>("input[name=picture]:checked")?.value;
  return {
    picture: picture === "screen" || picture === "none" ? picture : "camera",
    camera: element<HTMLSelectElement>("camera").value,
    microphone: element<HTMLInputElement>("microphone").checked,
    microphoneDevice: element<HTMLSelectElement>("mic").value,
  };
}

/** Has the form say this again. */
function choose({ picture, camera, microphone, microphoneDevice }: Wanted): void {
  const chosen = element("sources").querySelector<HTMLInputElement>(`input[value=${picture}]`);
  if (chosen !== null) {
    chosen.checked = true;
  }
  element<HTMLSelectElement>("camera").value = camera ?? "";
  element<HTMLInputElement>("microphone").checked = microphone;
  element<HTMLSelectElement>("mic").value = microphoneDevice ?? "";
}

/** Ends a track that is not wanted after all, as `error` says. */
function release(track: MediaStreamTrack | undefined, error: unknown): never {
  track?.stop();
  throw error;
}

/** Fills the lists of devices, whose names the browser tells once one may be used. */
async function listDevices(stream: MediaStream): Promise<void> {
  const devices = await navigator.mediaDevices.enumerateDevices();
  for (const [kind, list, track] of [
    ["videoinput", "camera", stream.getVideoTracks()[0]],
    ["audioinput", "mic", stream.getAudioTracks()[0]],
  ] as const) {
    const found = devices.filter((device) => device.kind === kind && device.deviceId !== "");
    const select = element<HTMLSelectElement>(list);
    const chosen = track?.getSettings().deviceId ?? select.value;
    select.replaceChildren(...found.map((device, index) => new Option(device.label || `${index + 1}`, device.deviceId, false, device.deviceId === chosen)));
    element(`${list}-row`).hidden = found.length < 2;
  }
}

function showFigures({ qualities, sound, sent, dropped }: LiveFigures, viewers: number | undefined): void {
  const rows: [string, string][] = qualities.map(({ width, height, bitrate, rate }) => [t("Picture {width} × {height}", { width, height }), t("{bitrate}, {rate} a second", { bitrate: rateText(bitrate), rate: rate.toFixed(0) })]);
  if (sound !== null) {
    rows.push([t("Sound"), rateText(sound)]);
  }
  rows.push([t("To those who watch"), sent > UNWATCHED ? rateText(sent) : t("nobody watches now")]);
  if (viewers !== undefined && viewers > 0) {
    rows.push([t("Viewers"), t("at least {viewers}", { viewers })]);
  }
  const left = dropped.encoder + dropped.network;
  if (left > 0) {
    rows.push([t("Pictures left out"), dropped.encoder >= dropped.network ? t("{count}: this computer is too slow", { count: left }) : t("{count}: this connection is too slow", { count: left })]);
  }
  const list = element("sent");
  list.replaceChildren(
    ...rows.flatMap(([term, text]) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      [dt.textContent, dd.textContent] = [term, text];
      return [dt, dd];
    }),
  );
  list.hidden = false;
  element("sent-none").hidden = true;
}

/** What is said while less is sent than could be. */
function narrow({ qualities: [low] }: LiveFigures): string {
  const size = low === undefined ? "" : `: ${low.width} × ${low.height}`;
  return t("Your connection does not carry all qualities at the moment, so all who watch get a lower one{size}.", { size });
}

/** Shows what a person must know; empty: nothing. */
function notice(text: string): void {
  showNotice("publishing", text);
}

/** What stands in place of the preview; empty: nothing. */
function hint(text: string): void {
  element("preview-hint").textContent = text;
  element("preview-hint").hidden = text === "";
}

new Live();
