// A window of a log file: the lines around one place, by byte ranges. Never the whole file.

import { signal } from "../vendor/ui.js";
import { get } from "./api.js";
import { hexLines } from "./log_text.js";

/** @typedef {{offset: number, text: string, isPart: boolean}} LogLine `isPart`: the line begins before its offset */

export const CHUNK_BYTES = 64 * 1024;
export const MOST_LINES = 5000;
/** Characters of all lines in the page; a log of very long lines has fewer of them. */
const MOST_CHARACTERS = 2_000_000;
const encoder = new TextEncoder();

export class LogWindow {
  /**
   * @param {string} base address of the log's route
   * @param {Record<string, string | number>} which which log
   */
  constructor(base, which) {
    this.base = base;
    this.which = which;
    /** @type {{value: LogLine[]}} */
    this.lines = signal(/** @type {LogLine[]} */ ([]));
    this.size = signal(0);
    this.path = signal("");
    this.isBinary = signal(false);
    /** @type {{value: Error | null}} */
    this.error = signal(/** @type {Error | null} */ (null));
    this.isLoading = signal(false);
    /** Bytes of the file that the lines cover. */
    this.from = 0;
    this.to = 0;
    this.file = "";
  }

  /** Show the end of the file. */
  toEnd() {
    return this.load({ tail: CHUNK_BYTES }, (part) => this.replace(part));
  }

  /** Show the file from a byte on, or the begin. @param {number} offset */
  toOffset(offset) {
    return this.load({ offset: Math.max(0, offset), length: CHUNK_BYTES }, (part) => this.replace(part));
  }

  /** Add what stands before the first line. */
  async before() {
    if (this.from <= 0) return;
    const start = Math.max(0, this.from - CHUNK_BYTES);
    await this.load({ offset: start, length: this.from - start }, (part) => {
      const lines = this.split(part);
      const joined = this.lines.value[0]?.isPart ? joinLines(lines, this.lines.value) : [...lines, ...this.lines.value];
      this.from = part.offset;
      this.lines.value = this.cut(joined, false);
    });
  }

  /** Add what stands after the last line, such as what the job wrote since. */
  async after() {
    await this.load({ offset: this.to, length: CHUNK_BYTES }, (part) => {
      if (part.file !== this.file || part.size < this.to) {
        this.replace(part.offset ? null : part); // another file of this name: begin anew
        if (part.offset) this.toEnd();
        return;
      }
      if (part.next_offset === this.to) return;
      const lines = this.split(part);
      const last = this.lines.value.at(-1);
      const isOpen = last && !this.endsWithLine;
      this.lines.value = this.cut(isOpen ? joinLines(this.lines.value, lines) : [...this.lines.value, ...lines], true);
      this.to = part.next_offset;
      this.endsWithLine = endsLine(part);
    });
  }

  /**
   * @param {Record<string, number>} range
   * @param {(part: any) => void} use
   */
  async load(range, use) {
    if (this.isLoading.value) return;
    this.isLoading.value = true;
    try {
      const part = await get(this.base, { ...this.which, ...range });
      this.size.value = part.size;
      this.path.value = part.path;
      this.error.value = null;
      use(part);
    } catch (error) {
      this.error.value = /** @type {Error} */ (error);
    }
    this.isLoading.value = false;
  }

  /** @param {any} part null for nothing */
  replace(part) {
    if (!part) {
      this.lines.value = [];
      this.from = this.to = 0;
      return;
    }
    this.file = part.file;
    this.from = part.offset;
    this.to = part.next_offset;
    this.endsWithLine = endsLine(part);
    this.isBinary.value = part.is_binary;
    this.lines.value = this.cut(this.split(part), true);
  }

  /** @param {any} part @returns {LogLine[]} */
  split(part) {
    if (part.is_binary) return binaryLines(part);
    const texts = part.text.split("\n");
    if (texts.at(-1) === "") texts.pop();
    let offset = part.offset;
    return texts.map((/** @type {string} */ text, /** @type {number} */ index) => {
      const line = { offset, text, isPart: index === 0 && !part.at_line_start && part.offset > 0 };
      offset += encoder.encode(text).length + 1;
      return line;
    });
  }

  /**
   * Keep the bounds of the page.
   * @param {LogLine[]} lines
   * @param {boolean} keepsEnd which end stays
   */
  cut(lines, keepsEnd) {
    let kept = lines.length > MOST_LINES ? (keepsEnd ? lines.slice(-MOST_LINES) : lines.slice(0, MOST_LINES)) : lines;
    let characters = kept.reduce((sum, line) => sum + line.text.length, 0);
    while (characters > MOST_CHARACTERS && kept.length > 1) {
      const dropped = keepsEnd ? kept[0] : kept[kept.length - 1];
      kept = keepsEnd ? kept.slice(1) : kept.slice(0, -1);
      characters -= dropped.text.length;
    }
    if (kept !== lines && keepsEnd) this.from = kept[0].offset;
    if (kept !== lines && !keepsEnd) {
      const next = lines[kept.length];
      this.to = next.offset;
      this.endsWithLine = true;
    }
    return kept;
  }

  endsWithLine = true;
}

/** @param {any} part */
const endsLine = (part) => !part.text || part.text.endsWith("\n");

/** Join two lists at a line that was cut between them. @param {LogLine[]} first @param {LogLine[]} second @returns {LogLine[]} */
function joinLines(first, second) {
  const last = first.at(-1);
  if (!last || !second.length) return [...first, ...second];
  return [...first.slice(0, -1), { ...last, text: last.text + second[0].text }, ...second.slice(1)];
}

/** @param {any} part @returns {LogLine[]} */
function binaryLines(part) {
  const bytes = Uint8Array.from(atob(part.base64 ?? ""), (character) => character.charCodeAt(0));
  return hexLines(bytes, part.offset).map((text, index) => ({ offset: part.offset + 16 * index, text, isPart: false }));
}
