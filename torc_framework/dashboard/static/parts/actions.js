// Buttons that run commands of torc: each says what it does, shows the equal command, and a preview where there is one.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { refreshes, server } from "../core/api.js";
import { address, route } from "../core/router.js";
import { commandKinds, orderOf, runOrder, textOf } from "../core/orders.js";
import { Command, Failure } from "./basics.js";
import { closeDialog, DialogBox, openDialog } from "./dialog.js";
import { tell } from "./messages.js";
import { OptionFields } from "./option_fields.js";
import { PreviewOf } from "./previews.js";

/** @typedef {import("../core/orders.js").Run} Run */

/**
 * A button that opens the dialog of a command; nothing where the reader may not run it.
 * @param {object} props
 * @param {string} props.name
 * @param {number} [props.workflowId]
 * @param {Record<string, any>} [props.options] what is chosen at first
 * @param {string} [props.label]
 * @param {string} [props.look] class of the button
 * @param {(run: Run) => void} [props.onDone]
 */
export function ActionButton({ name, workflowId, options = {}, label, look = "", onDone }) {
  const kind = commandKinds.value[name];
  if (!kind) return null;
  const open = () => openAction({ name, workflowId, options, onDone });
  return html`<button type="button" class=${look} disabled=${server.value.isAway} onClick=${open}>${label ?? kind.title}…</button>`;
}

/**
 * The next step that the server names: a button if torc-dash can run it, and the command.
 * @param {{next: {command: string, why: string, first: string | null} | null, workflowId: number}} props
 */
export function NextStep({ next, workflowId }) {
  if (!next?.command) return null;
  const order = orderOf(next.command, workflowId);
  const view = viewOf(next.command, workflowId);
  if (view?.isHere) return null; // this view shows what the command would print
  return html`<div class="next">
    ${next.first ? html`<p>${next.first}</p>` : ""}
    <p class="row">
      ${order ? html`<${ActionButton} name=${order.command} workflowId=${workflowId} options=${order.options} label=${order.options?.retry_failed ? "Retry failed jobs" : undefined} look="primary" />` : ""}
      ${view ? html`<a class="button primary" href=${view.to}>${view.title}</a>` : ""}
      <${Command} text=${next.command} />
    </p>
    <p class="muted">This command ${next.why}.</p>
  </div>`;
}

/** Commands whose answer is read in their dialog. */
const REPORTS = new Set(["execution_plan", "slurm_accounting", "slurm_logs", "utilization"]);

/** Commands that only show something, and the views that show the same. @type {Record<string, {title: string, view: string}>} */
const VIEWS = {
  "why-failed": { title: "See why", view: "failures" },
  pending: { title: "Decide", view: "failures" },
  explain: { title: "See why", view: "" },
  results: { title: "See the results", view: "data/results" },
};

/**
 * Return the view that shows what a command prints.
 * @param {string} command
 * @param {number} workflowId
 */
function viewOf(command, workflowId) {
  const found = VIEWS[command.split(" ")[1]];
  if (!found) return null;
  return { isHere: route.value.path.slice(2).join("/") === found.view, title: found.title, to: address(["w", workflowId, ...found.view.split("/").filter(Boolean)]) };
}

/** @param {{name: string, workflowId?: number, options?: Record<string, any>, onDone?: (run: Run) => void}} request */
export function openAction(request) {
  openDialog(() => html`<${ActionDialog} ...${request} />`);
}

/** @param {{name: string, workflowId?: number, options: Record<string, any>, onDone?: (run: Run) => void}} props */
function ActionDialog({ name, workflowId, options: initial, onDone }) {
  const kind = commandKinds.value[name];
  const [options, setOptions] = useState(initial);
  const [text, setText] = useState("");
  const [run, setRun] = useState(/** @type {Run | null} */ (null));
  const [impact, setImpact] = useState(/** @type {Run | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const order = { command: name, workflow_id: workflowId, options };
  const key = JSON.stringify(options);

  useEffect(() => {
    let isShown = true;
    const timer = setTimeout(async () => {
      try {
        const described = await textOf(order);
        if (isShown) setText(described);
        if (isShown) setError(null);
      } catch (caught) {
        if (isShown) setError(/** @type {Error} */ (caught));
      }
    }, 150);
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [key]);

  useEffect(() => {
    let isShown = true;
    if (kind.preview === "impact") {
      runOrder({ ...order, preview: true }).then(
        (preview) => isShown && setImpact(preview),
        (caught) => isShown && setError(caught),
      );
    }
    return () => {
      isShown = false;
    };
  }, [key]);

  const start = async (/** @type {boolean} */ preview) => {
    setBusy(true);
    setError(null);
    try {
      const ended = await runOrder({ ...order, preview }, setRun);
      setRun(ended);
      if (!preview) finish(ended);
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
    setBusy(false);
  };
  const finish = (/** @type {Run} */ ended) => {
    refreshes.value += 1;
    if (ended.state === "failed" || REPORTS.has(name)) return;
    tell(ended.state === "running" ? `${kind.title}: started. It goes on in the background.` : `${kind.title}: done.`);
    onDone?.(ended);
    closeDialog();
  };

  const isPreviewed = run?.preview && run.state === "succeeded";
  const buttons = html`
    <button type="button" onClick=${closeDialog}>Cancel</button>
    ${kind.preview === "dry_run" ? html`<button type="button" disabled=${isBusy} class=${isPreviewed ? "" : "primary"} onClick=${() => start(true)}>Preview</button>` : ""}
    <button type="button" disabled=${isBusy || server.value.isAway} class=${kind.destroys ? "danger" : kind.preview !== "dry_run" || isPreviewed ? "primary" : ""} onClick=${() => start(false)}>${kind.title}</button>
  `;
  return html`<${DialogBox} title=${kind.title} buttons=${buttons}>
    ${impact ? html`<p class=${kind.destroys ? "warning" : ""}>${(impact.sentences ?? []).join(" ")}</p>` : ""}
    <div class="options"><${OptionFields} options=${kind.options} values=${options} onChange=${setOptions} /></div>
    ${text ? html`<p class="field-title">The same in a terminal</p><${Command} text=${text} />` : ""}
    <${Failure} error=${error} />
    ${isBusy ? html`<p class="loading" role="status">${run ? "Under way…" : "Starting…"}</p>` : ""}
    ${run && run.state !== "running" ? html`<${Ended} run=${run} />` : ""}
  <//>`;
}

/** What a finished run said. @param {{run: Run}} props */
function Ended({ run }) {
  const place = useRef(/** @type {any} */ (null));
  useEffect(() => place.current?.scrollIntoView({ block: "nearest" }), [run]);
  return html`<div ref=${place}><${EndedText} run=${run} /></div>`;
}

/** @param {{run: Run}} props */
function EndedText({ run }) {
  if (run.state === "succeeded" || (run.preview && run.document)) return html`<${PreviewOf} run=${run} />`;
  return html`<div class="failure" role="alert">
    <p>${run.state === "stopped" ? "It was stopped." : `It failed (exit code ${run.exit_code ?? "unknown"}).`}</p>
    <pre>${(run.error || run.output).trim()}</pre>
  </div>`;
}
