// One job: its state and why, its attempts side by side, its logs, evidence, dependencies and events.

import { html } from "../vendor/ui.js";
import { isOwner } from "../core/api.js";
import { useData } from "../core/data.js";
import { countText, requestedSecondsText, requestedSizeText } from "../core/quantities.js";
import { address } from "../core/router.js";
import { classWord } from "../core/words.js";
import { NextStep } from "../parts/actions.js";
import { Copy, Duration, Empty, Name, Shown, Size, Status, Time } from "../parts/basics.js";
import { JobSteps } from "../parts/job_steps.js";
import { PlainTable } from "../parts/plain_table.js";
import { secondsOf, Usage } from "../parts/usage.js";
import { JobEvents } from "./events.js";
import { LogView } from "./log.js";

/** @typedef {{id: number, job: number, attempt: string, tab: string, stream: string}} Place */

/**
 * The address is `#/w/12/j/345/attempt/1.2/log/stderr`: attempt 2 of run 1.
 * @param {{id: number, rest: string[]}} props
 */
export function Job({ id, rest }) {
  const job = Number(rest[0]);
  const hasAttempt = rest[1] === "attempt";
  const place = { id, job, attempt: hasAttempt ? rest[2] : "", tab: (hasAttempt ? rest[3] : rest[1]) ?? "", stream: (hasAttempt ? rest[4] : "") ?? "" };
  const record = useData(`api/jobs/${job}`);
  return html`${record.data ? "" : html`<h1>Job ${job}</h1>`}<${Shown} from=${record}>${(/** @type {any} */ data) => html`<${Content} place=${place} job=${data} />`}<//>`;
}

/** @param {{place: Place, job: any}} props */
function Content({ place, job }) {
  const attempts = useData(`dash/workflows/${place.id}/jobs/${place.job}/attempts`);
  const requirements = useData(job.resource_requirements_id ? `api/resource_requirements/${job.resource_requirements_id}` : null, {}, { live: false, everyMs: 0 });
  const list = attempts.data?.attempts ?? [];
  const chosen = list.find((/** @type {any} */ attempt) => keyOf(attempt) === place.attempt) ?? list.at(-1);
  const tabs = tabsOf(job, chosen);
  const tab = tabs.some((each) => each.name === place.tab) ? place.tab : (tabs[0]?.name ?? "");
  return html`<header class="view-head">
      <p class="crumbs"><a href=${address(["w", place.id, "jobs"])}>Jobs</a> / ${place.job}</p>
      <h1><${Name} text=${job.name} /></h1><${Status} of=${job.status} />
      <${Copy} text=${job.name} label="Copy name" /><span class="grow"></span><${JobSteps} id=${place.id} job=${job} />
    </header>
    <${WhyHere} place=${place} job=${job} />
    ${list.length ? html`<${Attempts} place=${place} attempts=${list} chosen=${chosen} requirements=${requirements.data} />` : html`<${Empty} title="This job has not run." />`}
    <div class="tabs" role="tablist" aria-label="About this job" onKeyDown=${moveTab}>
      ${tabs.map(({ name, title }) => html`<a key=${name} role="tab" id=${`tab-${name}`} aria-controls="tab-panel" aria-selected=${name === tab} tabindex=${name === tab ? 0 : -1} href=${tabAddress(place, chosen, name)}>${title}</a>`)}
    </div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab}`} tabindex="0" class="panel">
      ${tab === "log" && chosen ? html`<${Logs} place=${place} attempt=${chosen} />` : ""}
      ${tab === "evidence" ? html`<${Evidence} place=${place} />` : ""}
      ${tab === "command" ? html`<${CommandTab} job=${job} requirements=${requirements.data} />` : ""}
      ${tab === "dependencies" ? html`<${Dependencies} place=${place} job=${job} />` : ""}
      ${tab === "events" ? html`<${JobEvents} id=${place.id} job=${place.job} name=${job.name} />` : ""}
    </div>`;
}

/** @param {any} job @param {any} attempt */
function tabsOf(job, attempt) {
  const isFailed = ["failed", "terminated", "pending_failed"].includes(job.status);
  return [
    ...(attempt ? [{ name: "log", title: "Log" }] : []),
    ...(isFailed && isOwner() ? [{ name: "evidence", title: "Why it failed" }] : []),
    { name: "command", title: "Command" },
    { name: "dependencies", title: "Dependencies" },
    { name: "events", title: "Events" },
  ];
}

/** @param {Place} place @param {any} attempt @param {string} tab */
const tabAddress = (place, attempt, tab) => address(attempt ? ["w", place.id, "j", place.job, "attempt", keyOf(attempt), tab] : ["w", place.id, "j", place.job, tab]);

/** @param {KeyboardEvent} event */
function moveTab(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = /** @type {HTMLElement[]} */ ([.../** @type {HTMLElement} */ (event.currentTarget).children]);
  const next = tabs[(tabs.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step + tabs.length) % tabs.length];
  next.focus();
  next.click();
  event.preventDefault();
}

/** @param {any} attempt */
const keyOf = (attempt) => `${attempt.run_id}.${attempt.attempt_id}`;

const ENDED_WELL = new Set(["completed", "running", "disabled"]);

/** Why the job does not run, or was canceled. @param {{place: Place, job: any}} props */
function WhyHere({ place, job }) {
  const explained = useData(ENDED_WELL.has(job.status) ? null : `dash/workflows/${place.id}/explain`, { job: place.job });
  const data = explained.data;
  if (!data) return null;
  const waits = data.waits_for ?? [];
  return html`<section class="card" aria-label="Why">
    <p>${sentence(data.text)}${data.root ? html` The cause is <a href=${address(["w", place.id, "j", data.root.job_id])}>${data.root.job_name}</a>: ${data.root.text}.` : ""}</p>
    ${waits.length ? html`<p>It waits for ${waits.map((/** @type {any} */ each, /** @type {number} */ index) => html`${index ? ", " : ""}<a href=${address(["w", place.id, "j", each.job_id])}>${each.job_name}</a> (${each.status ?? each.text})`)}${data.waits_for_count > waits.length ? ` and ${countText(data.waits_for_count - waits.length)} more` : ""}.</p>` : ""}
    ${data.next ? html`<${NextStep} next=${data.next} workflowId=${place.id} />` : ""}
  </section>`;
}

/** @param {string} text */
const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");

/** @param {{place: Place, attempts: any[], chosen: any, requirements: any}} props */
function Attempts({ place, attempts, chosen, requirements }) {
  const columns = [
    { title: "Attempt", show: (/** @type {any} */ each) => html`<a href=${address(["w", place.id, "j", place.job, "attempt", keyOf(each), ...(place.tab ? [place.tab] : [])])} aria-current=${each === chosen ? "true" : undefined}>${each.attempt_id} of run ${each.run_id}</a>` },
    { title: "Status", show: (/** @type {any} */ each) => html`<${Status} of=${each.status} />` },
    { title: "Ending", show: (/** @type {any} */ each) => endingText(each) },
    { title: "Node", show: (/** @type {any} */ each) => each.hostname ?? "" },
    { title: "Ended", show: (/** @type {any} */ each) => html`<${Time} at=${each.result?.completion_time} />` },
    { title: "Run time", isNumber: true, show: (/** @type {any} */ each) => html`<${Duration} seconds=${secondsOf(each.result)} />` },
    { title: "Peak memory", isNumber: true, show: (/** @type {any} */ each) => html`<${Size} bytes=${each.result?.peak_memory_bytes} />` },
    { title: "CPU", isNumber: true, show: (/** @type {any} */ each) => (each.result?.avg_cpu_percent ? `${Math.round(each.result.avg_cpu_percent)}%` : "") },
  ];
  return html`<${PlainTable} label="Attempts" rows=${attempts} columns=${columns} keyOf=${keyOf} classOf=${(/** @type {any} */ each) => (each === chosen ? "chosen" : "")} />
    <${Usage} result=${chosen?.result} requirements=${requirements} />
    ${requirements ? html`<p class="muted">Asks for ${requestText(requirements)}. <a href=${address(["w", place.id, "plots"], { job: place.job })}>Plots of its use</a></p>` : ""}`;
}

/** @param {any} attempt */
function endingText(attempt) {
  const { result } = attempt;
  if (!result) return attempt.is_live ? "runs" : "";
  return result.reason ?? `${classWord(attempt.exit_class)} ${result.return_code ?? ""}`;
}

/** @param {any} requirements */
const requestText = ({ num_cpus, memory, runtime, num_gpus }) =>
  [countText(num_cpus ?? 1, "CPU"), memory && `${requestedSizeText(memory)} memory`, num_gpus && countText(num_gpus, "GPU"), runtime && `${requestedSecondsText(runtime)} run time`].filter(Boolean).join(", ");

/** @param {{place: Place, attempt: any}} props */
function Logs({ place, attempt }) {
  const streams = Object.entries(attempt.logs ?? {}).filter(([, log]) => log.path || log.note);
  const usual = attempt.result?.return_code && attempt.logs?.stderr?.size ? "stderr" : (streams[0]?.[0] ?? "stdout");
  const stream = attempt.logs?.[place.stream] ? place.stream : usual;
  const log = attempt.logs?.[stream];
  return html`<div class="row log-streams">
      ${streams.map(([name, each]) => html`<a key=${name} class=${name === stream ? "button chosen" : "button"} aria-current=${name === stream ? "true" : undefined} href=${address(["w", place.id, "j", place.job, "attempt", keyOf(attempt), "log", name])}>${name}${each.exists ? html` <span class="muted"><${Size} bytes=${each.size} /></span>` : ""}</a>`)}
    </div>
    ${log?.exists
      ? html`<${LogView} key=${`${keyOf(attempt)} ${stream}`} base=${`dash/workflows/${place.id}/log`} which=${{ job: place.job, run: attempt.run_id, attempt: attempt.attempt_id, stream }} isLive=${attempt.is_live} />`
      : html`<${Empty} title="This log is not here."><p>${log?.note ?? "No log is known."}</p>${log?.path ? html`<p class="mono">${log.path} <${Copy} text=${log.path} label="Copy path" /></p>` : ""}<//>`}`;
}

/** @param {{place: Place}} props */
function Evidence({ place }) {
  const why = useData(`dash/workflows/${place.id}/why-failed`, { job: place.job }, { live: false, everyMs: 0 });
  return html`<${Shown} from=${why}>${(/** @type {any} */ data) => html`
    <p><span class="tag">${classWord(data.verdict)}</span> ${data.reason ?? ""}</p>
    ${data.telling_line ? html`<figure class="evidence"><pre>${data.telling_line.text}</pre><figcaption class="muted">${data.telling_line.hint ? html`${data.telling_line.hint}<br />` : ""}${data.telling_line.path}, line ${data.telling_line.line}</figcaption></figure>` : ""}
    <ul>${(data.evidence ?? []).filter((/** @type {any} */ each) => each.kind !== "log").map((/** @type {any} */ each, /** @type {number} */ index) => html`<li key=${index}>${each.text}</li>`)}</ul>
    <${NextStep} next=${data.next} workflowId=${place.id} />
  `}<//>`;
}

/** @param {{job: any, requirements: any}} props */
const CommandTab = ({ job, requirements }) => html`
  <p class="field-title">Command <${Copy} text=${job.command} /></p>
  <pre class="block">${job.command}</pre>
  ${job.invocation_script ? html`<p class="field-title">Runs by <${Copy} text=${job.invocation_script} /></p><pre class="block">${job.invocation_script}</pre>` : ""}
  ${job.environment ? html`<p class="field-title">Environment</p><pre class="block">${Object.entries(job.environment).map(([name, value]) => `${name}=${value}`).join("\n")}</pre>` : ""}
  ${requirements ? html`<p class="field-title">Asks for</p><p>${requirements.name}: ${requestText(requirements)}</p>` : ""}
`;

/** @param {{place: Place, job: any}} props */
function Dependencies({ place }) {
  const graph = useData(`api/workflows/${place.id}/views/graph`, { around: place.job, depth: 1, limit: 500 }, { live: true });
  return html`<${Shown} from=${graph}>${(/** @type {any} */ data) => {
    const here = data.nodes.findIndex((/** @type {any} */ node) => node.job_id === place.job);
    const before = data.edges.filter((/** @type {number[]} */ edge) => edge[1] === here).map((/** @type {number[]} */ edge) => data.nodes[edge[0]]);
    const after = data.edges.filter((/** @type {number[]} */ edge) => edge[0] === here).map((/** @type {number[]} */ edge) => data.nodes[edge[1]]);
    return html`<${NodeList} id=${place.id} title="Waits for" nodes=${before} none="It waits for no job." />
      <${NodeList} id=${place.id} title="Is waited for by" nodes=${after} none="No job waits for it." />
      ${data.omitted ? html`<p class="muted">${countText(data.omitted)} more are left out.</p>` : ""}
      <p><a href=${address(["w", place.id, "graph"], { around: place.job })}>Show it in the graph</a></p>`;
  }}<//>`;
}

/** @param {{id: number, title: string, nodes: any[], none: string}} props */
const NodeList = ({ id, title, nodes, none }) => html`<p class="field-title">${title}</p>
  ${nodes.length
    ? html`<ul class="nodes">${nodes.map((node) => html`<li key=${node.id}>${node.job_id ? html`<a href=${address(["w", id, "j", node.job_id])}>${node.label}</a> <${Status} of=${Object.keys(node.counts)[0] ?? ""} />` : `${node.label} (${countText(node.count)})`}</li>`)}</ul>`
    : html`<p class="muted">${none}</p>`}`;

