// What a reader chose for this browser: theme, time zone, density. Kept in the browser's local storage.

import { effect, signal } from "../vendor/ui.js";

const KEY = "torc-dash";

/** @typedef {{theme: "system" | "light" | "dark", zone: "local" | "utc", density: "normal" | "compact", updates: "live" | "manual"}} Preferences */

/** @type {Preferences} */
const DEFAULTS = { theme: "system", zone: "local", density: "normal", updates: "live" };

/** @returns {Preferences} */
function stored() {
  try {
    return { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return DEFAULTS; // storage is off, or holds something else
  }
}

/** The choices of this browser. */
export const preferences = signal(stored());

/** @param {Partial<Preferences>} changes */
export function prefer(changes) {
  preferences.value = { ...preferences.value, ...changes };
}

const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(darkSystem.matches);
darkSystem.addEventListener("change", () => (isSystemDark.value = darkSystem.matches));

effect(() => {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  document.documentElement.dataset.density = preferences.value.density;
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences.value));
  } catch {
    // storage is off: the choices last as long as the page
  }
});

/** Whether data is asked for again by itself. */
export const isUpdated = () => preferences.value.updates !== "manual";

/** Whether the page is dark now. */
export function isDark() {
  const { theme } = preferences.value;
  return theme === "dark" || (theme === "system" && isSystemDark.value);
}
