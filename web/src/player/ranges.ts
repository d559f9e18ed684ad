/** Returns ranges as HTMLMediaElement has them, each from start to end in seconds. */
export function ranges(parts: readonly (readonly [number, number])[]): TimeRanges {
  const at = (index: number, end: 0 | 1): number => {
    const part = parts[index];
    if (part === undefined) {
      throw new DOMException(`there is no range ${index}`, "IndexSizeError");
    }
    return part[end];
  };
  return { length: parts.length, start: (index) => at(index, 0), end: (index) => at(index, 1) };
}
