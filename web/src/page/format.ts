/** A time for people. */
export function milliseconds(value: number | null): string {
  if (value === null) {
    return "–";
  }
  return value !== 0 && Math.abs(value) < 9.95 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

/** A rate for people. */
export function bitrate(bitsPerSecond: number | null): string {
  if (bitsPerSecond === null) {
    return "–";
  }
  return bitsPerSecond >= 1e6 ? `${(bitsPerSecond / 1e6).toFixed(1)} Mbit/s` : `${Math.round(bitsPerSecond / 1e3)} kbit/s`;
}

/** A share for people: what is small but not nothing does not read as nothing. */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) {
    return "0 %";
  }
  return value < 0.1 ? "< 0.1 %" : `${value.toFixed(value < 10 ? 1 : 0)} %`;
}

/** A count for people. */
export function count(value: number): string {
  return value.toLocaleString("en-GB").replaceAll(",", " ");
}
