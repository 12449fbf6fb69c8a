// Data of views: asked for when a view appears, and again when the workflow changes, never while the page is hidden.

import { signal, useEffect, useMemo, useRef } from "../vendor/ui.js";
import { get, refreshes, server, withParams } from "./api.js";
import { changes } from "./live.js";
import { isUpdated } from "./preferences.js";

/**
 * @template T
 * @typedef {object} Loaded
 * @property {T | null} data the last answer
 * @property {Error | null} error why the last request failed
 * @property {boolean} isLoading whether the first answer is under way
 * @property {number} at when the last answer came, milliseconds since the epoch
 */

/** Shortest pause between two requests for the same data, and its multiple of what the last answer took. */
const SHORTEST_PAUSE_MS = 1000;
const PAUSE_FACTOR = 4;

/** One address's data. It is asked for at most once at a time. */
class Source {
  /**
   * @param {string} url
   * @param {any} data what to show until the first answer
   */
  constructor(url, data) {
    this.url = url;
    /** @type {{value: Loaded<any>}} */
    this.loaded = signal({ data, error: null, isLoading: true, at: 0 });
    this.aborter = new AbortController();
    this.isAsking = false;
    this.isWanted = false;
    this.pauseUntil = 0;
    this.timer = 0;
  }

  /** Ask now, or as soon as the pause is over. */
  ask() {
    if (this.isAsking || this.timer || document.hidden) {
      this.isWanted = true;
      return;
    }
    const wait = this.pauseUntil - Date.now();
    if (wait <= 0) {
      this.load();
      return;
    }
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.load();
    }, wait);
  }

  async load() {
    this.isAsking = true;
    this.isWanted = false;
    const begun = Date.now();
    try {
      const data = await get(this.url, {}, this.aborter.signal);
      this.loaded.value = { data, error: null, isLoading: false, at: Date.now() };
    } catch (error) {
      if (this.aborter.signal.aborted) return;
      this.loaded.value = { ...this.loaded.value, error: /** @type {Error} */ (error), isLoading: false };
    } finally {
      this.isAsking = false;
      this.pauseUntil = Date.now() + Math.max(SHORTEST_PAUSE_MS, PAUSE_FACTOR * (Date.now() - begun));
    }
    if (this.isWanted) this.ask();
  }

  end() {
    clearTimeout(this.timer);
    this.aborter.abort();
  }
}

/**
 * Return the data of an address, and keep it new.
 * @param {string | null} path null asks for nothing
 * @param {Record<string, string | number | boolean | undefined | null>} [params]
 * @param {{live?: boolean, everyMs?: number}} [options] `live`: ask again when the chosen workflow changes;
 *   `everyMs`: ask again after this time in any case
 * @returns {Loaded<any> & {reload: () => void}}
 */
export function useData(path, params = {}, { live = true, everyMs = 30_000 } = {}) {
  const url = path === null ? "" : withParams(path, params);
  const last = useRef(/** @type {{path: string | null, source: Source} | null} */ (null));
  const source = useMemo(() => {
    // Other parameters of the same view, such as a longer filter: the old data stays until the new data is there.
    const shown = last.current?.path === path ? last.current?.source.loaded.value.data : null;
    return new Source(url, shown);
  }, [url]);
  last.current = { path, source };
  useEffect(() => {
    if (!url) return undefined;
    source.ask();
    const ask = () => source.ask();
    const ends = [
      live ? changes.subscribe(skipFirst(() => isUpdated() && ask())) : () => {},
      refreshes.subscribe(skipFirst(ask)),
    ];
    const timer = everyMs ? setInterval(() => server.value.isAway || !isUpdated() || ask(), everyMs) : 0;
    const onSeen = () => document.hidden || (source.isWanted && ask());
    document.addEventListener("visibilitychange", onSeen);
    return () => {
      ends.forEach((end) => end());
      clearInterval(timer);
      document.removeEventListener("visibilitychange", onSeen);
      source.end();
    };
  }, [source]);
  return { ...source.loaded.value, isLoading: Boolean(url) && source.loaded.value.isLoading, reload: () => source.ask() };
}

/**
 * A subscriber that is not called for the present value.
 * @param {() => void} call
 */
export function skipFirst(call) {
  let isFirst = true;
  return () => {
    if (!isFirst) call();
    isFirst = false;
  };
}
