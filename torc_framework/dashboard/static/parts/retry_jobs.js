// Running chosen failed jobs again: those that a filter finds, after a preview of what else that changes.

import { html, useEffect, useState } from "../vendor/ui.js";
import { get, refreshes, send, server } from "../core/api.js";
import { commandKinds, runOrder } from "../core/orders.js";
import { countText } from "../core/quantities.js";
import { Command, Failure } from "./basics.js";
import { closeDialog, DialogBox, openDialog } from "./dialog.js";
import { tell } from "./messages.js";
import { rowsOf } from "./row_pages.js";

/** Statuses of jobs that can be retried. */
export const RETRIED = ["failed", "terminated", "pending_failed"];
const PAGE_JOBS = 1000;
const ASKED_AGAIN_MS = 3000;

/** @param {Record<string, number>} counts by status */
export const retriedCount = (counts) => RETRIED.reduce((sum, label) => sum + (counts[label] ?? 0), 0);

/**
 * A button that retries the failed jobs that a filter finds.
 * @param {{id: number, q: string, label: string, about?: string, look?: string}} props `about`: what the jobs have in
 *   common; by default the filter
 */
export const RetryButton = ({ id, q, label, about = "", look = "" }) =>
  html`<button type="button" class=${look} disabled=${server.value.isAway} onClick=${() => openDialog(() => html`<${RetryDialog} id=${id} q=${q} about=${about} />`)}>${label}…</button>`;

/**
 * What retrying would do, of the server's dry run.
 * @typedef {object} Plan
 * @property {any} order
 * @property {number} count jobs that are retried
 * @property {number} following jobs that follow them and run again too
 * @property {number} others failed jobs that stay as they are
 */

/** @param {{id: number, q: string, about: string}} props */
function RetryDialog({ id, q, about }) {
  const [plan, setPlan] = useState(/** @type {Plan | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const canRun = Boolean(commandKinds.value.run);
  const [runs, setRuns] = useState(canRun);
  useEffect(() => {
    if (plan) return undefined; // what was shown is what is carried out
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      try {
        const found = await planOf(id, q);
        if (!isShown) return;
        setPlan(found);
        setError(null);
      } catch (caught) {
        if (!isShown) return;
        setError(/** @type {Error} */ (caught));
        timer = setTimeout(ask, ASKED_AGAIN_MS); // a runner that is active now will leave
      }
    };
    ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [plan]);
  const retry = async () => {
    if (!plan || isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await send("POST", `api/workflows/${id}/recoveries`, plan.order);
      if (runs) await runOrder({ command: "run", workflow_id: id });
      tell(`${countText(plan.count, "job")} ${runs ? "will run again; the run has started." : "will run again with the next run of this workflow."}`);
      closeDialog();
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
    refreshes.value += 1;
    setBusy(false);
  };
  const buttons = html`<button type="button" onClick=${closeDialog}>Back</button>
    <button type="button" class="primary" disabled=${!plan?.count || server.value.isAway} aria-disabled=${isBusy} onClick=${retry}>${plan?.count ? `Retry ${countText(plan.count, "job")}` : "Retry"}</button>`;
  return html`<${DialogBox} title="Retry failed jobs" buttons=${buttons}>
    <p>${about || html`The failed jobs ${q ? html`that match the filter <code>${q}</code>` : "of this workflow"}`}</p>
    ${plan ? html`<${PlanText} plan=${plan} />` : error ? "" : html`<p class="loading" role="status">Asking what it would do…</p>`}
    ${plan?.count && canRun ? html`<label class="check"><input type="checkbox" checked=${runs} onChange=${(/** @type {any} */ event) => setRuns(event.currentTarget.checked)} /> Run the workflow here at once</label>` : ""}
    ${isBusy ? html`<p class="loading" role="status">Under way…</p>` : ""}
    <${Failure} error=${error} />
    ${plan?.count ? html`<p class="muted">There is no undo; the logs and results of the earlier attempts are kept.</p>` : ""}
    <p class="field-title">In a terminal</p>
    <p class="muted">This command runs all failed jobs again; only this page and the API retry a choice of them.</p>
    <${Command} text=${`torc run ${id} --retry-failed`} />
  <//>`;
}

/** @param {{plan: Plan}} props */
function PlanText({ plan: { count, following, others } }) {
  if (!count) return html`<p>No failed job matches: nothing would run again.</p>`;
  return html`<p class="field-title">This would happen. Nothing was changed yet.</p>
    <ul>
      <li>${countText(count, "failed job")} ${count === 1 ? "runs" : "run"} again, with the same requests.</li>
      ${following ? html`<li>${countText(following, "job")} that ${following === 1 ? "follows" : "follow"} from them ${following === 1 ? "runs" : "run"} again too.</li>` : ""}
      ${others ? html`<li>${countText(others, "other failed job")} ${others === 1 ? "stays" : "stay"} failed.</li>` : ""}
    </ul>`;
}

/**
 * Ask the server what retrying would do.
 * @param {number} id
 * @param {string} q
 * @returns {Promise<Plan>}
 */
async function planOf(id, q) {
  const { run_id: run } = await get(`api/workflows/${id}/status`);
  const dryRun = (/** @type {any[]} */ repairs) => send("POST", `api/workflows/${id}/recoveries`, { run_id: run, repairs, dry_run: true });
  await dryRun([]); // refuses before any jobs are read
  const [{ counts }, jobs] = await Promise.all([get(`api/workflows/${id}/job_counts`), failedJobs(id, q)]);
  const repairs = jobs.map(({ id: job, attempt }) => ({ job_id: job, attempt_id: attempt, reason: "chosen by a person", decided_by: "dashboard" }));
  const order = { run_id: run, repairs };
  if (!jobs.length) return { order, count: 0, following: 0, others: 0 };
  const receipt = await dryRun(repairs);
  return { order, count: jobs.length, following: receipt.reset_count - jobs.length, others: retriedCount(counts) - jobs.length };
}

/**
 * Return id and attempt of the failed jobs that a filter finds.
 * @param {number} id
 * @param {string} q
 */
async function failedJobs(id, q) {
  /** @type {Record<string, any>[]} */
  const found = [];
  const filter = `${q} status:${RETRIED.join(",")}`.trim();
  for (let total = 1; found.length < total; ) {
    const page = await get(`api/workflows/${id}/views/jobs`, { q: filter, fields: "id,attempt", sort: "id", offset: found.length, limit: PAGE_JOBS });
    const rows = rowsOf(page.columns);
    if (!rows.length) break; // others have ended meanwhile
    found.push(...rows);
    total = page.total;
  }
  return found;
}
