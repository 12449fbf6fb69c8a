// Any JSON document of a command: simple values as facts, lists of records as tables.

import { html } from "../vendor/ui.js";
import { countText, durationText, sizeText } from "../core/quantities.js";
import { PlainTable } from "./plain_table.js";

/** Ends of names that tell the unit of a number, as in `elapsed_s`. */
const UNITS = /_(bytes|s|seconds)$/;
const MOST_ROWS = 200;
const LONG_TEXT = 30;
const MOST_ITEMS = 8;
const MOST_DEPTH = 4;

/** @param {{of: Record<string, any>, depth?: number}} props */
export function DocumentView({ of, depth = 0 }) {
  const entries = Object.entries(of).filter(([, value]) => value !== null && value !== "");
  const simple = entries.filter(([, value]) => typeof value !== "object" || isPlainList(value));
  const lists = entries.filter(([, value]) => Array.isArray(value) && !isPlainList(value));
  const nested = entries.filter(([, value]) => typeof value === "object" && !Array.isArray(value) && Object.keys(value).length);
  return html`
    ${simple.length ? html`<dl class="facts">${simple.map(([name, value]) => html`<dt key=${name}>${wordsOf(name)}</dt><dd>${amountText(name, value)}</dd>`)}</dl>` : ""}
    ${lists.map(([name, rows]) => html`<${Rows} key=${name} name=${name} rows=${rows} />`)}
    ${depth < MOST_DEPTH ? nested.map(([name, value]) => html`<p class="field-title" key=${name}>${wordsOf(name)}</p><${DocumentView} of=${value} depth=${depth + 1} />`) : ""}
  `;
}

/** @param {{name: string, rows: any[]}} props */
function Rows({ name, rows }) {
  const shown = rows.slice(0, MOST_ROWS);
  const isSimple = (/** @type {string} */ key) => shown.every((row) => typeof (row?.[key] ?? "") !== "object" || isPlainList(row[key]) || isNamedList(row[key]));
  const keys = [...new Set(shown.flatMap((row) => Object.keys(row ?? {})))].filter(isSimple);
  return html`<p class="field-title">${wordsOf(name)} <span class="muted">${countText(rows.length)}</span></p>
    <${PlainTable} label=${wordsOf(name)} rows=${shown} columns=${keys.map((key) => ({ title: wordsOf(key), isNumber: shown.some((row) => typeof row?.[key] === "number"), show: (/** @type {any} */ row) => cell(amountText(key, row?.[key])) }))} />
    ${rows.length > MOST_ROWS ? html`<p class="muted">The first ${MOST_ROWS} of ${countText(rows.length)}.</p>` : ""}`;
}

/** Whether these are records, such as jobs, whose names tell them. @param {any} value */
const isNamedList = (value) => Array.isArray(value) && value.length > 0 && value.every((item) => typeof item?.name === "string");

/** A text in a table; a long one has room. @param {string} text */
const cell = (text) => (text.length > LONG_TEXT ? html`<span class="details">${text}</span>` : text);

/** @param {any} value */
const isPlainList = (value) => Array.isArray(value) && value.every((item) => typeof item !== "object");

/** @param {string} name */
const wordsOf = (name) => {
  const words = name.replace(UNITS, "").replaceAll("_", " ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
};

/** @param {string} name @param {any} value */
function amountText(name, value) {
  const unit = UNITS.exec(name)?.[1];
  if (typeof value !== "number" || !unit) return valueText(value);
  return unit === "bytes" ? sizeText(value) : durationText(value);
}

/** @param {any} value @returns {string} */
function valueText(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (isNamedList(value)) return valueText(value.map((/** @type {{name: string}} */ { name }) => name));
  if (isPlainList(value)) {
    const rest = value.length - MOST_ITEMS;
    return `${value.slice(0, MOST_ITEMS).join(", ")}${rest > 0 ? ` and ${countText(rest)} more` : ""}` || "none";
  }
  return String(value);
}
