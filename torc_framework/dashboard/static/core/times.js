// Times in the reader's zone, or in UTC where the reader prefers that.

import { signal } from "../vendor/ui.js";
import { preferences } from "./preferences.js";
import { relativeTimeText } from "./quantities.js";

/** The present time in milliseconds since the epoch; changes every ten seconds while the page is seen. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);

/** @typedef {string | number | null | undefined} Moment an ISO time, or milliseconds since the epoch */

/**
 * Return milliseconds since the epoch; null if there is no time.
 * @param {Moment} moment
 */
export function milliseconds(moment) {
  if (moment === null || moment === undefined || moment === "") return null;
  if (typeof moment === "number") return moment;
  const bare = /[zZ]|[+-]\d\d:?\d\d$/.test(moment) ? moment : `${moment}Z`; // stored times are UTC
  const value = Date.parse(bare);
  return Number.isNaN(value) ? null : value;
}

/** The name of the zone in which times are shown. */
export function zoneName() {
  return preferences.value.zone === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/** @param {Intl.DateTimeFormatOptions} options */
function format(options) {
  const key = JSON.stringify([options, preferences.value.zone]);
  let found = formats.get(key);
  if (!found) {
    const zone = preferences.value.zone === "utc" ? { timeZone: "UTC" } : {};
    found = new Intl.DateTimeFormat("en-GB", { ...options, ...zone, hourCycle: "h23" });
    formats.set(key, found);
  }
  return found;
}

const CLOCK = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = /** @type {const} */ ({ day: "numeric", month: "short" });

/**
 * Return a time such as "14:20:05", with the day "21 Nov 14:20" if it is not today, and the year if it is another one.
 * @param {Moment} moment
 */
export function timeText(moment) {
  const value = milliseconds(moment);
  if (value === null) return "";
  const day = format({ ...DAY, year: "numeric" });
  if (day.format(value) === day.format(now.value)) return format(CLOCK).format(value);
  const year = format({ year: "numeric" });
  const isThisYear = year.format(value) === year.format(now.value);
  return format({ ...DAY, ...(isThisYear ? {} : { year: "numeric" }), hour: "2-digit", minute: "2-digit" }).format(value);
}

/**
 * Return a time of the day such as "14:20".
 * @param {Moment} moment
 */
export function clockText(moment) {
  const value = milliseconds(moment);
  return value === null ? "" : format({ hour: "2-digit", minute: "2-digit" }).format(value);
}

/**
 * Return a time of the day with seconds such as "14:20:05", or "14:20:05.5" for steps below a second.
 * @param {number} time seconds since the epoch
 * @param {number} step
 */
export function secondsText(time, step) {
  const seconds = (time % 60).toFixed(step < 1 ? 1 : 0).padStart(step < 1 ? 4 : 2, "0");
  return `${clockText(1000 * time)}:${seconds}`;
}

/**
 * Return the exact time in ISO form, in UTC.
 * @param {Moment} moment
 */
export function exactTime(moment) {
  const value = milliseconds(moment);
  return value === null ? "" : new Date(value).toISOString();
}

/**
 * Return how long ago a time is: "3 min ago".
 * @param {Moment} moment
 */
export function agoText(moment) {
  const value = milliseconds(moment);
  return value === null ? "" : relativeTimeText((value - Math.max(now.value, Date.now())) / 1000);
}
