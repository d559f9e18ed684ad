/** File name for what is saved of the stream `name` at `time` (milliseconds since 1970). */
export function fileName(name: string, time: number, extension: string): string {
  const stream = name.split(/[^\p{L}\p{N}_.-]+/u).filter((part) => part !== "").join("-");
  const at = new Date(Number.isFinite(time) ? time : Date.now());
  const two = (value: number): string => String(value).padStart(2, "0");
  const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(".");
  return `${stream === "" ? "stream" : stream} ${date} ${clock}.${extension}`;
}

/** Has the browser save `content` as `name`. */
export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  // The browser reads the address after this task.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
