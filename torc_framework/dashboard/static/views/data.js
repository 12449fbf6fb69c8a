// The tables of a workflow's records, with filters, sorting and paging on the server.

import { html, useMemo } from "../vendor/ui.js";
import { get } from "../core/api.js";
import { address, route, setParams } from "../core/router.js";
import { Command, Empty } from "../parts/basics.js";
import { useRowPages } from "../parts/row_pages.js";
import { useTypedFilter } from "../parts/typed_filter.js";
import { VirtualTable } from "../parts/virtual_table.js";
import { DATA_KINDS } from "./data_kinds.js";

/** @typedef {import("./data_kinds.js").DataKind} DataKind */

/** @param {{id: number, rest: string[]}} props */
export function Data({ id, rest }) {
  const kind = DATA_KINDS.find((each) => each.name === rest[0]) ?? DATA_KINDS[0];
  return html`<header class="view-head"><h1>Data</h1></header>
    <nav class="choice" aria-label="Tables"><ul>
      <li><a href=${address(["w", id, "jobs"])}>Jobs</a></li>
      ${DATA_KINDS.map(({ name, title }) => html`<li key=${name}><a href=${address(["w", id, "data", name])} aria-current=${name === kind.name ? "page" : undefined}>${title}</a></li>`)}
      <li><a href=${address(["w", id, "events"])}>Events</a></li>
    </ul></nav>
    <p class="muted">${kind.about}</p>
    <${Table} key=${kind.name} id=${id} kind=${kind} />`;
}

/** @param {{id: number, kind: DataKind}} props */
function Table({ id, kind }) {
  const { q = "", sort = "" } = route.value.params;
  const { params, error } = useMemo(() => readFilter(q, kind), [q, kind]);
  const pages = useRowPages((offset, limit) => load(id, kind, { params, sort, offset, limit }), [id, kind, sort, JSON.stringify(params)]);
  return html`${kind.filters.length ? html`<${FilterLine} q=${q} kind=${kind} error=${error} />` : ""}
    <${VirtualTable} label=${kind.title} columns=${kind.columns} pages=${pages} sort=${sort} onSort=${(/** @type {string} */ next) => setParams({ sort: next })}
      empty=${html`<${Empty} title=${q ? "Nothing matches." : `No ${kind.title.toLowerCase()}.`}>${q ? html`<button type="button" onClick=${() => setParams({ q: "" })}>Clear the filter</button>` : ""}<//>`} />
    <p><${Command} text=${`${kind.command} ${id}`} /></p>`;
}

/**
 * @param {number} id
 * @param {DataKind} kind
 * @param {{params: Record<string, string>, sort: string, offset: number, limit: number}} request
 */
async function load(id, kind, { params, sort, offset, limit }) {
  if (kind.isWhole) {
    const rows = await get(kind.path.replace("{id}", String(id)));
    return { rows: rows.slice(offset, offset + limit), total: rows.length };
  }
  const order = sort ? { sort_by: sort.replace(/^-/, ""), reverse_sort: sort.startsWith("-") } : {};
  const page = await get(kind.path, { workflow_id: id, offset, limit, ...order, ...params });
  return { rows: page.items, total: page.total_count };
}

/**
 * Read a filter such as `name:prepare is_output:true`; a plain word is a value of the first field.
 * @param {string} q
 * @param {DataKind} kind
 * @returns {{params: Record<string, string>, error: string}}
 */
function readFilter(q, kind) {
  /** @type {Record<string, string>} */
  const params = {};
  for (const [, field = kind.filters[0], quoted, plain] of q.matchAll(/(?:(\w+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)) {
    if (!kind.filters.includes(field)) return { params, error: `No filter is called "${field}". There are: ${kind.filters.join(", ")}.` };
    params[field] = quoted?.replace(/\\(.)/g, "$1") ?? plain;
  }
  return { params, error: "" };
}

/** @param {{q: string, kind: DataKind, error: string}} props */
function FilterLine({ q, kind, error }) {
  const [text, setText, use] = useTypedFilter(q, 0);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    use();
  };
  return html`<form class="filters" role="search" onSubmit=${submit}>
    <label class="wide">Filter <input data-search type="search" value=${text} aria-invalid=${Boolean(error)} placeholder=${`${kind.filters[0]}:value; fields: ${kind.filters.join(", ")}`} onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} onChange=${submit} /></label>
    <button type="submit">Filter</button>
  </form>
  ${error ? html`<p class="failure" role="alert">${error}</p>` : ""}`;
}
