/** Where the choice is kept, if it was ever made. */
const STORED = "namecast-theme";

/** Dark or light: as the system says, until somebody chooses. */
export class Theme {
  readonly #changed: () => void;
  readonly #system = matchMedia("(prefers-color-scheme: dark)");

  constructor(changed: () => void) {
    this.#changed = changed;
    this.#system.addEventListener("change", () => this.#apply());
    this.#apply();
  }

  toggle(): void {
    const chosen = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(STORED, chosen);
    } catch {
      // Storage is switched off: the choice lasts as long as the page.
    }
    this.#apply(chosen);
  }

  #apply(chosen: string | null = stored()): void {
    document.documentElement.dataset["theme"] = chosen ?? (this.#system.matches ? "dark" : "light");
    this.#changed();
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
