// What a command would do, or did: in sentences and as a table where its JSON has one, else as its text.

import { html } from "../vendor/ui.js";
import { countText, requestedSecondsText, requestedSizeText } from "../core/quantities.js";
import { NextStep } from "./actions.js";
import { Name } from "./basics.js";
import { DocumentView } from "./document_view.js";
import { PlainTable } from "./plain_table.js";

/** @typedef {import("../core/orders.js").Run} Run */
/** @typedef {(more: Record<string, any>) => void} PreviewWith */

/** @param {{run: Run, onPreviewWith: PreviewWith}} props */
export function PreviewOf({ run, onPreviewWith }) {
  const document = run.document;
  const shown = document && SHOWN[run.command]?.(document, onPreviewWith);
  const text = (run.output || run.error).trim();
  return html`<section aria-label=${run.preview ? "Preview" : "Result"}>
    <p class="field-title">${run.preview ? "This would happen. Nothing was changed yet." : "Result"}</p>
    ${shown ?? (document ? html`<${DocumentView} of=${document} />` : html`<pre>${text || "Nothing to report."}</pre>`)}
    ${!run.preview && document?.next && run.workflow_id ? html`<${NextStep} next=${document.next} workflowId=${run.workflow_id} />` : ""}
  </section>`;
}

/** Whether a preview says that no job would run again. @param {Run} run */
export const runsNothing = (run) => run.command === "recover" && run.document && !run.document.jobs?.some(isRetried);

const MOST_ROWS = 200;
const MOST_REASONS = 8;

/** What a preview shows, by the command. @type {Record<string, (document: any, onPreviewWith: PreviewWith) => any>} */
const SHOWN = {
  recover: (document, onPreviewWith) => html`<${Recovery} document=${document} onPreviewWith=${onPreviewWith} />`,
  reinitialize: (document) => html`<p>${reinitializeText(document)}</p>${document.job_count ? html`<${DocumentView} of=${{ jobs: document.jobs }} />` : ""}`,
  sync_status: (document) => html`<p>${syncText(document)}</p>${document.jobs?.length ? html`<${DocumentView} of=${{ jobs: document.jobs, notes: document.notes }} />` : ""}`,
  initialize: (document) => html`<p>${initializeText(document)}</p>${document.safe ? "" : html`<${DocumentView} of=${{ missing_input_files: document.missing_input_files, missing_user_data: document.missing_user_data, existing_output_files: document.existing_output_files }} />`}`,
};

/** @param {any} document */
function reinitializeText({ job_count: changed = 0, reset_count: reset = 0 }) {
  if (!changed && !reset) return "No job would run again: no input of a completed job has changed, and none is left to initialize. Failed jobs stay failed; Retry failed jobs runs them again.";
  return `${countText(changed, "job")} ${changed === 1 ? "has" : "have"} changed inputs or no result yet. ${countText(reset, "job")} in all ${reset === 1 ? "runs" : "run"} again, with those that follow.`;
}

/** @param {any} document */
function syncText({ jobs_failed: failed = 0, jobs = [] }) {
  const count = failed || jobs.length;
  return count ? `${countText(count, "job")} of lost runners ${count === 1 ? "becomes" : "become"} failed.` : "No job is held by a lost runner: nothing would change.";
}

/** @param {any} document */
function initializeText({ safe: isSafe, missing_input_file_count: missing = 0, missing_user_data: data = [], existing_output_file_count: outputs = 0 }) {
  if (isSafe) return "All inputs are there. Jobs that wait for no other job become ready to run.";
  const parts = [
    missing && `${countText(missing, "input file")} ${missing === 1 ? "is" : "are"} missing`,
    data.length && `${countText(data.length, "input of user data", "inputs of user data")} ${data.length === 1 ? "is" : "are"} missing`,
    outputs && `${countText(outputs, "output file")} of earlier runs would be deleted`,
  ];
  return `${parts.filter(Boolean).join("; ")}.`;
}

/** @param {any} job */
const isRetried = (job) => RETRIES.has(job.action);
const RETRIES = new Set(["retry"]);

/** @param {{document: any, onPreviewWith: PreviewWith}} props */
function Recovery({ document, onPreviewWith }) {
  const jobs = document.jobs ?? [];
  const again = jobs.filter(isRetried);
  const left = jobs.filter((/** @type {any} */ job) => !isRetried(job));
  const deferred = left.filter((/** @type {any} */ job) => job.action === "defer").length;
  return html`
    <p>${recoverText(document, again.length)}</p>
    ${again.length ? html`<${PlainTable} label="Changes" rows=${again.slice(0, MOST_ROWS)} keyOf=${(/** @type {any} */ job) => job.job_id} columns=${RECOVER_COLUMNS} />` : ""}
    ${again.length > MOST_ROWS ? html`<p class="muted">The first ${MOST_ROWS} of ${countText(again.length)}.</p>` : ""}
    ${left.length ? html`<p class="field-title">${countText(left.length, "job")} ${left.length === 1 ? "stays" : "stay"} failed</p>
      <ul>${reasonsOf(left).slice(0, MOST_REASONS).map(([reason, count]) => html`<li key=${reason}>${countText(count)}: ${reason}</li>`)}</ul>` : ""}
    ${deferred && document.dry_run !== false ? html`<p class="row"><button type="button" onClick=${() => onPreviewWith({ retry_unknown: true })}>Run ${deferred === 1 ? "it" : `these ${countText(deferred)}`} again too, unchanged</button></p>` : ""}
  `;
}

/** @param {any[]} jobs @returns {[string, number][]} */
function reasonsOf(jobs) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { reason } of jobs) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort((first, second) => second[1] - first[1]);
}

/** @param {any} document @param {number} again */
function recoverText(document, again) {
  const parts = [
    [document.oom_fixed, "with more memory"],
    [document.timeout_fixed, "with more time"],
  ].filter(([count]) => count);
  const failed = countText(document.failed_jobs ?? 0, "failed job");
  if (!again) return `Of ${failed}, none runs again: no failure comes from too little memory or time. A larger request does not prevent these failures; correct what the logs name, then run the jobs again.`;
  const texts = parts.map(([count, how]) => `${countText(count)} ${how}`);
  const all = document.reset_count ? ` With the jobs that follow, ${countText(document.reset_count, "job")} ${document.reset_count === 1 ? "is" : "are"} made ready.` : "";
  return `Of ${failed}, ${countText(again)} ${again === 1 ? "runs" : "run"} again${texts.length ? `: ${texts.join(", ")}` : ", unchanged"}.${all}`;
}

/** @param {string} before @param {string} after */
const change = (before, after) => (after && after !== before ? html`${before || "—"} → <b>${after}</b>` : before);

const RECOVER_COLUMNS = [
  { title: "Job", show: (/** @type {any} */ job) => html`<${Name} text=${job.job_name} />` },
  { title: "Memory", show: (/** @type {any} */ job) => change(requestedSizeText(job.memory), requestedSizeText(job.new_memory)) },
  { title: "Run time", show: (/** @type {any} */ job) => change(requestedSecondsText(job.runtime), requestedSecondsText(job.new_runtime)) },
  { title: "CPUs", isNumber: true, show: (/** @type {any} */ job) => change(String(job.num_cpus ?? ""), String(job.new_num_cpus ?? "")) },
  { title: "Why", show: (/** @type {any} */ job) => job.reason },
];
