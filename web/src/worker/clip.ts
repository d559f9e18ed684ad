import { ArrayBufferTarget, Muxer } from "mp4-muxer";
import type { ClipSource, Kept } from "./clip-buffer.ts";
import { avcConfiguration, withLengths } from "./annex-b.ts";
import type { Rung } from "./records.ts";

/** Codecs of pictures and sound that MP4 carries, as catalogue and library call them. */
const VIDEO = { h264: "avc", vp9: "vp9", av1: "av1" } as const;
const AUDIO = { opus: "opus", aac: "aac" } as const;

/** Pictures and sound of a clip: the codec and the entry of the catalogue. */
export interface ClipFormat {
  codec: string;
  rung: Rung;
}

/** Puts what was received last into an MP4 file, as it is: nothing is decoded. */
export function makeClip({ video, audio }: ClipSource, picture: ClipFormat | undefined, sound: ClipFormat | undefined): ArrayBuffer {
  const codec = picture && (Object.hasOwn(VIDEO, picture.codec) ? VIDEO[picture.codec as keyof typeof VIDEO] : undefined);
  const [first] = video;
  if (picture === undefined || first === undefined) {
    throw new Error("there is no picture yet");
  }
  if (codec === undefined) {
    throw new Error(`MP4 does not carry ${picture.codec}`);
  }
  const soundCodec = sound && Object.hasOwn(AUDIO, sound.codec) && audio.length > 0 ? AUDIO[sound.codec as keyof typeof AUDIO] : undefined;
  const target = new ArrayBufferTarget();
  const muxer = new Muxer({
    target,
    fastStart: "in-memory",
    firstTimestampBehavior: "cross-track-offset",
    video: { codec, width: picture.rung.width ?? 0, height: picture.rung.height ?? 0 },
    ...(sound === undefined || soundCodec === undefined
      ? {}
      : { audio: { codec: soundCodec, numberOfChannels: sound.rung.channels ?? 2, sampleRate: sound.rung.sample_rate ?? 48_000 } }),
  });
  const isH264 = codec === "avc";
  const videoConfig: VideoDecoderConfig = { codec: picture.rung.codec_string ?? "", ...(isH264 ? { description: avcConfiguration(first.payload) } : {}) };
  const times = decodingTimes(video.map(({ capturedAt }) => capturedAt));
  video.forEach(({ payload, key, capturedAt }, index) => {
    const [at, next] = [times[index] as number, times[index + 1] ?? (times[index] as number) + meanStep(times)];
    const data = isH264 ? withLengths(payload) : payload;
    muxer.addVideoChunkRaw(data, key ? "key" : "delta", micros(at), micros(next) - micros(at), { decoderConfig: videoConfig }, micros(capturedAt) - micros(at));
  });
  if (sound !== undefined && soundCodec !== undefined) {
    addSound(muxer, audio, sound);
  }
  muxer.finalize();
  return target.buffer;
}

function addSound(muxer: Muxer<ArrayBufferTarget>, audio: readonly Kept[], { rung }: ClipFormat): void {
  const decoderConfig: AudioDecoderConfig = {
    codec: rung.codec_string ?? "",
    numberOfChannels: rung.channels ?? 2,
    sampleRate: rung.sample_rate ?? 48_000,
    ...(rung.description === undefined ? {} : { description: Uint8Array.from(rung.description.match(/../g) ?? [], (digits) => parseInt(digits, 16)) }),
  };
  const times = audio.map(({ capturedAt }) => capturedAt);
  audio.forEach(({ payload, capturedAt }, index) => {
    const next = times[index + 1] ?? capturedAt + meanStep(times);
    muxer.addAudioChunkRaw(payload, "key", micros(capturedAt), micros(next) - micros(capturedAt), { decoderConfig });
  });
}

/**
 * Decoding times of pictures that come in decoding order and are shown at `times`: rising, and none after its own time. They are the
 * same times in rising order, earlier by the most that any picture waits for one decoded after it.
 */
export function decodingTimes(times: readonly number[]): number[] {
  const rising = times.toSorted((a, b) => a - b);
  const delay = Math.max(0, ...rising.map((time, index) => time - (times[index] as number)));
  return rising.map((time) => time - delay);
}

function meanStep(times: readonly number[]): number {
  return times.length < 2 ? 20 : ((times.at(-1) as number) - (times[0] as number)) / (times.length - 1);
}

function micros(milliseconds: number): number {
  return Math.round(milliseconds * 1_000);
}
