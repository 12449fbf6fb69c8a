// Steps of one job: run it again, exclude it, take it in again, stop it.

import { html, useState } from "../vendor/ui.js";
import { get, refreshes, send, server } from "../core/api.js";
import { Command, Failure } from "./basics.js";
import { closeDialog, DialogBox, openDialog } from "./dialog.js";
import { tell } from "./messages.js";
import { RETRIED, RetryButton } from "./retry_jobs.js";

/**
 * @typedef {object} Step
 * @property {string[]} from statuses of jobs for which it is
 * @property {string} to status that the job gets
 * @property {string} title
 * @property {string} effect
 * @property {string} done
 * @property {(job: number) => string} command
 */

/** @type {Step[]} */
const STEPS = [
  {
    from: ["uninitialized", "blocked", "ready"], to: "disabled", title: "Exclude this job",
    effect: "The job does not run. Jobs that depend on it go on waiting. It can be taken in again.",
    done: "is excluded from the workflow", command: (job) => `torc jobs cancel ${job}`,
  },
  {
    from: ["disabled"], to: "uninitialized", title: "Take this job in again",
    effect: "The job is a part of the workflow again, and is ready after the workflow is reinitialized.",
    done: "is a part of the workflow again; reinitialize makes it ready", command: (job) => `torc jobs cancel ${job} --undo`,
  },
  {
    from: ["pending", "running"], to: "pending_failed", title: "Stop this job",
    effect: "Its runner stops it. Its failure then waits for your verdict: run it again, or let it fail.",
    done: "is being stopped; its failure waits for your verdict", command: (job) => `torc jobs terminate ${job}`,
  },
];

/** The buttons that fit the status of a job. @param {{id: number, job: any}} props */
export function JobSteps({ id, job }) {
  if (RETRIED.includes(job.status)) return html`<${RetryButton} id=${id} q=${`id:${job.id}`} about=${`Job ${job.id}, ${job.name}`} label="Retry this job" />`;
  return STEPS.filter((step) => step.from.includes(job.status)).map(
    (step) => html`<button type="button" key=${step.to} disabled=${server.value.isAway} onClick=${() => openDialog(() => html`<${StepDialog} id=${id} job=${job} step=${step} />`)}>${step.title}…</button>`,
  );
}

/** @param {{id: number, job: any, step: Step}} props */
function StepDialog({ id, job, step }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const carryOut = async () => {
    if (isBusy) return; // the button keeps the focus, and so it is not disabled
    setBusy(true);
    setError(null);
    try {
      const { run_id: run } = await get(`api/workflows/${id}/status`);
      await send("PUT", `api/jobs/${job.id}/manage_status_change/${step.to}/${run}`, {});
      tell(`Job ${job.id} ${step.done}.`);
      closeDialog();
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
    refreshes.value += 1;
    setBusy(false);
  };
  const buttons = html`<button type="button" onClick=${closeDialog}>Back</button>
    <button type="button" class="primary" disabled=${server.value.isAway} aria-disabled=${isBusy} onClick=${carryOut}>${step.title}</button>`;
  return html`<${DialogBox} title=${step.title} buttons=${buttons}>
    <p>${job.name} (job ${job.id})</p>
    <p>${step.effect}</p>
    <${Failure} error=${error} />
    <p class="field-title">In a terminal</p>
    <${Command} text=${step.command(job.id)} />
  <//>`;
}
