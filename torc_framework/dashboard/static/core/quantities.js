// Sizes, durations and counts as text: the same texts as torc_framework/text/quantities.py.

const SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/** @type {[string, number][]} */
const SPANS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** @param {number} value */
const shown = (value) => (value < 99.95 ? rounded(value, 1) : rounded(value, 0));

/**
 * Round; a number in the middle between two becomes the even one, as in Python.
 * @param {number} value
 * @param {number} digits
 */
function rounded(value, digits) {
  const factor = 10 ** digits;
  const scaled = value * factor;
  const isTie = Number.isInteger(value * 4) && Math.abs(scaled % 1) === 0.5;
  if (isTie) return (2 * Math.round(scaled / 2)) / factor;
  return Number(value.toFixed(digits));
}

/**
 * Return a size such as "512 B", "8.8 MiB" or "1.5 GiB".
 * @param {number | null | undefined} bytes
 */
export function sizeText(bytes) {
  if (bytes === null || bytes === undefined) return "";
  let value = bytes;
  let unit = 0;
  while ((shown(value) >= 1024 || value >= 1000) && unit < SIZE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit ? `${shown(value)} ${SIZE_UNITS[unit]}` : `${rounded(value, 0)} B`;
}

/**
 * Return a duration such as "20 ms", "4.1 s", "3 min 20 s" or "2 h 05 min".
 * @param {number | null | undefined} seconds
 * @returns {string}
 */
export function durationText(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0) return `-${durationText(-seconds)}`;
  if (seconds < 0.0995) return seconds ? `${Math.max(1, rounded(seconds * 1000, 0))} ms` : "0 s";
  if (seconds < 9.95) return `${rounded(seconds, 1)} s`;
  let whole = rounded(seconds, 0);
  if (whole >= 3600) whole = Math.floor(seconds / 60 + 0.5) * 60;
  if (whole >= 86400) whole = Math.floor(seconds / 3600 + 0.5) * 3600;
  return spelled(whole);
}

/** @param {number} seconds */
function spelled(seconds) {
  /** @type {string[]} */
  const parts = [];
  let rest = seconds;
  for (const [unit, length] of SPANS) {
    const amount = Math.floor(rest / length);
    rest %= length;
    if (!amount) continue;
    const padded = parts.length && (unit === "min" || unit === "s") ? String(amount).padStart(2, "0") : amount;
    parts.push(`${padded} ${unit}`);
  }
  return parts.join(" ") || "0 s";
}

/**
 * Return a number such as "4,960", or with a noun "1 job" or "37 jobs".
 * @param {number} number
 * @param {string} [noun]
 * @param {string} [plural] by default noun + s
 */
export function countText(number, noun = "", plural = `${noun}s`) {
  const text = number.toLocaleString("en-US");
  return noun ? `${text} ${number === 1 ? noun : plural}` : text;
}

/**
 * Return a share such as "42%"; only 0 is "0%", and a share below 100 is at most "99.9%".
 * @param {number} percent
 */
export function percentText(percent) {
  if (percent > 0 && percent < 0.05) return "<0.1%";
  if (percent > 99 && percent < 100) return `${Math.floor(percent * 10) / 10}%`;
  return `${rounded(percent, percent < 9.95 ? 1 : 0)}%`;
}

/**
 * Return a time as its distance from now: "3 min ago", "in 2 h", "just now".
 * @param {number} seconds the time minus the present time
 */
export function relativeTimeText(seconds) {
  const distance = Math.abs(seconds);
  const [unit, length] = SPANS.find(([, each]) => distance >= each) ?? ["", 0];
  if (!length) return "just now";
  const amount = `${Math.floor(distance / length).toLocaleString("en-US")} ${unit}`;
  return seconds > 0 ? `in ${amount}` : `${amount} ago`;
}

const UNITS = new Map([["k", 1024], ["m", 1024 ** 2], ["g", 1024 ** 3], ["t", 1024 ** 4]]);

/**
 * Return the bytes of a request for memory such as "48g"; null for other texts.
 * @param {string | null | undefined} text
 */
export function requestedBytes(text) {
  const match = /^([\d.]+)\s*([kmgt])?/i.exec(text ?? "");
  return match ? Number(match[1]) * (UNITS.get(match[2]?.toLowerCase() ?? "") ?? 1) : null;
}

/**
 * Return a request for memory such as "48g" as "48 GiB"; other texts as they are.
 * @param {string | null | undefined} text
 */
export function requestedSizeText(text) {
  const bytes = requestedBytes(text);
  return bytes === null ? (text ?? "") : sizeText(bytes);
}

const ISO_DURATION = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const ISO_SECONDS = [604800, 86400, 3600, 60, 1];

/**
 * Return the seconds of a requested run time in ISO 8601, such as "PT1H30M"; null for other texts.
 * @param {string | null | undefined} text
 */
export function requestedSeconds(text) {
  const match = ISO_DURATION.exec(text ?? "");
  return match ? ISO_SECONDS.reduce((sum, length, index) => sum + length * Number(match[index + 1] ?? 0), 0) : null;
}

/**
 * Return a requested run time such as "P0DT1M" as "1 min"; other texts as they are.
 * @param {string | null | undefined} text
 */
export function requestedSecondsText(text) {
  const seconds = requestedSeconds(text);
  return seconds === null ? (text ?? "") : durationText(seconds);
}
