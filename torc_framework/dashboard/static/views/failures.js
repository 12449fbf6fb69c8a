// Why jobs failed: groups of failures with the same likely cause, the evidence, and what to do about them.

import { html } from "../vendor/ui.js";
import { isOwner } from "../core/api.js";
import { useData } from "../core/data.js";
import { countText } from "../core/quantities.js";
import { address } from "../core/router.js";
import { classWord } from "../core/words.js";
import { ActionButton, NextStep } from "../parts/actions.js";
import { RetryButton, retriedCount } from "../parts/retry_jobs.js";
import { Copy, Empty, Failure, Loading, Shown, Time } from "../parts/basics.js";
import { PlainTable } from "../parts/plain_table.js";
import { PendingVerdicts } from "./verdicts.js";

/** @param {{id: number}} props */
export function Failures({ id }) {
  const counts = useData(`api/workflows/${id}/job_counts`);
  return html`<header class="view-head"><h1>Failures</h1><span class="grow"></span>
      ${counts.data && retriedCount(counts.data.counts)
        ? isOwner()
          ? html`<${ActionButton} name="recover" workflowId=${id} /><${ActionButton} name="run" workflowId=${id} options=${{ retry_failed: true }} label="Retry failed jobs" />`
          : html`<${RetryButton} id=${id} q="" label="Retry failed jobs" />`
        : ""}
    </header>
    <${PendingVerdicts} id=${id} />
    <${FailureCards} id=${id} most=${50} />
    <${Endings} id=${id} />`;
}

/**
 * One cause of failures, from `torc why-failed` or from the server's groups.
 * @typedef {object} Cause
 * @property {string} kind class of the ending
 * @property {number} count
 * @property {number} canceled jobs that were canceled because of them
 * @property {string} title what tells this cause from others: the line of a log, else the ending
 * @property {string} ending exit code or signal
 * @property {{text: string, path?: string, line?: number, hint?: string | null} | null} evidence
 * @property {{text: string} | null} request
 * @property {{id: number, name: string}[]} jobs the first of them
 * @property {string} filter finds all of them
 * @property {any} next
 */

/**
 * The causes of failures, those with most jobs first.
 * @param {{id: number, most: number}} props
 */
export function FailureCards({ id, most }) {
  const failures = useData(`api/workflows/${id}/views/failures`, { limit: most });
  const why = useData(isOwner() ? `dash/workflows/${id}/why-failed` : null, {}, { everyMs: 60_000 });
  if (failures.data === null) return failures.error ? html`<${Failure} error=${failures.error} />` : html`<${Loading} />`;
  const { groups, job_count: total, retried } = failures.data;
  if (!total) {
    return html`<${Empty} title="Nothing failed."><p class="muted">${retried ? `${countText(retried, "job")} failed at first and succeeded when they were tried again.` : "No attempt has failed."}</p><//>`;
  }
  const causes = why.data?.groups?.length ? why.data.groups.map((/** @type {any} */ group) => causeOfReport(group, groups)) : groups.map(causeOfGroup);
  return html`
    ${why.isLoading ? html`<p class="loading">Reading the logs of the failed jobs…</p>` : ""}
    ${why.error ? html`<p class="muted">Without evidence from logs: ${why.error.message}</p>` : ""}
    <ul class="causes">${causes.slice(0, most).map((/** @type {Cause} */ cause, /** @type {number} */ index) => html`<${CauseCard} key=${index} id=${id} cause=${cause} total=${total} />`)}</ul>
    ${causes.length > most ? html`<p class="muted">${countText(causes.length - most, "further cause")}: <a href=${address(["w", id, "failures"])}>all failures</a>.</p>` : ""}
    ${retried ? html`<p class="muted">${countText(retried, "other job")} failed at first and succeeded when tried again.</p>` : ""}
  `;
}

/**
 * @param {any} group of `torc why-failed`
 * @param {any[]} groups of the server
 * @returns {Cause}
 */
function causeOfReport(group, groups) {
  const same = groups.find((each) => each.job_ids.includes(group.job_ids[0]) && each.count === group.failed_jobs);
  const log = group.example?.log;
  return {
    kind: group.verdict,
    count: group.failed_jobs,
    canceled: group.canceled_jobs,
    title: log?.text ?? group.reason ?? "",
    ending: group.reason ?? "",
    evidence: log ?? (group.last_lines?.[0] ? { text: group.last_lines[0] } : null),
    request: group.request,
    jobs: group.job_ids.slice(0, 5).map((/** @type {number} */ id, /** @type {number} */ index) => ({ id, name: group.job_names[index] })),
    filter: same?.filter ?? `id:${group.job_ids.slice(0, 200).join(",")}`,
    next: group.next,
  };
}

/** How the jobs of a group ended. @param {any} group */
function endingText({ signal, exit }) {
  if (signal) return `signal ${signal}`;
  return exit === null || exit === undefined ? "" : `exit code ${exit}`;
}

/** The reason that the jobs of a group share; empty where it only says how they ended. @param {any} group */
const reasonText = ({ signature }) => (/^(exit code|signal) \*$/.test(signature ?? "") ? "" : (signature ?? "").replaceAll("*", "…"));

/**
 * @param {any} group
 * @returns {Cause}
 */
function causeOfGroup(group) {
  const ending = endingText(group);
  return {
    kind: group.exit_class,
    count: group.count,
    canceled: 0,
    title: reasonText(group) || ending || "no reason is known",
    ending,
    evidence: null,
    request: null,
    jobs: group.job_ids.map((/** @type {number} */ id, /** @type {number} */ index) => ({ id, name: group.job_names[index] })),
    filter: group.filter,
    next: null,
  };
}

/** Classes of endings that a larger request prevents: there recovery raises what a job asks for. */
const GROWS = new Set(["oom", "timeout"]);

/** Whether the next step is to retry all failed jobs. @param {any} next */
const isRetry = (next) => /^torc run \d+ --retry-failed$/.test(next?.command ?? "");

/** @param {{id: number, cause: Cause, total: number}} props */
function CauseCard({ id, cause, total }) {
  const share = cause.count === total ? (total === 1 ? "The only failed job" : "All failed jobs") : `${countText(cause.count)} of ${countText(total, "failed job")}`;
  return html`<li class="cause">
    <h3><span class="tag">${classWord(cause.kind)}</span> ${countText(cause.count, "job")}: ${cause.title}</h3>
    <p class="muted">${share}${cause.ending && cause.ending !== cause.title ? `, ${cause.ending}` : ""}.${cause.canceled ? ` ${countText(cause.canceled, "further job")} ${cause.canceled === 1 ? "was" : "were"} canceled because of ${cause.count === 1 ? "it" : "them"}.` : ""}</p>
    ${cause.evidence ? html`<${Evidence} evidence=${cause.evidence} />` : ""}
    <p>Jobs: ${cause.jobs.map((job, index) => html`${index ? ", " : ""}<a key=${job.id} href=${address(["w", id, "j", job.id])}>${job.name}</a>`)}${cause.count > cause.jobs.length ? html`, <a href=${address(["w", id, "jobs"], { q: cause.filter })}>all ${countText(cause.count)}</a>` : ""}</p>
    ${GROWS.has(cause.kind) ? html`<p class="row"><${ActionButton} name="recover" workflowId=${id} label="Recover with more" look="primary" /></p>` : ""}
    ${cause.count < total && isRetry(cause.next)
      ? html`<div class="next">${cause.next.first ? html`<p>${cause.next.first}</p>` : ""}
          <p class="row"><${RetryButton} id=${id} q=${cause.filter} about=${`The jobs that failed with: ${cause.title}`} label=${cause.count === 1 ? "Retry this job" : `Retry these ${countText(cause.count, "job")}`} look="primary" /></p></div>`
      : html`<${NextStep} next=${cause.next} workflowId=${id} />`}
  </li>`;
}

/** @param {{evidence: {text: string, path?: string, line?: number, hint?: string | null}}} props */
const Evidence = ({ evidence }) => html`<figure class="evidence">
  <pre>${evidence.text}</pre>
  ${evidence.path ? html`<figcaption class="muted">${evidence.hint ? html`${evidence.hint}<br />` : ""}${evidence.path}, line ${evidence.line} <${Copy} text=${evidence.path} label="Copy path" /></figcaption>` : ""}
</figure>`;

/** The endings of failed jobs as a table: does a node stand out? @param {{id: number}} props */
function Endings({ id }) {
  const from = useData(`api/workflows/${id}/views/failures`, { limit: 100 });
  return html`<${Shown} from=${from}>${(/** @type {any} */ data) =>
    data.groups.length
      ? html`<h2>By ending, node and group</h2>
          <${PlainTable} label="Endings of failed jobs" rows=${data.groups} columns=${[
            { title: "Jobs", isNumber: true, show: (/** @type {any} */ group) => html`<a href=${address(["w", id, "jobs"], { q: group.filter })}>${countText(group.count)}</a>` },
            { title: "Ending", show: (/** @type {any} */ group) => classWord(group.exit_class) },
            { title: "Exit", isNumber: true, show: (/** @type {any} */ group) => group.exit ?? (group.signal ? `signal ${group.signal}` : "") },
            ...(data.groups.some(reasonText) ? [{ title: "Reason", show: reasonText }] : []),
            { title: "Groups", show: (/** @type {any} */ group) => numbersText(group.groups, group.group_count) },
            { title: "Nodes", show: (/** @type {any} */ group) => numbersText(group.hosts, group.host_count) },
            { title: "First", show: (/** @type {any} */ group) => html`<${Time} at=${group.first_ended_at} />` },
            { title: "Last", show: (/** @type {any} */ group) => html`<${Time} at=${group.last_ended_at} />` },
          ]} />`
      : ""}<//>`;
}

const MOST_NAMED = 3;

/** @param {Record<string, number>} numbers @param {number} all */
function numbersText(numbers, all) {
  const named = Object.entries(numbers).slice(0, MOST_NAMED);
  const rest = all - named.length;
  return `${named.map(([name, count]) => `${name} (${countText(count)})`).join(", ")}${rest > 0 ? `, ${countText(rest)} more` : ""}`;
}

