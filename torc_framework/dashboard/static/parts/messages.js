// Short messages at the lower edge: what an action did, or why it failed.

import { html, signal } from "../vendor/ui.js";

/** @typedef {{id: number, text: string, isError: boolean}} Message */

/** @type {{value: Message[]}} */
const messages = signal(/** @type {Message[]} */ ([]));
const SHOWN_MS = 6000;
const MOST = 4;
let lastId = 0;

/**
 * Show a message; errors stay until they are closed.
 * @param {string} text
 * @param {{isError?: boolean}} [options]
 */
export function tell(text, { isError = false } = {}) {
  lastId += 1;
  const id = lastId;
  messages.value = [...messages.value, { id, text, isError }].slice(-MOST);
  if (!isError) setTimeout(() => dismiss(id), SHOWN_MS);
}

/** @param {number} id */
function dismiss(id) {
  messages.value = messages.value.filter((message) => message.id !== id);
}

/** The place of the messages; stands once in the page. */
export const MessagePlace = () => html`<div class="messages" role="status" aria-live="polite">
  ${messages.value.map(
    ({ id, text, isError }) => html`<div key=${id} class=${isError ? "message error" : "message"}>
      <span>${text}</span><button type="button" class="quiet" aria-label="Close message" onClick=${() => dismiss(id)}>✕</button>
    </div>`,
  )}
</div>`;
