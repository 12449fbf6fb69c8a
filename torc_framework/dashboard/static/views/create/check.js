// The last step of every way to create a workflow: check the spec, then create, and run it if wanted.

import { html, useState } from "../../vendor/ui.js";
import { send, server } from "../../core/api.js";
import { runOrder } from "../../core/orders.js";
import { countText } from "../../core/quantities.js";
import { go } from "../../core/router.js";
import { Failure } from "../../parts/basics.js";
import { tell } from "../../parts/messages.js";

/** @typedef {import("../../core/orders.js").Run} Run */

/**
 * @param {object} props
 * @param {Record<string, any>} props.options of the command `create`
 * @param {(errors: string[]) => void} [props.onErrors]
 * @param {() => void} [props.onCreated]
 */
export function Check({ options, onErrors, onCreated }) {
  const [checked, setChecked] = useState(/** @type {Run | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [busy, setBusy] = useState("");
  const [initializes, setInitializes] = useState(false);
  const attempt = async (/** @type {string} */ text, /** @type {() => Promise<void>} */ act) => {
    setBusy(text);
    setError(null);
    try {
      await act();
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
    setBusy("");
  };
  const check = () =>
    attempt("Checking…", async () => {
      const run = await runOrder({ command: "create", options, preview: true });
      setChecked(run);
      onErrors?.(errorsOf(run));
    });
  const create = (/** @type {boolean} */ runs) =>
    attempt("Creating…", async () => {
      const run = await runOrder({ command: "create", options });
      const id = run.document?.workflow_id ?? run.document?.id;
      if (run.state !== "succeeded" || !id) {
        setChecked(run);
        onErrors?.(errorsOf(run));
        return;
      }
      onCreated?.();
      tell(`Created workflow ${id}.`);
      const begun = initializes && !runs ? await runOrder({ command: "initialize", workflow_id: id }) : null;
      if (begun?.state === "failed") tell(`It is not initialized: ${begun.document?.error?.message ?? begun.error}`, { isError: true });
      if (runs) await send("POST", "dash/commands", { command: "run", workflow_id: id, wait: 0 });
      go(["w", id]);
    });
  return html`<section class="card" aria-label="Check and create">
    <p class="row">
      <button type="button" disabled=${Boolean(busy)} onClick=${check}>Check</button>
      <button type="button" disabled=${Boolean(busy) || server.value.isAway} class="primary" onClick=${() => create(false)}>Create</button>
      <button type="button" disabled=${Boolean(busy) || server.value.isAway} onClick=${() => create(true)}>Create and run here</button>
      <label class="check"><input type="checkbox" checked=${initializes} onChange=${(/** @type {any} */ event) => setInitializes(event.currentTarget.checked)} /> Initialize it, so that runners find ready jobs</label>
      <span role="status" class="muted">${busy}</span>
    </p>
    <${Failure} error=${error} />
    ${checked ? html`<${Checked} run=${checked} />` : ""}
  </section>`;
}

/** @param {Run} run @returns {string[]} */
export function errorsOf(run) {
  const errors = run.document?.errors ?? run.findings ?? [];
  if (errors.length) return errors.map((/** @type {any} */ each) => (typeof each === "string" ? each : (each.message ?? JSON.stringify(each))));
  return run.state === "failed" ? [run.document?.error?.message ?? (run.error || "The spec was refused.").trim()] : [];
}

/** @param {{run: Run}} props */
function Checked({ run }) {
  const errors = errorsOf(run);
  const { warnings = [], summary = {} } = run.document ?? {};
  return html`${errors.length
      ? html`<div class="failure" role="alert"><p>${countText(errors.length, "error")}:</p><ul>${errors.map((text, index) => html`<li key=${index}>${text}</li>`)}</ul></div>`
      : html`<p role="status">✓ The spec is right: ${summaryText(summary)}.</p>`}
    ${warnings.length ? html`<div class="warning"><ul>${warnings.map((/** @type {any} */ each, /** @type {number} */ index) => html`<li key=${index}>${typeof each === "string" ? each : each.message}</li>`)}</ul></div>` : ""}`;
}

/** @param {Record<string, any>} summary */
function summaryText(summary) {
  const parts = [
    [summary.job_count, "job"],
    [summary.file_count, "file"],
    [summary.resource_requirements_count, "kind of requirements", "kinds of requirements"],
    [summary.slurm_scheduler_count, "Slurm scheduler"],
    [summary.action_count, "action"],
  ];
  return parts.filter(([count]) => count).map(([count, noun, plural]) => countText(count, noun, plural)).join(", ");
}
