// The dialog of a command: what it would do, its options, how it is undone, and the same command for a terminal.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { actionRequest } from "../core/action_requests.js";
import { refreshes, server } from "../core/api.js";
import { commandKinds, runOrder, textOf } from "../core/orders.js";
import { Command, Failure } from "./basics.js";
import { closeDialog, DialogBox, openDialog } from "./dialog.js";
import { tell } from "./messages.js";
import { OptionFields } from "./option_fields.js";
import { PreviewOf, runsNothing } from "./previews.js";

/** @typedef {import("../core/orders.js").Run} Run */
/** @typedef {import("../core/orders.js").Order} Order */

/** Commands whose answer is read in their dialog. */
const REPORTS = new Set(["execution_plan", "slurm_accounting", "slurm_logs", "utilization"]);
const TYPING_MS = 150;

/** Show a dialog for each request of a command from now on. */
export function answerActionRequests() {
  actionRequest.subscribe((request) => request && openDialog(() => html`<${ActionDialog} ...${request} />`));
}

/** @param {import("../core/action_requests.js").ActionRequest} props */
function ActionDialog({ name, workflowId, options: initial = {}, title, onDone }) {
  const kind = commandKinds.value[name];
  const [options, setOptions] = useState(initial);
  const [run, setRun] = useState(/** @type {Run | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [failure, setError] = useState(/** @type {Error | null} */ (null));
  const order = { command: name, workflow_id: workflowId, options };
  const { text, impact, error } = useDescription(order);
  const hasDryRun = kind.preview === "dry_run";

  const start = async (/** @type {boolean} */ preview, chosen = options) => {
    if (isBusy) return; // the button keeps the focus, and so it is not disabled
    setBusy(true);
    setError(null);
    try {
      const ended = await runOrder({ ...order, options: chosen, preview }, setRun);
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
    tell(ended.state === "running" ? `${title ?? kind.title}: started. It goes on in the background.` : `${title ?? kind.title}: done.`);
    onDone?.(ended);
    closeDialog();
  };
  const choose = (/** @type {Record<string, any>} */ next) => {
    setOptions(next);
    if (run?.preview) setRun(null); // it was the preview of other options
  };
  const previewWith = (/** @type {Record<string, any>} */ more) => {
    const chosen = { ...options, ...more };
    setOptions(chosen);
    start(true, chosen);
  };
  useEffect(() => {
    if (hasDryRun) start(true);
    else if (REPORTS.has(name)) start(false); // it only reads
  }, []);

  const isPreviewed = Boolean(run?.preview && run.state !== "running");
  const isVain = isPreviewed && run !== null && runsNothing(run);
  const look = kind.destroys ? "danger" : !hasDryRun || (isPreviewed && !isVain) ? "primary" : "";
  const buttons = html`
    <button type="button" onClick=${closeDialog}>Back</button>
    ${hasDryRun ? html`<button type="button" aria-disabled=${isBusy} class=${isPreviewed ? "" : "primary"} onClick=${() => start(true)}>Preview</button>` : ""}
    <button type="button" disabled=${isVain || server.value.isAway} aria-disabled=${isBusy} class=${look} onClick=${() => start(false)}>${REPORTS.has(name) ? "Again" : (title ?? kind.title)}</button>
  `;
  return html`<${DialogBox} title=${title ?? kind.title} buttons=${buttons}>
    ${impact ? html`<div class=${kind.destroys ? "warning effects" : "effects"}>${(impact.sentences ?? []).map((/** @type {string} */ each) => html`<p key=${each}>${each}</p>`)}</div>` : ""}
    <${OptionFields} options=${kind.options} values=${options} fixed=${title ? Object.keys(initial) : []} most=${kind.is_long ? 0 : undefined} onChange=${choose} />
    ${run && run.state !== "running" ? html`<${Ended} run=${run} onPreviewWith=${previewWith} />` : ""}
    ${isBusy ? html`<p class="loading" role="status">${run ? "Under way…" : hasDryRun ? "Asking what it would do…" : REPORTS.has(name) ? "Reading…" : "Starting…"}</p>` : ""}
    <${Failure} error=${failure ?? error} />
    ${!impact && kind.undo ? html`<p class="muted">${kind.undo}</p>` : ""}
    ${text ? html`<p class="field-title">The same in a terminal</p><${Command} text=${text} />` : ""}
  <//>`;
}

/**
 * What a person types for an order, and what it would do where the command has no dry run.
 * @param {Order} order
 */
function useDescription(order) {
  const [text, setText] = useState("");
  const [impact, setImpact] = useState(/** @type {Run | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const hasImpact = commandKinds.value[order.command].preview === "impact";
  useEffect(() => {
    let isShown = true;
    const timer = setTimeout(async () => {
      try {
        const [described, found] = await Promise.all([textOf(order), hasImpact ? runOrder({ ...order, preview: true }) : null]);
        if (!isShown) return;
        setText(described);
        setImpact(found);
        setError(null);
      } catch (caught) {
        if (isShown) setError(/** @type {Error} */ (caught));
      }
    }, TYPING_MS);
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, [JSON.stringify(order.options)]);
  return { text, impact, error };
}

/** What a finished run said. @param {{run: Run, onPreviewWith: (more: Record<string, any>) => void}} props */
function Ended({ run, onPreviewWith }) {
  const place = useRef(/** @type {any} */ (null));
  useEffect(() => {
    if (!run.preview) place.current?.scrollIntoView({ block: "nearest" });
  }, [run]);
  return html`<div ref=${place}><${EndedText} run=${run} onPreviewWith=${onPreviewWith} /></div>`;
}

/** @param {{run: Run, onPreviewWith: (more: Record<string, any>) => void}} props */
function EndedText({ run, onPreviewWith }) {
  if (run.state === "succeeded" || (run.preview && run.document)) return html`<${PreviewOf} run=${run} onPreviewWith=${onPreviewWith} />`;
  return html`<div class="failure" role="alert">
    <p>${run.state === "stopped" ? "It was stopped." : run.preview ? "It cannot be done now:" : `It failed (exit code ${run.exit_code ?? "unknown"}).`}</p>
    <pre>${(run.error || run.output).trim()}</pre>
  </div>`;
}
