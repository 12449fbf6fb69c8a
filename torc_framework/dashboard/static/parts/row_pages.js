// Pages of rows of a long list on the server: those in view are asked for, the oldest are forgotten.

import { signal, useEffect, useMemo } from "../vendor/ui.js";
import { refreshes } from "../core/api.js";
import { skipFirst } from "../core/data.js";
import { changes } from "../core/live.js";
import { isUpdated } from "../core/preferences.js";

export const PAGE_ROWS = 200;
const MOST_PAGES = 20;
const RENEW_MS = 1000;
/** The server keeps the order of a list for two seconds while the workflow changes: after that it is asked once more. */
const SETTLED_MS = 2500;

/**
 * @typedef {object} RowPage
 * @property {Record<string, any>[]} rows
 * @property {number} total rows of the whole list
 */

/** Rows of one list in one order, by their position. */
export class RowPages {
  /** @param {(offset: number, limit: number) => Promise<RowPage>} load */
  constructor(load) {
    this.load = load;
    /** @type {Map<number, Record<string, any>[]>} */
    this.pages = new Map();
    /** Pages under way, and whether the list has changed since they were asked for. @type {Map<number, boolean>} */
    this.asked = new Map();
    this.timer = 0;
    this.lastTimer = 0;
    /** First and last page of the rows in view. @type {[number, number]} */
    this.inView = [0, 0];
    /** Increases when rows have come. */
    this.version = signal(0);
    this.total = signal(-1);
    /** @type {{value: Error | null}} */
    this.error = signal(/** @type {Error | null} */ (null));
  }

  /**
   * Return the row at a position, or null while it is under way.
   * @param {number} position
   */
  row(position) {
    return this.pages.get(Math.floor(position / PAGE_ROWS))?.[position % PAGE_ROWS] ?? null;
  }

  /**
   * Ask for the pages of these positions that are not there.
   * @param {number} first
   * @param {number} last
   */
  want(first, last) {
    this.inView = [Math.floor(first / PAGE_ROWS), Math.floor(Math.max(first, last) / PAGE_ROWS)];
    for (let page = this.inView[0]; page <= this.inView[1]; page += 1) {
      if (!this.pages.has(page)) this.ask(page);
    }
  }

  /** Ask again for the pages in view, at most once in `RENEW_MS`; the others are forgotten. */
  renew() {
    if (this.timer || document.hidden) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      const [from, to] = this.inView;
      for (const page of [...this.pages.keys()]) if (page < from || page > to) this.pages.delete(page);
      for (let page = from; page <= to; page += 1) {
        if (this.asked.has(page)) this.asked.set(page, true);
        else this.ask(page);
      }
    }, RENEW_MS);
  }

  /** Ask again now, and once more when nothing has changed for a while. */
  follow() {
    this.renew();
    clearTimeout(this.lastTimer);
    this.lastTimer = setTimeout(() => this.renew(), SETTLED_MS);
  }

  /** Ask for nothing more. */
  end() {
    clearTimeout(this.timer);
    clearTimeout(this.lastTimer);
    this.timer = -1;
  }

  /** @param {number} page */
  async ask(page) {
    if (this.asked.has(page)) return;
    this.asked.set(page, false);
    try {
      const { rows, total } = await this.load(page * PAGE_ROWS, PAGE_ROWS);
      this.pages.delete(page);
      this.pages.set(page, rows);
      for (const oldest of this.pages.keys()) {
        if (this.pages.size <= MOST_PAGES) break;
        this.pages.delete(oldest);
      }
      this.total.value = total;
      this.error.value = null;
      this.version.value += 1;
    } catch (error) {
      this.error.value = /** @type {Error} */ (error);
    }
    const isOld = this.asked.get(page);
    this.asked.delete(page);
    if (isOld) this.ask(page);
  }
}

/**
 * Pages of a list that are asked for again when the workflow changes or the reader refreshes.
 * @param {(offset: number, limit: number) => Promise<RowPage>} load
 * @param {any[]} keys what the list depends on
 */
export function useRowPages(load, keys) {
  const pages = useMemo(() => new RowPages(load), keys);
  useEffect(() => {
    const ends = [
      changes.subscribe(skipFirst(() => isUpdated() && pages.follow())),
      refreshes.subscribe(skipFirst(() => pages.follow())),
    ];
    return () => {
      ends.forEach((end) => end());
      pages.end();
    };
  }, [pages]);
  return pages;
}

/**
 * Turn an answer in columns into rows.
 * @param {Record<string, any[]>} columns lists of the same length
 * @returns {Record<string, any>[]}
 */
export function rowsOf(columns) {
  const names = Object.keys(columns);
  const length = columns[names[0]]?.length ?? 0;
  return Array.from({ length }, (_, index) => Object.fromEntries(names.map((name) => [name, columns[name][index]])));
}
