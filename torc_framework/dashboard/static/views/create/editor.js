// An editor for specs: lines with numbers, errors at their line, a draft that the browser keeps.

import { html, useEffect, useRef, useState } from "../../vendor/ui.js";
import { Check } from "./check.js";
import { EXAMPLES } from "./examples.js";

const DRAFT = "torc-dash-draft";
const FORMATS = ["yaml", "json", "json5", "kdl"];

/** @returns {{text: string, format: string}} */
function draft() {
  try {
    return { text: "", format: "yaml", ...JSON.parse(localStorage.getItem(DRAFT) ?? "{}") };
  } catch {
    return { text: "", format: "yaml" };
  }
}

/** @param {{example?: string}} props */
export function Editor({ example }) {
  const [{ text, format }, set] = useState(() => {
    const kept = draft();
    const chosen = EXAMPLES.find((each) => each.name === example);
    return chosen ? { text: chosen.text, format: "yaml" } : kept.text ? kept : { text: EXAMPLES[0].text, format: "yaml" };
  });
  const [errors, setErrors] = useState(/** @type {string[]} */ ([]));
  const numbers = useRef(/** @type {any} */ (null));
  const area = useRef(/** @type {any} */ (null));
  useEffect(() => {
    try {
      localStorage.setItem(DRAFT, JSON.stringify({ text, format }));
    } catch {
      // storage is off: the draft lasts as long as the page
    }
  }, [text, format]);
  const lines = text.split("\n");
  const places = new Map(errors.map((error) => [Number(/^[\w.]+:(\d+)/.exec(error)?.[1] ?? 0), error]));
  const toLine = (/** @type {number} */ line) => {
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.current.focus();
    area.current.setSelectionRange(start, start + lines[line - 1].length);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    // Tab leaves the field after Escape, so that the keyboard is not caught in it.
    if (event.key === "Escape") area.current.dataset.leaves = "1";
    if (event.key !== "Tab" || event.shiftKey || area.current.dataset.leaves) return;
    event.preventDefault();
    const { selectionStart: start, selectionEnd: end } = area.current;
    area.current.setRangeText("  ", start, end, "end");
    set({ text: area.current.value, format });
  };
  return html`<div class="filters">
      <label>Format <select value=${format} onChange=${(/** @type {any} */ event) => set({ text, format: event.currentTarget.value })}>${FORMATS.map((each) => html`<option key=${each} value=${each}>${each.toUpperCase()}</option>`)}</select></label>
      <label>Example <select value="" onChange=${(/** @type {any} */ event) => {
        const chosen = EXAMPLES.find((each) => each.name === event.currentTarget.value);
        if (chosen) set({ text: chosen.text, format: "yaml" });
        event.currentTarget.value = "";
      }}><option value="">Choose…</option>${EXAMPLES.map(({ name, title }) => html`<option key=${name} value=${name}>${title}</option>`)}</select></label>
    </div>
    <div class="editor">
      <pre ref=${numbers} aria-hidden="true">${lines.map((_, index) => html`<span key=${index} class=${places.has(index + 1) ? "wrong" : ""}>${`${index + 1}\n`}</span>`)}</pre>
      <textarea ref=${area} aria-label="Spec" spellcheck=${false} autocomplete="off" wrap="off" rows=${Math.min(32, Math.max(14, lines.length + 1))} value=${text}
        onFocus=${() => delete area.current.dataset.leaves} onKeyDown=${onKeyDown} onScroll=${() => (numbers.current.scrollTop = area.current.scrollTop)}
        onInput=${(/** @type {any} */ event) => set({ text: event.currentTarget.value, format })}></textarea>
    </div>
    <p class="muted">Tab indents; Escape, then Tab, leaves the field. This browser keeps the draft.</p>
    ${[...places].filter(([line]) => line > 0 && line <= lines.length).map(([line, error]) => html`<p key=${line}><button type="button" class="small" onClick=${() => toLine(line)}>Line ${line}</button> ${error.replace(/^[\w.]+:\d+(:\d+)?: /, "")}</p>`)}
    <${Check} options=${{ text, format }} onErrors=${setErrors} />`;
}
