export function clockHeight(width: number): number;
export function readClock(image: { width: number; height: number; data: Uint8ClampedArray }): { time: number; frame: number } | null;
export function crc16(message: bigint): number;
export function clockRows(time: number, frame: number): boolean[][];
export function flashArea(width: number, height: number): { x: number; y: number; side: number };
