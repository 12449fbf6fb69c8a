// Failures that wait for a person's verdict: run again, or fail for good.

import { html, useState } from "../vendor/ui.js";
import { isOwner } from "../core/api.js";
import { useData } from "../core/data.js";
import { countText } from "../core/quantities.js";
import { address } from "../core/router.js";
import { ActionButton } from "../parts/actions.js";
import { Name } from "../parts/basics.js";
import { PlainTable } from "../parts/plain_table.js";

const TAIL_LINES = 3;

/** @param {{id: number}} props */
export function PendingVerdicts({ id }) {
  const from = useData(isOwner() ? `dash/workflows/${id}/pending` : null);
  const [chosen, setChosen] = useState(/** @type {Set<number>} */ (new Set()));
  const jobs = from.data?.pending_failed ?? [];
  if (!jobs.length) return null;
  const toggle = (/** @type {number} */ job) => {
    const next = new Set(chosen);
    if (!next.delete(job)) next.add(job);
    setChosen(next);
  };
  const ids = jobs.map((/** @type {any} */ job) => job.job_id).filter((/** @type {number} */ job) => chosen.has(job));
  const options = ids.length ? { jobs: ids } : {};
  const what = ids.length ? countText(ids.length, "chosen job") : "all";
  return html`<section class="card" aria-labelledby="verdicts">
    <h2 id="verdicts">${countText(jobs.length, "failure")} ${jobs.length === 1 ? "waits" : "wait"} for your verdict</h2>
    <${PlainTable} label="Failures that wait for a verdict" rows=${jobs} keyOf=${(/** @type {any} */ job) => job.job_id} columns=${[
      { title: "", show: (/** @type {any} */ job) => html`<input type="checkbox" aria-label=${`Choose ${job.name}`} checked=${chosen.has(job.job_id)} onChange=${() => toggle(job.job_id)} />` },
      { title: "Job", show: (/** @type {any} */ job) => html`<a href=${address(["w", id, "j", job.job_id])}><${Name} text=${job.name} /></a>` },
      { title: "Attempt", isNumber: true, show: (/** @type {any} */ job) => job.attempt_id },
      { title: "Ending", show: (/** @type {any} */ job) => job.reason ?? `exit code ${job.return_code}` },
      { title: "Last lines", show: (/** @type {any} */ job) => html`<pre class="tail-lines">${(job.stderr_tail ?? "").trim().split("\n").slice(-TAIL_LINES).join("\n")}</pre>` },
    ]} />
    <p class="row">
      <${ActionButton} name="pending_retry" workflowId=${id} options=${options} label=${`Run ${what} again`} look="primary" />
      <${ActionButton} name="pending_fail" workflowId=${id} options=${options} label=${`Fail ${what}`} />
    </p>
  </section>`;
}

