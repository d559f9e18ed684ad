import { fileName, save } from "../player/file-name.ts";
import { t } from "../shared/language.ts";

/** How often the browser hands over what it has recorded, in milliseconds: so much is lost if the tab crashes. */
const INTERVAL = 1_000;
/** In order of who plays it. */
const TYPES = [
  { type: "video/mp4;codecs=avc1,opus", extension: "mp4" },
  { type: "video/webm", extension: "webm" },
] as const;

/** What is sent, recorded to a file that the browser saves at the end. */
export class Recording {
  readonly #button: HTMLElement;
  readonly #name: string;
  #recorder: MediaRecorder | undefined;

  constructor(button: HTMLElement, name: string) {
    this.#button = button;
    this.#name = name;
  }

  /** Begins to record `stream`, or ends the recording. */
  toggle(stream: MediaStream | undefined): void {
    if (this.#recorder === undefined && stream !== undefined) {
      this.#start(stream);
    } else {
      this.end();
    }
  }

  /** Ends the recording, which the browser saves. */
  end(): void {
    this.#recorder?.stop();
  }

  #start(stream: MediaStream): void {
    const found = TYPES.find(({ type }) => MediaRecorder.isTypeSupported(type));
    const recorder = new MediaRecorder(stream, found && { mimeType: found.type });
    const [parts, begun]: [Blob[], number] = [[], Date.now()];
    recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
    recorder.addEventListener("stop", () => {
      this.#recorder = undefined;
      this.#show();
      save(new Blob(parts, { type: recorder.mimeType }), fileName(this.#name, begun, found?.extension ?? "webm"));
    });
    recorder.start(INTERVAL);
    this.#recorder = recorder;
    this.#show();
  }

  #show(): void {
    const isRecording = this.#recorder !== undefined;
    this.#button.textContent = isRecording ? t("Recording") : t("Record");
    this.#button.setAttribute("aria-pressed", String(isRecording));
  }
}
