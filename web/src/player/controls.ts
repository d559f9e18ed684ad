import MediaController from "media-chrome/dist/media-controller.js";
import "media-chrome/dist/media-control-bar.js";
import "media-chrome/dist/media-fullscreen-button.js";
import "media-chrome/dist/media-live-button.js";
import "media-chrome/dist/media-mute-button.js";
import "media-chrome/dist/media-pip-button.js";
import "media-chrome/dist/media-play-button.js";
import "media-chrome/dist/media-time-range.js";
import "media-chrome/dist/media-volume-range.js";
import { addTranslation, setLanguage } from "media-chrome/dist/utils/i18n.js";
import { fileName, save } from "./file-name.ts";
import type { NamecastPlayer } from "./element.ts";
import { timeOfDay } from "./format.ts";
import { followClicks } from "./keys.ts";
import { latencies } from "./latencies.ts";
import { SeekPreview } from "./seek-preview.ts";
import { controlTexts, language, t } from "../shared/language.ts";


/** Name of the element below; not for use outside of the player. */
const TAG = "namecast-controls";

const STYLE = `
  ${TAG} {
    position: absolute;
    inset: 0;
    width: 100%;
    height: 100%;
    background: none;
    --media-background-color: transparent;
    --media-primary-color: #fff;
    --media-secondary-color: transparent;
    --media-control-background: transparent;
    --media-control-hover-background: rgb(255 255 255 / 16%);
    --media-range-bar-color: #4fd1bd;
    --media-focus-box-shadow: inset 0 0 0 2px #fff;
    --media-font: 13px/1 ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif;
  }
  .bar {
    /* Time, and so all beside it, runs from left to right in every language. */
    direction: ltr;
    align-items: center;
    width: 100%;
    padding: 28px 6px 4px;
    background: linear-gradient(transparent, rgb(5 8 7 / 88%) 42%);
    box-sizing: border-box;
  }
  #title { display: block; width: 100%; padding: 10px 14px 28px; box-sizing: border-box; background: linear-gradient(rgb(5 8 7 / 80%), transparent); color: #fff;
    font: 600 15px/1.3 ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif; overflow-wrap: anywhere; pointer-events: none; }
  #title:empty { display: none; }
  .bar > * { flex: none; }
  .bar > media-time-range, .bar > .space { flex: 1; min-width: 24px; }
  .bar select { max-width: 7.5em; }
  #wall { padding: 0 6px; color: #fff; font: 13px/1 ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif; font-variant-numeric: tabular-nums; }
  #wall:empty { display: none; }
  media-time-range { --media-preview-time-display-display: none; --media-preview-background: #17201d; }
  #preview img { display: block; width: 160px; max-height: 120px; margin: 0 0 5px; border-radius: 4px; object-fit: contain; }
  #preview { padding: 5px 8px; text-align: center; border-radius: 6px; background: #17201d; color: #fff; font: 13px/1 ui-sans-serif, system-ui, sans-serif; white-space: nowrap; }
  .bar select, #captions-button {
    height: 34px;
    margin: 0 4px;
    padding: 0 4px;
    border: 0;
    border-radius: 6px;
    background: #17201d;
    color: #fff;
    font: 13px ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif;
  }
  #captions-button { position: relative; min-width: 34px; cursor: pointer; opacity: 0.6; text-decoration: line-through; }
  #captions-button[aria-pressed="true"] { opacity: 1; text-decoration: none; }
  .bar select:focus-visible, :is(#captions-button, #screenshot, #clip):focus-visible { outline: 2px solid #fff; outline-offset: -2px; }
  :is(#screenshot, #clip) { min-width: 34px; height: 34px; padding: 5px; border: 0; border-radius: 6px; background: none; cursor: pointer; }
  :is(#screenshot, #clip):hover { background: rgb(255 255 255 / 16%); }
  :is(#screenshot, #clip) svg { display: block; width: 24px; height: 24px; fill: #fff; fill-rule: evenodd; }
  media-volume-range { width: 76px; }
  ${TAG}:not([breakpointmd]) :is(#quality, #latency) { max-width: 5.4em; }
  ${TAG}:not([breakpointsm]) :is(#quality, #latency, #captions-button) { margin: 0; }
  ${TAG}:not([breakpointmd]) .bar { flex-wrap: wrap; }
  ${TAG}:not([breakpointmd]) .bar > media-time-range { order: -2; flex: 1 1 calc(100% - 100px); min-height: 0; height: 30px; }
  ${TAG}:not([breakpointmd]) .bar > #wall { order: -1; flex: 0 0 76px; text-align: center; }
  ${TAG}:not([breakpointmd]) .bar > .space { display: block; }
  ${TAG}:not([breakpointmd])[mediatargetlivewindow="0"] .bar > media-time-range { display: none; }
  .bar > .space { display: none; }
  ${TAG}:not([breakpointmd]) media-volume-range { display: none; }
  ${TAG}:not([breakpointmd]) :is(media-pip-button, #screenshot, #clip) { display: none; }
  ${TAG}:not([mediatargetlivewindow]) media-time-range, ${TAG}[mediatargetlivewindow="0"] media-time-range { visibility: hidden; }
`;

const bar = (): string => `
  <span id="title" slot="top-chrome" dir="auto"></span>
  <media-control-bar class="bar">
    <media-play-button id="play"></media-play-button>
    <media-mute-button id="sound"></media-mute-button>
    <media-volume-range></media-volume-range>
    <media-live-button id="edge"></media-live-button>
    <media-time-range><span slot="preview" id="preview"></span></media-time-range>
    <span id="wall" aria-hidden="true"></span>
    <span class="space"></span>
    <button id="captions-button" type="button" aria-label="${t("Captions")}" title="${t("Captions")}" hidden>CC</button>
    <select id="quality" aria-label="${t("Quality")}" title="${t("Quality")}"></select>
    <select id="latency" aria-label="${t("Latency")}" title="${t("Latency")}"></select>
    <button id="screenshot" type="button" aria-label="${t("Save a screenshot")}" title="${t("Save a screenshot")}"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M9 4 7.5 6H4a2 2 0 0 0-2 2v10a2 2 0 0 0 2 2h16a2 2 0 0 0 2-2V8a2 2 0 0 0-2-2h-3.5L15 4Zm3 4.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9Z" /></svg></button>
    <button id="clip" type="button" aria-label="${t("Save the last 30 seconds")}" title="${t("Save the last 30 seconds")}"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 5h16a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2Zm7 3v5H8.5l3.5 3.5 3.5-3.5H13V8Z" /></svg></button>
    <media-pip-button id="pip"></media-pip-button>
    <media-fullscreen-button id="full"></media-fullscreen-button>
  </media-control-bar>`;

/** The controls of media-chrome around a player, which is the medium that they act on. */
class Controls extends MediaController {
  player: NamecastPlayer | undefined;

  // Its own medium would have to be a child of it.
  override get media(): HTMLVideoElement {
    return this.player as unknown as HTMLVideoElement;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    // Landmarks of a page have names of their own, and there may be several players on it.
    this.setAttribute("role", "group");
  }

  override mediaSetCallback(media: HTMLMediaElement): void {
    super.mediaSetCallback(media);
    // It keeps media out of the way of Tab, and with this one all controls, which are inside of it.
    media.removeAttribute("tabindex");
  }
}

/** Puts the controls over the picture of `player`. */
export function addControls(player: NamecastPlayer, frame: HTMLElement): void {
  if (customElements.get(TAG) === undefined) {
    customElements.define(TAG, Controls);
  }
  // By its own choice media-chrome speaks the browser's language.
  setLanguage(language());
  if (language() !== "en") {
    addTranslation(language(), controlTexts());
  }
  const style = document.createElement("style");
  style.textContent = STYLE;
  const controls = document.createElement(TAG) as Controls;
  controls.player = player;
  // What a person chose on another site's page is none of this one's.
  controls.setAttribute("nohotkeys", "");
  controls.setAttribute("gesturesdisabled", "");
  controls.setAttribute("nomutedpref", "");
  controls.setAttribute("novolumepref", "");
  controls.setAttribute("seektoliveoffset", "0");
  controls.innerHTML = bar();
  controls.fullscreenElement = frame;
  frame.append(style, controls);
  followClicks(player, controls);
  followQualities(player, controls.querySelector("#quality") as HTMLSelectElement);
  followLatency(player, controls.querySelector("#latency") as HTMLSelectElement);
  followTitle(player, controls.querySelector("#title") as HTMLElement);
  followTime(player, controls);
  followCaptions(player, controls.querySelector("#captions-button") as HTMLButtonElement);
  controls.querySelector("#screenshot")?.addEventListener("click", () => void saveScreenshot(player));
  followClip(player, controls.querySelector("#clip") as HTMLButtonElement);
}

/** Saves the picture as a file, named after the stream and the time of capture. */
async function saveScreenshot(player: NamecastPlayer): Promise<void> {
  const time = player.getStartDate().getTime() + player.currentTime * 1_000;
  save(await player.screenshot(), fileName(player.streamName, time, "png"));
}

/** Saves the last half minute as a file. Segments are no half minute of frames: there the button is away. */
function followClip(player: NamecastPlayer, button: HTMLButtonElement): void {
  const show = (): void => void (button.hidden = player.package.isOpen);
  button.addEventListener("click", () => {
    const time = player.getStartDate().getTime() + player.currentTime * 1_000;
    button.disabled = true;
    const saved = player.clip().then((clip) => save(clip, fileName(player.streamName, time, "mp4")));
    void saved.catch(() => undefined).finally(() => (button.disabled = false));
  });
  player.addEventListener("qualitychange", show);
  show();
}

function followTitle(player: NamecastPlayer, place: HTMLElement): void {
  const show = (): void => void (place.textContent = player.streamTitle);
  player.addEventListener("titlechange", show);
  show();
}

function followCaptions(player: NamecastPlayer, button: HTMLButtonElement): void {
  const show = (): void => {
    button.hidden = !player.hasCaptions;
    button.setAttribute("aria-pressed", String(player.showsCaptions));
  };
  button.addEventListener("click", () => (player.showsCaptions = !player.showsCaptions));
  player.addEventListener("captionschange", show);
  show();
}

function followLatency(player: NamecastPlayer, select: HTMLSelectElement): void {
  const show = (): void => {
    const { target } = player;
    const known = latencies();
    const isOther = known.every((latency) => latency.target !== target);
    const own = isOther ? [new Option(`${target} ms`, String(target))] : [];
    select.replaceChildren(...known.map((latency) => new Option(latency.label, String(latency.target))), ...own);
    select.value = String(target);
    select.hidden = player.package.isOpen;
  };
  select.addEventListener("change", () => (player.target = Number(select.value)));
  player.addEventListener("latencychange", show);
  player.addEventListener("qualitychange", show);
  show();
}

/** Shows times of day: of the picture beside the bar, and of the place under the pointer above it. */
function followTime(player: NamecastPlayer, controls: HTMLElement): void {
  const wall = controls.querySelector("#wall") as HTMLElement;
  const preview = new SeekPreview(player, controls.querySelector("#preview") as HTMLElement);
  player.addEventListener("timeupdate", () => {
    const time = player.getStartDate().getTime() + player.currentTime * 1_000;
    const text = Number.isFinite(time) ? timeOfDay(time) : "";
    if (wall.textContent !== text) {
      wall.textContent = text;
    }
  });
  controls.addEventListener("mediapreviewrequest", (event) => preview.show(Number((event as CustomEvent).detail)));
}

function followQualities(player: NamecastPlayer, select: HTMLSelectElement): void {
  let known = "";
  const show = (): void => {
    const qualities = player.qualities;
    const names = qualities.map(({ name, label }) => `${name} ${label}`).join("\n");
    if (names !== known) {
      known = names;
      select.replaceChildren(new Option(t("Automatic"), "auto"), ...qualities.map(({ name, label }) => new Option(label, name)));
      select.hidden = qualities.length < 2;
    }
    const { quality } = player;
    const named = { highest: qualities[0]?.name, lowest: qualities.at(-1)?.name }[quality] ?? quality;
    select.value = qualities.some(({ name }) => name === named) ? named : "auto";
  };
  select.addEventListener("change", () => (player.quality = select.value));
  player.addEventListener("qualitychange", show);
  show();
}
