// Keys, words of statuses, and where to read more.

import { html } from "../vendor/ui.js";
import { definedKeys } from "../core/keyboard.js";
import { statusLook, statusOrder } from "../core/words.js";
import { Status } from "../parts/basics.js";

export function Help() {
  return html`<header class="view-head"><h1>Help</h1></header>
    <section class="card" aria-labelledby="keys"><h2 id="keys">Keys</h2>
      <dl class="facts">${definedKeys().map(({ keys, does }) => html`<dt key=${keys}>${keys.split(" ").map((key, index) => html`${index ? " then " : ""}<kbd>${key}</kbd>`)}</dt><dd>${does}</dd>`)}
        <dt><kbd>↑</kbd> <kbd>↓</kbd> <kbd>j</kbd> <kbd>k</kbd></dt><dd>Move in a table</dd>
        <dt><kbd>Enter</kbd></dt><dd>Open the row</dd>
      </dl>
      <p class="muted">Keys are not taken while you type.</p>
    </section>
    <section class="card" aria-labelledby="statuses"><h2 id="statuses">Statuses of jobs</h2>
      <dl class="facts">${statusOrder().map((label) => html`<dt key=${label}><${Status} of=${label} /></dt><dd>${statusLook(label).description ?? ""}</dd>`)}</dl>
    </section>
    <section class="card" aria-labelledby="terminal"><h2 id="terminal">In a terminal</h2>
      <p>Every action shows the command that does the same. <code>torc --help</code> lists all commands.</p>
    </section>`;
}
