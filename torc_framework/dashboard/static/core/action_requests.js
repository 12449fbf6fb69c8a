// The command that a reader is about to give: buttons ask for it, and the dialog of commands answers.

import { signal } from "../vendor/ui.js";

/**
 * @typedef {object} ActionRequest
 * @property {string} name of the command
 * @property {number} [workflowId]
 * @property {Record<string, any>} [options] what is chosen at first
 * @property {string} [title] what the dialog and its button say; by default the command's title
 * @property {(run: import("./orders.js").Run) => void} [onDone]
 */

/** The newest request. @type {{value: ActionRequest | null, subscribe: (call: (request: ActionRequest | null) => void) => () => void}} */
export const actionRequest = signal(/** @type {ActionRequest | null} */ (null));

/** @param {ActionRequest} request */
export function openAction(request) {
  actionRequest.value = { ...request };
}
