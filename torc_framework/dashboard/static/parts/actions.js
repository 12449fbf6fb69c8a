// Buttons that ask for commands of torc, and the next step that the server names.

import { html } from "../vendor/ui.js";
import { openAction } from "../core/action_requests.js";
import { server } from "../core/api.js";
import { commandKinds, orderOf } from "../core/orders.js";
import { address, route } from "../core/router.js";
import { Command } from "./basics.js";

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
  const open = () => openAction({ name, workflowId, options, title: label, onDone });
  return html`<button type="button" class=${look} disabled=${server.value.isAway} onClick=${open}>${label ?? kind.title}…</button>`;
}

const ENDED = ["run", "submit", "reinitialize", "reset_status", "archive", "delete"];
/** Commands that fit the states of workflows; the others have those of ended ones. @type {Record<string, string[]>} */
const FITTING = {
  archived: ["unarchive", "delete"],
  uninitialized: ["initialize", "run", "submit", "archive", "delete"],
  running: ["run", "watch", "cancel", "delete"],
  silent: ["run", "sync_status", "cancel", "delete"],
};

/**
 * Return the names of the commands that fit a workflow and that the reader may run.
 * @param {string} state
 * @param {boolean} isUnderWay whether it has runners or queued allocations
 */
export const commandsOf = (state, isUnderWay) =>
  (FITTING[state] ?? (isUnderWay ? FITTING.running : ENDED)).filter((name) => commandKinds.value[name]);

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
