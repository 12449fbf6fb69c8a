// The jobs of a workflow: any number, filtered and sorted on the server.

import { html, useState } from "../vendor/ui.js";
import { get } from "../core/api.js";
import { countText, durationText, requestedSecondsText } from "../core/quantities.js";
import { shellWord } from "../core/orders.js";
import { address, go, route, setParams } from "../core/router.js";
import { classWord } from "../core/words.js";
import { Command, Duration, Empty, Name, Size, Status, StatusCounts, Time } from "../parts/basics.js";
import { DialogBox, openDialog } from "../parts/dialog.js";
import { RetryButton, retriedCount } from "../parts/retry_jobs.js";
import { rowsOf, useRowPages } from "../parts/row_pages.js";
import { useTypedFilter } from "../parts/typed_filter.js";
import { VirtualTable } from "../parts/virtual_table.js";

/** @typedef {import("../parts/virtual_table.js").Column} Column */

/**
 * The first jobs that a job waits for, and how many more there are.
 * @param {{count: number, job_names: string[]} | null} dependencies
 */
function dependenciesText(dependencies) {
  if (!dependencies) return "";
  const { count, job_names: names } = dependencies;
  const text = `${names.join(", ")}${count > names.length ? ` and ${countText(count - names.length)} more` : ""}`;
  return html`<span class="one-line" title=${text}>${text}</span>`;
}

/** @type {Column[]} */
export const JOB_COLUMNS = [
  { key: "id", title: "Id", width: "5.5rem", isNumber: true, canSort: true },
  { key: "name", title: "Name", width: "minmax(12rem, 3fr)", canSort: true, show: (row) => html`<${Name} text=${row.name} />` },
  { key: "status", title: "Status", width: "9rem", canSort: true, show: (row) => html`<${Status} of=${row.status} />` },
  { key: "dependencies", title: "Dependencies", width: "minmax(12rem, 2fr)", show: (row) => dependenciesText(row.dependencies) },
  { key: "attempt", title: "Attempt", width: "6.5rem", isNumber: true, canSort: true },
  { key: "class", title: "Ending", width: "8rem", canSort: true, show: (row) => classWord(row.class) },
  { key: "exit", title: "Exit", width: "4.5rem", isNumber: true, canSort: true },
  { key: "seconds", title: "Run time", width: "7rem", isNumber: true, canSort: true, show: (row) => html`<${Duration} seconds=${row.seconds} />` },
  { key: "peak_mem", title: "Peak memory", width: "8.5rem", isNumber: true, canSort: true, show: (row) => html`<${Size} bytes=${row.peak_mem} />` },
  { key: "memory", title: "Memory asked", width: "9rem", isNumber: true, canSort: true, show: (row) => html`<${Size} bytes=${row.memory} />` },
  { key: "runtime", title: "Time asked", width: "7rem", isNumber: true, canSort: true, show: (row) => (typeof row.runtime === "number" ? durationText(row.runtime) : requestedSecondsText(row.runtime)) },
  { key: "cpus", title: "CPUs", width: "4.5rem", isNumber: true, canSort: true },
  { key: "gpus", title: "GPUs", width: "4.5rem", isNumber: true, canSort: true },
  { key: "cpu", title: "CPU %", width: "5rem", isNumber: true, canSort: true, show: (row) => (row.cpu === null ? "" : Math.round(row.cpu)) },
  { key: "node", title: "Node", width: "minmax(7rem, 1fr)", canSort: true },
  { key: "stage", title: "Stage", width: "5rem", isNumber: true, canSort: true },
  { key: "group", title: "Group", width: "minmax(8rem, 1fr)", canSort: true },
  { key: "executor", title: "Executor", width: "6rem", canSort: true },
  { key: "started", title: "Started", width: "8rem", canSort: true, show: (row) => html`<${Time} at=${row.started} />` },
  { key: "ended", title: "Ended", width: "8rem", canSort: true, show: (row) => html`<${Time} at=${row.ended} />` },
  { key: "reason", title: "Reason", width: "minmax(10rem, 2fr)", canSort: true },
  { key: "command", title: "Command", width: "minmax(14rem, 3fr)", show: (row) => html`<span class="mono one-line" title=${row.command}>${row.command}</span>` },
];
const DEFAULT_KEYS = "id,name,status,attempt,class,exit,seconds,peak_mem,node";

/** @param {{id: number}} props */
export function Jobs({ id }) {
  const { q = "", sort = "id", columns: keys = DEFAULT_KEYS } = route.value.params;
  const columns = JOB_COLUMNS.filter((column) => keys.split(",").includes(column.key));
  const [counts, setCounts] = useState(/** @type {Record<string, number>} */ ({}));
  const fields = columns.map((column) => column.key).join(",");
  const pages = useRowPages(
    async (offset, limit) => {
      const wanted = fields.split(",").includes("id") ? fields : `id,${fields}`;
      const answer = await get(`api/workflows/${id}/views/jobs`, { q, sort, fields: wanted, offset, limit, counts: true });
      setCounts(answer.counts);
      return { rows: rowsOf(answer.columns), total: answer.total };
    },
    [id, q, sort, fields],
  );

  return html`<header class="view-head">
      <h1>Jobs</h1>
      <span class="grow"></span>
      <button type="button" onClick=${() => openDialog(() => html`<${ColumnChoice} />`)}>Columns…</button>
    </header>
    <${FilterLine} q=${q} error=${pages.error.value} />
    <${StatusCounts} counts=${counts} href=${(/** @type {string} */ label) => address(["w", id, "jobs"], { ...route.value.params, q: withStatus(q, label) })} />
    <${VirtualTable} label="Jobs" columns=${columns} pages=${pages} sort=${sort} onSort=${(/** @type {string} */ next) => setParams({ sort: next })}
      onOpen=${(/** @type {any} */ row) => go(["w", id, "j", row.id])}
      empty=${html`<${NoJobs} q=${q} />`} />
    <p class="row"><${Command} text=${`torc jobs list ${id}${q ? ` --filter ${shellWord(q)}` : ""}`} />
      ${retriedCount(counts) ? html`<${RetryButton} id=${id} q=${q} label=${`Retry the ${countText(retriedCount(counts), "failed job")} that ${retriedCount(counts) === 1 ? "matches" : "match"}`} />` : ""}</p>`;
}

/** @param {{q: string}} props */
const NoJobs = ({ q }) =>
  q
    ? html`<${Empty} title="No job matches."><p><code>${q}</code></p><button type="button" onClick=${() => setParams({ q: "" })}>Clear the filter</button><//>`
    : html`<${Empty} title="This workflow has no jobs." />`;

/**
 * Return a filter for one status, with the other terms of a filter.
 * @param {string} q
 * @param {string} label
 */
function withStatus(q, label) {
  const others = q.replace(/(^|\s)status:\S+/g, " ").trim();
  return `status:${label}${others ? ` ${others}` : ""}`;
}

/** @param {{q: string, error: Error | null}} props */
function FilterLine({ q, error }) {
  const [text, setText, use] = useTypedFilter(q);
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      use();
    }}>
      <label class="wide">Filter
        <input data-search type="search" spellcheck=${false} autocomplete="off" value=${text} aria-invalid=${Boolean(error)}
          placeholder="status:failed group:train exit:137 node:n0* peak_mem>48g text"
          onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} /></label>
      <button type="button" class="quiet" onClick=${() => openDialog(() => html`<${FilterHelp} />`)}>Filter help</button>
    </form>`;
}

function FilterHelp() {
  const rows = [
    ["train", "names that contain the text"],
    ["status:failed,terminated", "one of these statuses"],
    ["group:train_#", "jobs of a group: names that differ in digits only"],
    ["exit:137  signal:kill  class:oom", "how it ended"],
    ["seconds>90m  peak_mem>48g  attempt>1", "more than; also >=, <, <="],
    ["node:n0*  runner:7", "where it ran; * stands for any characters"],
    ["started>30m  ended<12:30", "in the last 30 minutes; before a time (UTC)"],
    ["-status:completed  reason!=…", "not"],
    ['reason:"out of memory*"', "quotes for blanks"],
    ["peak_mem:none", "without a value"],
  ];
  return html`<${DialogBox} title="Filters">
    <p>Terms are separated by blanks; a job must satisfy all of them.</p>
    <dl class="facts">${rows.map(([term, meaning]) => html`<dt key=${term}><code>${term}</code></dt><dd>${meaning}</dd>`)}</dl>
  <//>`;
}

function ColumnChoice() {
  const keys = (route.value.params.columns ?? DEFAULT_KEYS).split(",");
  const toggle = (/** @type {string} */ key) => {
    const next = keys.includes(key) ? keys.filter((each) => each !== key) : [...keys, key];
    if (next.length) setParams({ columns: next.join(",") === DEFAULT_KEYS ? "" : next.join(",") });
  };
  return html`<${DialogBox} title="Columns">
    <div class="choices">${JOB_COLUMNS.map(
      ({ key, title }) => html`<label class="check" key=${key}><input type="checkbox" checked=${keys.includes(key)} onChange=${() => toggle(key)} /> ${title}</label>`,
    )}</div>
    <p class="muted">${countText(keys.length, "column")}. The choice is part of this view's address.</p>
  <//>`;
}

