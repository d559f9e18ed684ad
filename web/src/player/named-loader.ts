import type { FragmentLoaderContext, Loader, LoaderCallbacks, LoaderConfiguration, LoaderContext, LoaderStats, PlaylistLoaderContext } from "hls.js";
import type { NamedFetches } from "./named-fetches.ts";

/** Largest playlist, in octets: a day of segments of four seconds has half of it. */
const MAX_PLAYLIST = 1 << 20;

type Context = LoaderContext | FragmentLoaderContext | PlaylistLoaderContext;

/**
 * Makes the loader that an unmodified hls.js takes instead of HTTP.
 *
 * What the player learns of the path is the time in which Data flowed: `loading.start` moves forward over the wait for a segment that does
 * not exist yet.
 */
export function namedLoader(fetches: NamedFetches) {
  return class NamedLoader implements Loader<Context> {
    context: Context | null = null;
    stats: LoaderStats = freshStats();
    #callbacks: LoaderCallbacks<Context> | null = null;
    #number: number | undefined;
    #timer: ReturnType<typeof setTimeout> | undefined;

    destroy(): void {
      this.#end();
      this.#callbacks = null;
    }

    abort(): void {
      const callbacks = this.#callbacks;
      if (this.#number !== undefined && this.context !== null) {
        this.stats.aborted = true;
        this.#end();
        callbacks?.onAbort?.(this.stats, this.context, null);
      }
    }

    load(context: Context, { loadPolicy }: LoaderConfiguration, callbacks: LoaderCallbacks<Context>): void {
      const { stats } = this;
      this.context = context;
      this.#callbacks = callbacks;
      stats.loading.start = performance.now();
      this.#limit(loadPolicy.maxTimeToFirstByteMs);
      this.#number = fetches.fetch(context.url, {
        progress: (octets, total) => {
          if (stats.loading.first === 0) {
            stats.loading.start = stats.loading.first = performance.now();
            this.#limit(loadPolicy.maxLoadTimeMs);
          }
          [stats.loaded, stats.total] = [octets, total];
        },
        done: (octets, flowed) => this.#done(octets, flowed),
        failed: (why) => this.#failed(why),
      });
    }

    getCacheAge(): null {
      return null;
    }

    #done(whole: Uint8Array<ArrayBuffer>, flowed: number): void {
      const { context, stats } = this;
      const callbacks = this.#callbacks;
      this.#number = undefined;
      this.#end();
      if (context === null || callbacks === null) {
        return;
      }
      const isText = context.responseType === "text" || context.responseType === "";
      if (isText && whole.length > MAX_PLAYLIST) {
        callbacks.onError({ code: 0, text: `a playlist of ${whole.length} bytes` }, context, null, stats);
        return;
      }
      const octets = context.rangeEnd ? whole.slice(context.rangeStart ?? 0, context.rangeEnd) : whole;
      const end = performance.now();
      stats.loading = { start: end - flowed, first: end - flowed, end };
      stats.loaded = stats.total = octets.length;
      const data = isText ? new TextDecoder().decode(octets) : octets.slice().buffer;
      callbacks.onSuccess({ url: context.url, data, code: 200 }, stats, context, null);
    }

    #failed(text: string): void {
      const { context, stats } = this;
      this.#number = undefined;
      this.#end();
      if (context !== null) {
        this.#callbacks?.onError({ code: 0, text }, context, null, stats);
      }
    }

    /** Gives up unless it goes on within so many milliseconds. */
    #limit(milliseconds: number): void {
      clearTimeout(this.#timer);
      if (Number.isFinite(milliseconds)) {
        this.#timer = setTimeout(() => {
          this.#end();
          if (this.context !== null) {
            this.#callbacks?.onTimeout(this.stats, this.context, null);
          }
        }, milliseconds);
      }
    }

    #end(): void {
      clearTimeout(this.#timer);
      if (this.#number !== undefined) {
        fetches.giveUp(this.#number);
        this.#number = undefined;
      }
    }
  };
}

function freshStats(): LoaderStats {
  return {
    aborted: false,
    loaded: 0,
    retry: 0,
    total: 0,
    chunkCount: 0,
    bwEstimate: 0,
    loading: { start: 0, first: 0, end: 0 },
    parsing: { start: 0, end: 0 },
    buffering: { start: 0, first: 0, end: 0 },
  };
}
