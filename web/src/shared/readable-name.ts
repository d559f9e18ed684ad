/** The URI of a name as people read it: without percent signs where they stand for text. */
export function readableName(uri: string): string {
  try {
    const text = decodeURIComponent(uri);
    // Control characters, and those that turn the direction of what follows, stay escaped.
    return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text) ? uri : text;
  } catch {
    return uri;
  }
}
