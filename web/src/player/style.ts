/** How the player looks; `--ratio` is that of the picture. */
export const STYLE = `
  :host { display: block; position: relative; aspect-ratio: var(--ratio, 1.7778); background: #050807; color: #f1f5f3; overflow: hidden; }
  :host([hidden]) { display: none; }
  [hidden] { display: none !important; }
  #frame { position: absolute; inset: 0; background: #050807; container-type: inline-size; }
  slot > :is(canvas, video), ::slotted(:is(canvas, video)) { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; }
  #waiting { position: absolute; inset: 0; display: grid; place-content: center; justify-items: center; gap: 14px; padding: 16px; text-align: center;
    background: rgb(5 8 7 / 62%); font: 14px/1.4 ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif; transition: opacity 0.25s; pointer-events: none; }
  #waiting p { margin: 0; unicode-bidi: plaintext; }
  :host(:not([data-covered])) #waiting { opacity: 0; visibility: hidden; }
  .spinner { width: 30px; height: 30px; border: 2.5px solid rgb(255 255 255 / 18%); border-top-color: #4fd1bd; border-radius: 50%; animation: turn 0.9s linear infinite; }
  :host(:not([data-waits])) .spinner { display: none; }
  #sentence { max-width: 46ch; font-size: clamp(14px, 1.7cqi, 19px); }
  #action { min-height: 40px; padding: 0 16px; border: 1px solid rgb(255 255 255 / 45%); border-radius: 10px; background: #17201d; color: #fff; font: inherit; cursor: pointer; pointer-events: auto; }
  #action:focus-visible { outline: 3px solid #4fd1bd; outline-offset: 2px; }
  @keyframes turn { to { rotate: 1turn; } }
  #sound-action { position: absolute; inset: auto 0 64px; z-index: 2; width: fit-content; min-height: 48px; margin-inline: auto; padding: 0 26px; border: 0; border-radius: 24px;
    background: #fff; color: #10201c; font: 600 17px/1 ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif; cursor: pointer; }
  #sound-action:focus-visible { outline: 3px solid #4fd1bd; outline-offset: 2px; }
  #start { position: absolute; inset: 0; margin: auto; width: 68px; height: 68px; padding: 0; border: 0; border-radius: 50%; background: rgb(8 14 12 / 82%); color: #fff; cursor: pointer; z-index: 1; }
  #start svg { width: 34px; height: 34px; fill: currentColor; vertical-align: middle; }
  #start:focus-visible { outline: 3px solid #4fd1bd; outline-offset: 2px; }
  #captions { position: absolute; inset: auto 5% max(12%, 58px); margin: 0 auto; width: fit-content; padding: 2px 10px; border-radius: 4px; background: rgb(5 8 7 / 78%); color: #fff;
    font: clamp(13px, 4.2cqi, 34px)/1.35 ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif; white-space: pre-line; unicode-bidi: plaintext; text-align: center; pointer-events: none; }
  @media (prefers-reduced-motion: reduce) { .spinner { animation-duration: 3s; } }
`;
