// The list of workflows: those that need their reader first, then what runs, then the rest.

import { html, useState } from "../vendor/ui.js";
import { openAction } from "../core/action_requests.js";
import { isOwner } from "../core/api.js";
import { useData } from "../core/data.js";
import { countText } from "../core/quantities.js";
import { address, go, route, setParams } from "../core/router.js";
import { commandKinds } from "../core/orders.js";
import { commandsOf } from "../parts/actions.js";
import { Command, Empty, Name, Shown, State, StatusBar, Time } from "../parts/basics.js";

const PAGE = 100;
const REFRESH_MS = 5000;

/** @typedef {{workflow: any, run_id: number, is_canceled: boolean, is_archived: boolean, counts: Record<string, number>, interrupted: number, active_runners: number, silent_runners: number, queued_allocations: number, updated_at: number}} Entry */

export function Workflows() {
  const { params } = route.value;
  const archived = params.archived === "1";
  const [pages, setPages] = useState(1);
  const from = useData(
    "api/workflow_overviews",
    { limit: PAGE * pages, sort_by: "id", reverse_sort: true, name: params.name, user: params.user, is_archived: archived },
    { live: false, everyMs: REFRESH_MS },
  );
  const isFiltered = Boolean(params.name || params.user || archived);
  return html`<header class="view-head">
      <h1>Workflows</h1>
      <span class="grow"></span>
      ${isOwner() ? html`<a class="button primary" href="#/create">Create workflow</a>` : ""}
    </header>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label>Name <input data-search type="search" value=${params.name ?? ""} onChange=${(/** @type {any} */ event) => setParams({ name: event.currentTarget.value })} /></label>
      <label>User <input type="search" value=${params.user ?? ""} onChange=${(/** @type {any} */ event) => setParams({ user: event.currentTarget.value })} /></label>
      <label class="check"><input type="checkbox" checked=${archived} onChange=${(/** @type {any} */ event) => setParams({ archived: event.currentTarget.checked ? "1" : "" })} /> Archived</label>
    </form>
    <${Shown} from=${from}>${(/** @type {any} */ data) =>
      data.items.length
        ? html`<${List} entries=${data.items} />
            <p class="muted">${countText(data.items.length)} of ${countText(data.total_count)}
              ${data.has_more ? html` <button type="button" onClick=${() => setPages(pages + 1)}>Show more</button>` : ""}</p>`
        : html`<${NoWorkflows} isFiltered=${isFiltered} />`}<//>`;
}

/** @param {{isFiltered: boolean}} props */
const NoWorkflows = ({ isFiltered }) =>
  isFiltered
    ? html`<${Empty} title="No workflow matches."><button type="button" onClick=${() => setParams({ name: "", user: "", archived: "" })}>Clear the filter</button><//>`
    : html`<${Empty} title="No workflows yet.">
        ${isOwner()
          ? html`<p class="row"><a class="button primary" href="#/create/wizard">Use the wizard</a><a class="button" href="#/create/file">Upload a file</a><a class="button" href="#/create/editor?example=diamond">Try an example</a></p>`
          : ""}
        <p>Or in a terminal: <${Command} text="torc workflows create workflow.yaml" /></p>
      <//>`;

/** Groups of the list, in their order. */
const GROUPS = [
  { title: "Needs attention", has: needsAttention },
  { title: "Running", has: (/** @type {Entry} */ entry) => isUnderWay(entry) },
  { title: "Others", has: () => true },
];

/** @param {Entry} entry */
function isUnderWay(entry) {
  const { running = 0, pending = 0 } = entry.counts;
  return entry.active_runners > 0 || entry.queued_allocations > 0 || running + pending > 0;
}

/** Whether it has runners, and none of them has been heard of lately. @param {Entry} entry */
const isSilent = ({ active_runners, silent_runners }) => active_runners > 0 && silent_runners >= active_runners;

/** @param {Entry} entry */
function needsAttention(entry) {
  const { failed = 0, terminated = 0, pending_failed = 0, ready = 0 } = entry.counts;
  if (entry.is_archived) return false;
  if (failed || pending_failed || terminated || isSilent(entry)) return true;
  return ready > 0 && !isUnderWay(entry) && !entry.is_canceled; // ready jobs, and nothing that would run them
}

/** @param {{entries: Entry[]}} props */
function List({ entries }) {
  const left = new Set(entries);
  return html`${GROUPS.map(({ title, has }) => {
    const members = [...left].filter(has);
    members.forEach((entry) => left.delete(entry));
    if (!members.length) return "";
    return html`<section key=${title} aria-label=${title}>
      <h2>${title} <span class="muted">${countText(members.length)}</span></h2>
      <ul class="workflows">${members.map((entry) => html`<${Card} key=${entry.workflow.id} entry=${entry} />`)}</ul>
    </section>`;
  })}`;
}

/** @param {{entry: Entry}} props */
function Card({ entry }) {
  const { workflow, counts } = entry;
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return html`<li class="workflow">
    <div class="workflow-name">
      <a href=${address(["w", workflow.id])}><${Name} text=${workflow.name} /></a>
      <span class="muted">#${workflow.id} · ${workflow.user}</span>
      ${workflow.description ? html`<p class="muted one-line" title=${workflow.description}>${workflow.description}</p>` : ""}
    </div>
    <div class="workflow-bar">
      <${StatusBar} counts=${counts} />
      <span class="workflow-text"><${State} of=${stateOf(entry)} /> <span class="muted">${countText(counts.completed ?? 0)} of ${countText(total, "job")} done${troubles(counts, entry.interrupted, stateOf(entry))}</span></span>
    </div>
    <div class="workflow-side">
      <span class="muted">${entry.updated_at ? html`<${Time} at=${entry.updated_at} ago />` : html`new, <${Time} at=${workflow.timestamp} ago />`}</span>
      <${Menu} entry=${entry} />
    </div>
  </li>`;
}

/** @param {Record<string, number>} counts @param {number} interrupted jobs among the terminated ones @param {string} state whose word is shown before */
export function troubles({ failed = 0, terminated = 0, pending_failed = 0, running = 0, pending = 0 }, interrupted, state) {
  const parts = [
    failed && `${countText(failed)} failed`,
    terminated > interrupted && `${countText(terminated - interrupted)} terminated`,
    interrupted && `${countText(interrupted)} interrupted`,
    pending_failed && (state === "pending_failed" ? `${countText(pending_failed)} failed` : `${countText(pending_failed)} waiting for a verdict`),
    running && `${countText(running)} running`,
    pending && `${countText(pending)} claimed`,
  ];
  return parts.filter(Boolean).map((part) => `, ${part}`).join("");
}

const LIVE = ["running", "pending"];
const NOT_BEGUN = ["uninitialized", "disabled"];
const UNSUCCESSFUL = ["failed", "terminated", "pending_failed", "canceled"];
const DONE = ["completed", "failed", "terminated", "canceled", "disabled"];

/**
 * The state of a workflow from its numbers, by the label of its look: that of `torc workflows list`.
 * @param {Entry} entry
 */
export function stateOf(entry) {
  const present = Object.keys(entry.counts).filter((label) => entry.counts[label]);
  const hasSome = (/** @type {string[]} */ labels) => present.some((label) => labels.includes(label));
  const hasOnly = (/** @type {string[]} */ labels) => present.every((label) => labels.includes(label));
  /** @type {[string, boolean][]} */
  const states = [
    ["archived", entry.is_archived],
    ["canceled", entry.is_canceled],
    ["silent", isSilent(entry) && hasSome(LIVE)],
    ["running", hasSome(LIVE)],
    ["pending_failed", hasSome(["pending_failed"])],
    ["interrupted", entry.interrupted > 0],
    ["uninitialized", hasOnly(NOT_BEGUN)],
    ["ready", !hasOnly(DONE)],
    ["failed", hasSome(UNSUCCESSFUL)],
  ];
  return states.find(([, applies]) => applies)?.[0] ?? "completed";
}

/** Commands on one workflow. @param {{entry: Entry}} props */
function Menu({ entry }) {
  const offered = commandsOf(stateOf(entry), isUnderWay(entry));
  if (!offered.length) return null;
  const choose = (/** @type {any} */ event) => {
    const name = event.currentTarget.value;
    event.currentTarget.value = "";
    if (name) openAction({ name, workflowId: entry.workflow.id, onDone: () => name === "delete" && go(["w"]) });
  };
  return html`<select aria-label=${`Actions of ${entry.workflow.name}`} onChange=${choose}>
    <option value="">Actions…</option>
    ${offered.map((name) => html`<option key=${name} value=${name}>${commandKinds.value[name].title}…</option>`)}
  </select>`;
}
