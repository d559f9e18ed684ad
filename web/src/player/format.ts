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

/** A stretch of time for people: minutes and seconds, and hours if there are any. */
export function duration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const rest = String(seconds % 60).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** A time of day, with the day unless it is today's. `time` and `today` are milliseconds since 1970. */
export function timeOfDay(time: number, today = Date.now()): string {
  const [date, now] = [new Date(time), new Date(today)];
  const clock = date.toLocaleTimeString("en-GB");
  return date.toDateString() === now.toDateString() ? clock : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${clock}`;
}
