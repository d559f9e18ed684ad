import { Controls } from "./page/controls.ts";
import { browserStore, KnownKeyStore } from "./page/known-keys.ts";
import { Notes } from "./page/notes.ts";
import { ownSecret } from "./page/own-key.ts";
import { missing, showNotice, StepLog, type NoticeAction } from "./page/log.ts";
import { readOptions } from "./page/options.ts";
import { element, Panel } from "./page/panel.ts";
import { PackagePlayer, type PackageFigures } from "./page/package-player.ts";
import { Plots } from "./page/plots.ts";
import { Rewind } from "./page/rewind.ts";
import { Sound } from "./page/sound.ts";
import { Theme } from "./page/theme.ts";
import type { Command, Fault, ReceivedSample, Report, Shown } from "./shared/messages.ts";
import { keyChanged, type KnownKey } from "./shared/known-keys.ts";
import type { Summary } from "./shared/summary.ts";

const DEFAULT_TARGET = 100;
/** Frames whose showing the page remembers, for tests: half a minute at 60 a second. */
const MAX_SHOWN = 2_000;

/** What tests and the curious reach from the console. */
export interface Handle {
  stats(): Summary | undefined;
  /** Steps of joining and incidents, oldest first. */
  readonly steps: readonly { at: number; text: string }[];
  /** The last frames that went to the canvas. */
  readonly shown: readonly Shown[];
  readonly sound: Sound;
  /** Figures of a stream that is published as segments. */
  package(): PackageFigures;
  /** The last samples of the data stream that plays. */
  readonly samples: readonly ReceivedSample[];
  /** Publishes a sample as `?publish=` of the address says. */
  send(sample: Uint8Array<ArrayBuffer>): void;
  setTarget(milliseconds: number): void;
  /** Goes to what was captured at a time (publisher's clock, milliseconds since 1970); null: to live. */
  seek(to: number | null): void;
  /** Causes a fault on purpose. */
  fault(fault: Fault): void;
}

declare global {
  interface Window {
    namecast: Handle;
  }
}

const randomOctets = (): Uint8Array => crypto.getRandomValues(new Uint8Array(32));

class Page {
  readonly #options = readOptions(new URLSearchParams(location.search));
  readonly #worker = new Worker(new URL("./worker/worker.ts", import.meta.url), { type: "module", name: "namecast" });
  readonly #store = browserStore();
  readonly #knownKeys = new KnownKeyStore(this.#store);
  readonly #notes = new Notes(this.#options.publish, (sample) => this.#send({ type: "send", sample }));
  readonly #log = new StepLog(performance.timeOrigin);
  readonly #panel = new Panel();
  readonly #sound = new Sound();
  readonly #shown: Shown[] = [];
  readonly #package = new PackagePlayer({
    send: (command) => this.#send(command),
    notice: showNotice,
    step: (text) => this.#log.push(Date.now(), text),
  });
  readonly #plots: Plots;
  readonly #controls: Controls;
  readonly #rewind: Rewind;
  #summary: Summary | undefined;
  #soundWanted = false;

  constructor() {
    this.#worker.onmessage = (event: MessageEvent<Report>) => this.#handle(event.data);
    this.#worker.onerror = (event) => showNotice("fatal", `The page cannot play: ${event.message || "its worker did not start"}`);
    this.#startWorker();
    const theme = new Theme(() => this.#plots?.restyle());
    this.#plots = new Plots();
    this.#controls = new Controls(
      {
        send: (command) => this.#send(command),
        toggleSound: () => void this.#toggleSound(),
        toggleTheme: () => theme.toggle(),
      },
      this.#options.target ?? DEFAULT_TARGET,
      this.#options.rung,
    );
    this.#rewind = new Rewind((command) => this.#send(command));
    document.addEventListener("visibilitychange", () => this.#send({ type: "visible", visible: !document.hidden }));
    window.namecast = this.#makeHandle();
  }

  #startWorker(): void {
    const canvas = element<HTMLCanvasElement>("picture").transferControlToOffscreen();
    const start: Command = {
      type: "start",
      canvas,
      options: this.#options,
      known: this.#knownKeys.all(),
      secret: this.#options.publish === undefined ? "" : ownSecret(this.#options.publish, this.#store, randomOctets),
      base: location.href,
      openedAt: performance.timeOrigin,
      visible: !document.hidden,
    };
    this.#worker.postMessage(start, [canvas]);
  }

  #send(command: Command, transfer: Transferable[] = []): void {
    this.#worker.postMessage(command, transfer);
  }

  #handle(report: Report): void {
    switch (report.type) {
      case "summary":
        this.#showSummary(report.summary);
        break;
      case "step":
        this.#log.push(report.at, report.text);
        break;
      case "notice":
        showNotice(report.topic, report.text, report.forget === undefined ? undefined : this.#forgetting(report.forget));
        break;
      case "remember":
        this.#remember(report.name, report.key);
        break;
      case "name":
        element("name").textContent = report.name;
        document.title = `${report.name} · Namecast`;
        break;
      case "sample":
        this.#notes.push(report.sample);
        break;
      case "size":
        element("screen").style.aspectRatio = `${report.width} / ${report.height}`;
        break;
      case "package":
        this.#package.open(report.info);
        break;
      case "fetching":
      case "fetched":
      case "unfetched":
        this.#package.handle(report);
        break;
      case "shown":
        this.#shown.push(...report.shown);
        this.#shown.splice(0, Math.max(0, this.#shown.length - MAX_SHOWN));
        break;
    }
  }

  /** Keeps the key of a stream that was met for the first time; another tab may have been first with another one. */
  #remember(name: string, key: KnownKey): void {
    const known = this.#knownKeys.remember(name, key);
    if (known === undefined) {
      this.#log.push(Date.now(), `This browser does not remember the key of ${name}`);
    } else if (known.digest !== key.digest) {
      showNotice("signer", keyChanged(name, known.since), this.#forgetting(name));
      this.#worker.terminate();
    } else {
      this.#log.push(Date.now(), `Remembered the key of ${name}: another one will be refused`);
    }
  }

  #forgetting(name: string): NoticeAction {
    const run = (): void => {
      this.#knownKeys.forget(name);
      location.reload();
    };
    return { label: "Forget the old key", run };
  }

  #showSummary(summary: Summary): void {
    this.#summary = summary;
    if (!this.#package.isOpen) {
      element("joining").classList.toggle("done", summary.video.shown > 0 && summary.phase === "playing");
    }
    if (document.hidden) {
      return;
    }
    this.#panel.show(summary);
    this.#controls.show(summary);
    this.#rewind.show(summary.position);
    this.#plots.push(performance.now() / 1_000, summary);
  }

  async #toggleSound(): Promise<void> {
    if (this.#package.isOpen) {
      this.#controls.showSound(this.#package.toggleSound());
      return;
    }
    this.#soundWanted = !this.#soundWanted;
    this.#controls.showSound(this.#soundWanted);
    if (!this.#soundWanted) {
      this.#send({ type: "soundOff" });
      this.#sound.stop();
      return;
    }
    try {
      const port = await this.#sound.start();
      this.#send({ type: "sound", port }, [port]);
      showNotice("sound", "");
    } catch (error) {
      this.#soundWanted = false;
      this.#controls.showSound(false);
      showNotice("sound", `No sound: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #makeHandle(): Handle {
    return {
      stats: () => this.#summary,
      steps: this.#log.steps,
      shown: this.#shown,
      sound: this.#sound,
      package: () => this.#package.figures(),
      samples: this.#notes.received,
      send: (sample) => this.#send({ type: "send", sample }),
      setTarget: (milliseconds) => this.#controls.setTarget(milliseconds),
      seek: (to) => this.#rewind.seek(to),
      fault: (fault) => this.#send({ type: "fault", fault }),
    };
  }
}

const lack = missing();
if (lack === "") {
  new Page();
} else {
  element("joining").hidden = true;
  showNotice("browser", lack);
}
