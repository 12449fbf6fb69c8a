// Keys of the page: single keys, and "g" with a letter. Nothing is taken while a person types or a dialog is open.

/** @typedef {{keys: string, does: string, run: () => void}} Key */

/** @type {Map<string, Key>} */
const keys = new Map();
const PREFIX_MS = 1500;
let prefixUntil = 0;

/**
 * Define a key; the same keys defined again replace it. Return what removes it.
 * @param {string} combination "r", "?", "/", or "g w"
 * @param {string} does what it does, for the help
 * @param {() => void} run
 */
export function defineKey(combination, does, run) {
  const key = { keys: combination, does, run };
  keys.set(combination, key);
  return () => {
    if (keys.get(combination) === key) keys.delete(combination);
  };
}

/** All keys, in the order in which they were defined. */
export const definedKeys = () => [...keys.values()];

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const hasPrefix = Date.now() < prefixUntil;
  prefixUntil = 0;
  if (event.key === "g" && !hasPrefix) {
    prefixUntil = Date.now() + PREFIX_MS;
    return;
  }
  const key = keys.get(hasPrefix ? `g ${event.key}` : event.key);
  if (!key) return;
  event.preventDefault();
  key.run();
});
