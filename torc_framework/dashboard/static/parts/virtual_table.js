// A table of any number of rows: only those in view are in the page, and only their pages are asked for.
//
// It is one stop of the Tab key; the arrow keys, Page Up, Page Down, Home, End, j and k move the active row. The focus
// stays on the table itself (aria-activedescendant), so that it survives rows that leave the view.

import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { countText } from "../core/quantities.js";
import { preferences } from "../core/preferences.js";
import { Failure } from "./basics.js";

/**
 * @typedef {object} Column
 * @property {string} key name in the rows, and of the sort order
 * @property {string} title
 * @property {string} [width] a track of a CSS grid; by default minmax(6rem, 1fr)
 * @property {boolean} [isNumber] aligned to the right
 * @property {boolean} [canSort]
 * @property {(row: Record<string, any>) => any} [show]
 */

/** Browsers cut elements that are higher (Firefox at about 17 million pixels); positions are scaled above it. */
const HIGHEST_PX = 8_000_000;
const EXTRA_ROWS = 8;
/** Most rows for which the table is no higher than they are. */
const FEW_ROWS = 50;

const rowHeight = () => (preferences.value.density === "compact" ? 24 : 32);

/**
 * @param {object} props
 * @param {string} props.label what the table lists
 * @param {Column[]} props.columns
 * @param {import("./row_pages.js").RowPages} props.pages
 * @param {string} [props.sort] key of a column, with "-" before it for the reverse order
 * @param {(sort: string) => void} [props.onSort]
 * @param {(row: Record<string, any>) => void} [props.onOpen]
 * @param {any} [props.empty] what is shown instead of no rows
 */
export function VirtualTable({ label, columns, pages, sort = "", onSort, onOpen, empty }) {
  const id = useId();
  const box = useRef(/** @type {any} */ (null));
  const [top, setTop] = useState(0);
  const [viewport, setViewport] = useState(600);
  const [active, setActive] = useState(0);
  const height = rowHeight();
  const total = Math.max(0, pages.total.value);
  const full = total * height;
  const scaled = Math.min(full, HIGHEST_PX);
  const inView = Math.max(1, Math.floor(viewport / height) - 1);
  const first = firstRow(top, full, scaled, viewport, height);
  const from = Math.max(0, Math.floor(first) - EXTRA_ROWS);
  const to = Math.min(total, Math.ceil(first) + inView + EXTRA_ROWS + 2);
  void pages.version.value; // rows that come are shown

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => box.current && setViewport(box.current.clientHeight));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => pages.want(from, Math.max(from, to - 1)), pages.total.value < 0 ? 0 : 40);
    return () => clearTimeout(timer);
  }, [pages, from, to]);
  useEffect(() => {
    setActive(0);
    if (box.current) box.current.scrollTop = 0;
  }, [pages]);

  const activeRow = Math.min(active, Math.max(0, total - 1));
  const moveTo = (/** @type {number} */ position) => {
    const target = Math.min(Math.max(0, position), Math.max(0, total - 1));
    setActive(target);
    scrollTo(box.current, target, { first, inView, height, full, scaled, viewport });
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = MOVES[event.key];
    if (move) moveTo(move(activeRow, inView, total));
    else if (event.key === "Enter" && event.target === box.current) openRow(activeRow);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const openRow = (/** @type {number} */ position) => {
    const row = pages.row(position);
    if (row && onOpen) onOpen(row);
  };

  const template = columns.map(trackOf).join(" ");
  const leastWidth = `${columns.reduce((sum, column) => sum + leastRem(column), 0)}rem`; // head and body have the same tracks
  const isEmpty = pages.total.value === 0;
  const shift = top - first * height; // rows are placed beside the view, whatever the scale
  return html`<${Failure} error=${pages.error.value} />
    <div
      ref=${box}
      class=${isEmpty && empty ? "vtable is-empty" : "vtable"}
      style=${{ maxHeight: total && total <= FEW_ROWS ? `calc(${full}px + 3.2rem)` : undefined }}
      role="grid"
      aria-label=${label}
      aria-rowcount=${total + 1}
      aria-colcount=${columns.length}
      aria-busy=${pages.total.value < 0}
      aria-activedescendant=${activeRow >= from && activeRow < to ? `${id}-${activeRow}` : undefined}
      tabindex="0"
      onScroll=${(/** @type {any} */ event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown=${onKeyDown}
    >
      <div role="rowgroup" class="vtable-head" style=${{ minWidth: leastWidth }}>
        <div role="row" aria-rowindex="1" class="vrow" style=${{ gridTemplateColumns: template }}>
          ${columns.map((column) => html`<${Heading} key=${column.key} column=${column} sort=${sort} onSort=${onSort} />`)}
        </div>
      </div>
      <div role="rowgroup" class="vtable-body" style=${{ height: `${scaled}px`, minWidth: leastWidth }}>
        ${range(from, to).map((position) => {
          const row = pages.row(position);
          return html`<div
            role="row"
            key=${position}
            id=${`${id}-${position}`}
            aria-rowindex=${position + 2}
            aria-selected=${position === activeRow}
            class=${`vrow${onOpen ? " opens" : ""}`}
            style=${{ gridTemplateColumns: template, height: `${height}px`, transform: `translateY(${position * height + shift}px)` }}
            onClick=${(/** @type {MouseEvent} */ event) => {
              setActive(position);
              if (!(/** @type {Element} */ (event.target).closest("a, button, input"))) openRow(position);
            }}
          >
            ${columns.map(
              (column) => html`<div role="gridcell" key=${column.key} class=${column.isNumber ? "number" : ""}>
                ${row ? (column.show ? column.show(row) : textOf(row[column.key])) : "…"}
              </div>`,
            )}
          </div>`;
        })}
      </div>
      ${isEmpty ? empty : ""}
    </div>
    <p class="vtable-foot">${pages.error.value && pages.total.value < 0 ? "" : footText(pages.total.value, first, inView)}</p>`;
}

/** @type {Record<string, (active: number, inView: number, total: number) => number>} */
const MOVES = {
  ArrowDown: (active) => active + 1,
  ArrowUp: (active) => active - 1,
  j: (active) => active + 1,
  k: (active) => active - 1,
  PageDown: (active, inView) => active + inView,
  PageUp: (active, inView) => active - inView,
  Home: () => 0,
  End: (_active, _inView, total) => total - 1,
};

/**
 * @param {number} top @param {number} full @param {number} scaled @param {number} viewport @param {number} height
 */
function firstRow(top, full, scaled, viewport, height) {
  const room = scaled - viewport;
  const share = full > scaled && room > 0 ? Math.min(1, top / room) : 0;
  return full > scaled ? (share * (full - viewport)) / height : top / height;
}

/**
 * @param {any} box
 * @param {number} target
 * @param {{first: number, inView: number, height: number, full: number, scaled: number, viewport: number}} view
 */
function scrollTo(box, target, { first, inView, height, full, scaled, viewport }) {
  if (target >= first && target < first + inView - 1) return;
  const row = target < first ? target : target - inView + 2;
  const pixels = Math.max(0, row * height);
  box.scrollTop = full > scaled ? (pixels / (full - viewport)) * (scaled - viewport) : pixels;
}

/** @param {Column} column */
const trackOf = (column) => column.width ?? "minmax(6rem, 1fr)";

/** The least width of a column in rem: the first number of its track. @param {Column} column */
const leastRem = (column) => Number(/[\d.]+(?=rem)/.exec(trackOf(column))?.[0] ?? 6);

/** @param {number} from @param {number} to */
const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);

/** @param {any} value */
const textOf = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** @param {number} total @param {number} first @param {number} inView */
function footText(total, first, inView) {
  if (total < 0) return "Loading…";
  const last = Math.min(total, Math.floor(first) + inView);
  return total ? `${countText(Math.floor(first) + 1)}–${countText(last)} of ${countText(total)}` : "";
}

/** @param {{column: Column, sort: string, onSort?: (sort: string) => void}} props */
function Heading({ column, sort, onSort }) {
  const isSorted = sort.replace(/^-/, "") === column.key;
  const direction = isSorted ? (sort.startsWith("-") ? "descending" : "ascending") : undefined;
  const mark = isSorted ? (sort.startsWith("-") ? " ▼" : " ▲") : "";
  const content =
    column.canSort && onSort
      ? html`<button type="button" class="heading" tabindex="-1" onClick=${() => onSort(direction === "ascending" ? `-${column.key}` : column.key)}>${column.title}${mark}</button>`
      : column.title;
  return html`<div role="columnheader" aria-sort=${direction} class=${column.isNumber ? "number" : ""}>${content}</div>`;
}
