// One workflow: is it well, how far, when done, what failed and why, what to do now.

import { html } from "../vendor/ui.js";
import { withParams } from "../core/api.js";
import { useData } from "../core/data.js";
import { countText, durationText } from "../core/quantities.js";
import { address } from "../core/router.js";
import { clockText, exactTime, milliseconds, timeText } from "../core/times.js";
import { ActionButton, commandsOf, NextStep } from "../parts/actions.js";
import { Name, Shown, State, StatusBar, StatusCounts, Time } from "../parts/basics.js";
import { PlainTable } from "../parts/plain_table.js";
import { FailureCards } from "./failures.js";
import { RunnerTable } from "./runners.js";

/** @param {{id: number}} props */
export function Overview({ id }) {
  const overview = useData(`dash/workflows/${id}/overview`);
  return html`${overview.data ? "" : html`<h1>Workflow ${id}</h1>`}<${Shown} from=${overview}>${(/** @type {any} */ data) => html`<${Content} id=${id} data=${data} />`}<//>`;
}

/** @param {{id: number, data: any}} props */
function Content({ id, data }) {
  const { progress } = data;
  const failed = (data.job_counts.failed ?? 0) + (data.job_counts.terminated ?? 0) + (data.job_counts.pending_failed ?? 0);
  const waits = ["ready", "blocked", "uninitialized"].some((label) => data.job_counts[label]);
  return html`
    <header class="view-head">
      <h1><${Name} text=${data.name} /></h1>
      <${State} of=${data.status} />
      <span class="grow"></span>
      <${WorkflowActions} id=${id} data=${data} />
    </header>
    ${data.description ? html`<p class="muted">${data.description}</p>` : ""}
    <section class="card" aria-label="State">
      <p class="headline" role="status">${data.headline}</p>
      <${Lost} data=${data} />
      <${End} data=${data} />
      <${StatusBar} counts=${data.job_counts} />
      <${StatusCounts} counts=${data.job_counts} href=${(/** @type {string} */ label) => address(["w", id, "jobs"], { q: `status:${label}` })} />
    </section>
    <section class="card" aria-labelledby="now"><h2 id="now">What to do now</h2>
      ${isFollowed(data) ? html`<p>Nothing. Jobs run, and this page follows them.</p>` : data.next ? html`<${NextStep} next=${data.next} workflowId=${id} />` : html`<p>Nothing. ${data.status === "completed" ? "All jobs are done." : ""}</p>`}
    </section>
    ${failed ? html`<section class="card" aria-labelledby="failures"><h2 id="failures">Why jobs failed <a class="more" href=${address(["w", id, "failures"])}>all failures</a></h2><${FailureCards} id=${id} most=${3} /></section>` : ""}
    <section class="card" aria-labelledby="progress"><h2 id="progress">Progress by stage</h2><${Stages} id=${id} progress=${progress} /></section>
    ${waits ? html`<section class="card" aria-labelledby="waiting"><h2 id="waiting">What waits, and why</h2><${Waiting} id=${id} /></section>` : ""}
    ${data.status === "completed" && !data.active_runners ? "" : html`<section class="card" aria-labelledby="runners"><h2 id="runners">Runners <a class="more" href=${address(["w", id, "runners"])}>all runners</a></h2><${RunnerTable} id=${id} isShort /></section>`}
    <p class="muted">Created <${Time} at=${data.timestamp} /> by ${data.user}, run ${data.run_id}${data.started_at ? html`, started <${Time} at=${data.started_at} />` : ""}${data.duration_s ? `, took ${durationText(data.duration_s)}` : ""}.</p>
  `;
}

/** Whether the next step is only to watch, which this page does. @param {any} data */
const isFollowed = (data) => /^torc watch \d+$/.test(data.next?.command ?? "");

/** What became of the jobs of runners that are known to be dead, where no other runner is left. @param {{data: any}} props */
function Lost({ data }) {
  const { running = 0, pending = 0 } = data.progress.overview.counts;
  if (data.runners.length || !(running + pending)) return "";
  const [was, it] = running + pending === 1 ? ["was", "It counts"] : ["were", "They count"];
  return html`<p>${countText(running + pending, "job")} ${was} with a runner that is dead. ${it} as terminated here; the next runner takes ${running + pending === 1 ? "it" : "them"} over.</p>`;
}

/** When the workflow will be done or what makes that unknown, and how fast it goes. @param {{data: any}} props */
function End({ data }) {
  const { estimate, throughput, at } = data.progress;
  const recent = throughput.find((/** @type {any} */ each) => each.completed + each.failed > 0);
  const rate = recent ? `${ratedText(recent.per_minute)} over the last ${durationText(recent.window_s)}.` : "";
  if (!estimate) return data.end_unknown ? html`<p>End unknown: ${data.end_unknown}. ${rate}</p>` : "";
  const from = milliseconds(at) ?? Date.now();
  const bounds = [estimate.least_seconds, estimate.most_seconds].map((seconds) => clockText(from + 1000 * seconds));
  const range = bounds[0] === bounds[1] ? "" : ` (between ${bounds[0]} and ${bounds[1]} with 80% probability)`;
  return html`<p title=${`${exactTime(estimate.ends_at)}, from ${countText(estimate.samples, "ended attempt")}`}>
    Done about <b>${timeText(estimate.ends_at)}</b>, in ${durationText(estimate.seconds)}${range}. ${rate}
  </p>`;
}

/** @param {number} perMinute */
function ratedText(perMinute) {
  if (perMinute >= 10) return `${countText(Math.round(perMinute))} jobs a minute`;
  if (perMinute >= 1) return `${perMinute.toFixed(1)} jobs a minute`;
  return `${(perMinute * 60).toFixed(1)} jobs an hour`;
}

const MOST_GROUPS = 30;

/** @param {{id: number, progress: any}} props */
function Stages({ id, progress }) {
  const groups = progress.groups.slice(0, MOST_GROUPS);
  const columns = [
    { title: "Stage", isNumber: true, show: (/** @type {any} */ group) => (group.last_stage > group.stage ? `${group.stage}–${group.last_stage}` : group.stage) },
    { title: "Jobs", show: (/** @type {any} */ group) => html`<a href=${address(["w", id, "jobs"], { q: groupFilter(group) })}><${Name} text=${group.count === 1 ? group.first_name : group.group} /></a>` },
    { title: "Number", isNumber: true, show: (/** @type {any} */ group) => countText(group.count) },
    { title: "Progress", show: (/** @type {any} */ group) => html`<${StatusBar} counts=${group.counts} />` },
    { title: "Done", isNumber: true, show: (/** @type {any} */ group) => countText(group.counts.completed ?? 0) },
    { title: "Failed", isNumber: true, show: (/** @type {any} */ group) => countText((group.counts.failed ?? 0) + (group.counts.terminated ?? 0)) },
    { title: "Running", isNumber: true, show: (/** @type {any} */ group) => countText(group.counts.running ?? 0) },
  ];
  const rest = progress.group_count - groups.length;
  return html`<${PlainTable} label="Progress by stage and group" columns=${columns} rows=${groups} keyOf=${(/** @type {any} */ group) => `${group.stage} ${group.group}`} />
    ${rest > 0 ? html`<p class="muted">${countText(rest, "further group")}: <a href=${address(["w", id, "graph"])}>graph</a>.</p>` : ""}`;
}

/** The filter that finds the jobs of a group, in its stage or, where it stands for many stages, in all. @param {{stage?: number, last_stage?: number, group: string}} of */
export const groupFilter = ({ stage = 0, last_stage = stage, group }) => `${stage && last_stage === stage ? `stage:${stage} ` : ""}group:${quoted(group)}`;

/** Write a value of the filter language. @param {string} text */
export const quoted = (text) => (/^[\w#.{}-]+$/.test(text) ? text : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`);

/** @param {{id: number}} props */
function Waiting({ id }) {
  const explained = useData(`dash/workflows/${id}/explain`);
  return html`<${Shown} from=${explained}>${(/** @type {any} */ data) => {
    const groups = data.groups.filter((/** @type {any} */ group) => !["failed", "terminated", "completed", "running"].includes(group.status));
    if (!groups.length) return html`<p class="muted">Nothing waits.</p>`;
    return html`<ul class="reasons">${groups.map(
      (/** @type {any} */ group, /** @type {number} */ index) => html`<li key=${index} class=${group.is_problem ? "problem" : ""}>
        <a href=${address(["w", id, "jobs"], { q: `status:${group.status}` })}>${countText(group.count, "job")}</a>: ${group.text.replace(/^it /, group.count === 1 ? "it " : "each ")}.
        ${group.root ? html` <span class="muted">(<a href=${address(["w", id, "j", group.root.job_id])}>${group.root.job_name}</a>: ${group.root.text})</span>` : ""}
      </li>`,
    )}</ul>`;
  }}<//>`;
}

/** Commands that fit the state of a workflow. @param {{id: number, data: any}} props */
function WorkflowActions({ id, data }) {
  const names = commandsOf(data.is_archived ? "archived" : data.status, data.active_runners + data.queued_allocations > data.lost_runners.length);
  return html`<span class="row"><a class="button quiet" href=${withParams(`api/workflows/${id}/export`, { include_results: true })} download=${`workflow-${id}.json`}>Export</a>
    ${names.filter((name) => name !== "reset_status").map((name) => html`<${ActionButton} key=${name} name=${name} workflowId=${id} look=${name === "delete" ? "quiet" : ""} />`)}</span>`;
}
