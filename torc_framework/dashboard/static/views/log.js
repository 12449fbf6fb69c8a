// A log: its end at first, earlier parts on demand, follows its growth, search in the whole file.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/ui.js";
import { get, withParams } from "../core/api.js";
import { LONGEST_LINE, piecesOf, shownLine } from "../core/log_text.js";
import { LogWindow, MOST_LINES } from "../core/log_window.js";
import { countText, sizeText } from "../core/quantities.js";
import { route, setParams } from "../core/router.js";
import { Copy, Failure } from "../parts/basics.js";

const FOLLOW_MS = 1000;
/** Rows at the edge of the view from which on further lines are asked for, in pixels. */
const EDGE_PX = 200;

/**
 * @param {object} props
 * @param {string} props.base address of the log's route
 * @param {Record<string, string | number>} props.which which log
 * @param {boolean} props.isLive whether its job runs
 */
export function LogView({ base, which, isLive }) {
  const log = useMemo(() => new LogWindow(base, which), [base, JSON.stringify(which)]);
  const box = useRef(/** @type {any} */ (null));
  const [follows, setFollows] = useState(isLive && !route.value.params.at);
  const [wraps, setWraps] = useState(true);
  const at = Number(route.value.params.at ?? -1);
  const lines = log.lines.value;

  useEffect(() => {
    if (at >= 0) log.toOffset(Math.max(0, at - 2048));
    else log.toEnd().then(() => box.current?.scrollTo(0, box.current.scrollHeight));
  }, [log]);
  useEffect(() => {
    if (!follows) return undefined;
    const timer = setInterval(() => document.hidden || log.after(), FOLLOW_MS);
    return () => clearInterval(timer);
  }, [log, follows]);
  useLayoutEffect(() => {
    if (follows) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [lines, follows]);
  useLayoutEffect(() => {
    if (at >= 0) box.current?.querySelector(".log-line.found")?.scrollIntoView({ block: "center" });
  }, [at, lines.length > 0]);

  const onScroll = async () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < EDGE_PX;
    if (follows && scrollHeight - scrollTop - clientHeight > EDGE_PX) setFollows(false);
    if (scrollTop < EDGE_PX && log.from > 0 && !log.isLoading.value) {
      const height = scrollHeight - scrollTop;
      await log.before();
      requestAnimationFrame(() => box.current && (box.current.scrollTop = box.current.scrollHeight - height));
    } else if (isAtEnd && log.to < log.size.value) log.after();
  };
  const show = async (/** @type {number} */ offset) => {
    setFollows(false);
    setParams({ at: offset });
    await log.toOffset(Math.max(0, offset - 2048));
    requestAnimationFrame(() => box.current?.querySelector(".log-line.found")?.scrollIntoView({ block: "center" }));
  };
  const toEnd = () => {
    setParams({ at: "" });
    log.toEnd().then(() => box.current?.scrollTo(0, box.current.scrollHeight));
  };
  const found = at >= 0 ? lines.findLast((line) => line.offset <= at)?.offset : -1;
  return html`<section class="log" aria-label="Log">
    <div class="row log-tools">
      <${Search} base=${base} which=${which} onShow=${show} />
      <button type="button" onClick=${() => show(0)}>Begin</button>
      <button type="button" onClick=${toEnd}>End</button>
      <label class="check"><input type="checkbox" checked=${follows} onChange=${(/** @type {any} */ event) => setFollows(event.currentTarget.checked)} /> Follow</label>
      <label class="check"><input type="checkbox" checked=${wraps} onChange=${(/** @type {any} */ event) => setWraps(event.currentTarget.checked)} /> Wrap</label>
      <span class="grow"></span>
      <a class="button" href=${withParams(`${base}/download`, which)} download>Download</a>
      <${Copy} text=${lines.map((line) => plain(line.text)).join("\n")} label="Copy shown" />
    </div>
    <${Failure} error=${log.error.value} />
    <div ref=${box} class=${wraps ? "log-box wraps" : "log-box"} tabindex="0" role="log" aria-live="off" aria-label="Lines of the log" onScroll=${onScroll}>
      ${log.from > 0 ? html`<p class="muted log-note">Earlier lines: scroll up.</p>` : ""}
      ${lines.map((line) => html`<${Line} key=${line.offset} text=${line.text} isFound=${line.offset === found} />`)}
      ${!lines.length && !log.isLoading.value ? html`<p class="muted log-note">The log is empty.</p>` : ""}
    </div>
    <p class="muted">${sizeText(log.size.value)} in all, bytes ${countText(log.from)} to ${countText(log.to)} shown${lines.length >= MOST_LINES ? ` (at most ${countText(MOST_LINES)} lines)` : ""}${log.isBinary.value ? ", binary: shown as hexadecimal numbers" : ""}.
      ${log.path.value ? html` <span class="mono path">${log.path.value}</span> <${Copy} text=${log.path.value} label="Copy path" />` : ""}</p>
  </section>`;
}

/** @param {string} text */
const plain = (text) => shownLine(text).replace(/\x1b\[[\d;:]*m/g, "");

/** @param {{text: string, isFound: boolean}} props */
function Line({ text, isFound }) {
  const [isWhole, setWhole] = useState(false);
  const pieces = useMemo(() => piecesOf(text, isWhole ? Number.MAX_SAFE_INTEGER : LONGEST_LINE), [text, isWhole]);
  return html`<div class=${isFound ? "log-line found" : "log-line"}>${pieces.map((piece, index) =>
    piece.classes || piece.colour || piece.background
      ? html`<span key=${index} class=${piece.classes} style=${{ color: piece.colour, backgroundColor: piece.background }}>${piece.text}</span>`
      : piece.text,
  )}${text.length > LONGEST_LINE && !isWhole ? html` <button type="button" class="small" onClick=${() => setWhole(true)}>show all ${countText(text.length)} characters</button>` : ""}</div>`;
}

/**
 * Search in the whole file, on the server.
 * @param {{base: string, which: Record<string, string | number>, onShow: (offset: number) => void}} props
 */
function Search({ base, which, onShow }) {
  const [text, setText] = useState("");
  const [result, setResult] = useState(/** @type {{matches: any[], index: number, next: number | null, query: string} | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const look = async (/** @type {Record<string, any>} */ query) => {
    setError(null);
    try {
      const found = await scan(base, { ...which, ...query });
      setResult({ ...found, index: 0, query: JSON.stringify(query) });
      if (found.matches.length) onShow(found.matches[0].line_offset);
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
  };
  const step = (/** @type {number} */ by) => {
    if (!result?.matches.length) return;
    const index = (result.index + by + result.matches.length) % result.matches.length;
    setResult({ ...result, index });
    onShow(result.matches[index].line_offset);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const query = { text, ignore_case: 1 };
    if (result && JSON.stringify(query) === result.query) step(1);
    else if (text) look(query);
  };
  return html`<form class="row" role="search" onSubmit=${submit}>
      <input data-search type="search" aria-label="Search in the whole log" placeholder="Search" value=${text} onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} />
      <button type="submit">Find</button>
      <button type="button" onClick=${() => look({ kind: "problem" })}>First problem</button>
      ${result ? html`<span class="row" role="status"><span>${result.matches.length ? `${result.index + 1} of ${countText(result.matches.length)}${result.next === null ? "" : "+"}` : "Nothing found"}</span>
        ${result.matches.length > 1 ? html`<button type="button" aria-label="Previous match" onClick=${() => step(-1)}>↑</button><button type="button" aria-label="Next match" onClick=${() => step(1)}>↓</button>` : ""}</span>` : ""}
      <${Failure} error=${error} />
    </form>`;
}

const MOST_MATCHES = 500;

/**
 * Search until there is a match or the file ends; each request reads a bounded part.
 * @param {string} base
 * @param {Record<string, any>} query
 */
async function scan(base, query) {
  let from = 0;
  for (;;) {
    const found = await get(`${base}/search`, { ...query, from, limit: MOST_MATCHES });
    if (found.matches.length || found.is_complete || found.scanned_to <= from) {
      return { matches: found.matches, next: found.is_complete ? null : found.scanned_to };
    }
    from = found.scanned_to;
  }
}
