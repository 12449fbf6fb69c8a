// What a command would do, or did: as a table where its JSON has one, else as its text.

import { html } from "../vendor/ui.js";
import { countText } from "../core/quantities.js";
import { NextStep } from "./actions.js";
import { Name } from "./basics.js";
import { DocumentView } from "./document_view.js";
import { PlainTable } from "./plain_table.js";

/** @typedef {import("../core/orders.js").Run} Run */

/** @param {{run: Run}} props */
export function PreviewOf({ run }) {
  const document = run.document;
  const shown = document && TABLES[run.command]?.(document);
  const text = (run.output || run.error).trim();
  return html`<section aria-label=${run.preview ? "Preview" : "Result"}>
    <p class="field-title">${run.preview ? "This would happen. Nothing was changed yet." : "Result"}</p>
    ${shown ?? (document ? html`<${DocumentView} of=${document} />` : html`<pre>${text || "Nothing to report."}</pre>`)}
    ${!run.preview && document?.next && run.workflow_id ? html`<${NextStep} next=${document.next} workflowId=${run.workflow_id} />` : ""}
  </section>`;
}

const MOST_ROWS = 200;

/** @type {Record<string, (document: any) => any>} */
const TABLES = {
  recover: (document) => html`
    <p>${recoverText(document)}</p>
    ${document.jobs?.length ? html`<${PlainTable} label="Changes" rows=${document.jobs.slice(0, MOST_ROWS)} keyOf=${(/** @type {any} */ job) => job.job_id} columns=${RECOVER_COLUMNS} />` : ""}
    ${document.jobs?.length > MOST_ROWS ? html`<p class="muted">The first ${MOST_ROWS} of ${countText(document.jobs.length)}.</p>` : ""}
  `,
};

/** @param {any} document */
function recoverText(document) {
  const parts = [
    [document.oom_fixed, "with more memory"],
    [document.timeout_fixed, "with more time"],
    [document.retried, "again as they are"],
  ].filter(([count]) => count);
  const texts = parts.map(([count, how]) => `${countText(count)} ${how}`);
  const failed = countText(document.failed_jobs ?? 0, "failed job");
  if (!texts.length) return `Of ${failed}, none would run again: no rule fits. "Retry unknown" runs them again as they are.`;
  return `Of ${failed}, ${texts.join(", ")}. ${countText(document.reset_count ?? 0, "job")} in all run again, with those that follow.`;
}

/** @param {any} before @param {any} after */
const change = (before, after) => (after && after !== before ? html`${before ?? "—"} → <b>${after}</b>` : (before ?? ""));

const RECOVER_COLUMNS = [
  { title: "Job", show: (/** @type {any} */ job) => html`<${Name} text=${job.job_name} />` },
  { title: "Action", show: (/** @type {any} */ job) => String(job.action ?? "").replaceAll("_", " ") },
  { title: "Memory", show: (/** @type {any} */ job) => change(job.memory, job.new_memory) },
  { title: "Run time", show: (/** @type {any} */ job) => change(job.runtime, job.new_runtime) },
  { title: "CPUs", isNumber: true, show: (/** @type {any} */ job) => change(job.num_cpus, job.new_num_cpus) },
  { title: "Why", show: (/** @type {any} */ job) => job.reason },
];
