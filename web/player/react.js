"use client";
// <namecast-player> as a React component. A server renders the bare element.
import "namecast-player";
import { createElement, forwardRef, useCallback, useEffect, useRef } from "react";

/** Attributes of the element, `src` last, as it starts playback. They are set here: versions of React differ in what they do with `false` and `undefined`. */
const ATTRIBUTES = ["muted", "autoplay", "controls", "background", "src"];

/** Whether this property is a listener such as `onStateChange`. */
const isListener = (property, value) => /^on[A-Z]/.test(property) && typeof value === "function";

/** Sets an attribute; `undefined`, `null` and `false` remove it. */
function setAttribute(player, name, value) {
  if (value === undefined || value === null || value === false) {
    player.removeAttribute(name);
  } else {
    player.setAttribute(name, value === true ? "" : value);
  }
}

export const NamecastPlayer = forwardRef(function NamecastPlayer(properties, outer) {
  const inner = useRef(null);
  const listeners = {};
  const rest = {};
  for (const [property, value] of Object.entries(properties)) {
    if (isListener(property, value)) {
      listeners[property.slice(2).toLowerCase()] = value;
    } else if (!ATTRIBUTES.includes(property)) {
      rest[property === "className" ? "class" : property] = value;
    }
  }
  const latest = useRef(listeners);
  const names = Object.keys(listeners).sort().join(" ");
  // Before the attributes: setting `src` emits the first events.
  useEffect(() => {
    latest.current = listeners;
  });
  useEffect(() => {
    const player = inner.current;
    const ended = new AbortController();
    for (const name of names.split(" ")) {
      player.addEventListener(name, (event) => latest.current[name]?.(event), { signal: ended.signal });
    }
    return () => ended.abort();
  }, [names]);
  // Only what changed: a person may have switched the sound on since.
  const applied = useRef({});
  useEffect(() => {
    for (const name of ATTRIBUTES) {
      if (applied.current[name] !== properties[name]) {
        applied.current[name] = properties[name];
        setAttribute(inner.current, name, properties[name]);
      }
    }
  });
  const ref = useCallback(
    (player) => {
      inner.current = player;
      if (typeof outer === "function") {
        outer(player);
      } else if (outer !== null) {
        outer.current = player;
      }
    },
    [outer],
  );
  return createElement("namecast-player", { ...rest, ref });
});
