// The text of a filter field, which is also part of the address.

import { useEffect, useRef, useState } from "../vendor/ui.js";
import { setParams } from "../core/router.js";

/** Pause after the last key before a filter is used. */
const TYPING_MS = 250;

/**
 * Return the text of the field, what takes new text, and what uses the text at once.
 *
 * The field follows the address, except for changes that come from the field itself: keys that were pressed meanwhile
 * must not be lost.
 * @param {string} q the filter of the address
 * @param {number} [pause] milliseconds after the last key; 0 waits for `use`
 * @returns {[string, (text: string) => void, () => void]}
 */
export function useTypedFilter(q, pause = TYPING_MS) {
  const [text, setText] = useState(q);
  const address = useRef(q);
  const own = useRef(q);
  if (address.current !== q) {
    address.current = q;
    if (q !== own.current) setText(q);
  }
  const use = () => {
    own.current = text;
    setParams({ q: text });
  };
  useEffect(() => {
    if (!pause || text === q) return undefined;
    const timer = setTimeout(use, pause);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText, use];
}
