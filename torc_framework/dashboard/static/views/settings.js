// How the page looks in this browser, and the settings of torc on the machine of torc-dash.

import { html, useEffect, useState } from "../vendor/ui.js";
import { isOwner } from "../core/api.js";
import { runOrder } from "../core/orders.js";
import { prefer, preferences } from "../core/preferences.js";
import { Command, Failure, Loading } from "../parts/basics.js";
import { PlainTable } from "../parts/plain_table.js";

const CHOICES = [
  { name: "theme", title: "Theme", values: [["system", "As the system"], ["light", "Light"], ["dark", "Dark"]] },
  { name: "zone", title: "Times", values: [["local", "In my zone"], ["utc", "In UTC"]] },
  { name: "density", title: "Rows of tables", values: [["normal", "Normal"], ["compact", "Compact"]] },
  { name: "updates", title: "Refresh", values: [["live", "By itself, as things change"], ["manual", "Only when I press r or Refresh"]] },
];

export function Settings() {
  return html`<header class="view-head"><h1>Settings</h1></header>
    <section class="card" aria-labelledby="browser"><h2 id="browser">This browser</h2>
      ${CHOICES.map(({ name, title, values }) => html`<fieldset key=${name}><legend>${title}</legend>
        ${values.map(([value, label]) => html`<label class="check" key=${value}><input type="radio" name=${name} value=${value} checked=${/** @type {any} */ (preferences.value)[name] === value} onChange=${() => prefer({ [name]: value })} /> ${label}</label>`)}
      </fieldset>`)}
    </section>
    ${isOwner() ? html`<${TorcSettings} />` : ""}`;
}

/** The settings of torc, as its commands use them. */
function TorcSettings() {
  const [run, setRun] = useState(/** @type {import("../core/orders.js").Run | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  useEffect(() => {
    runOrder({ command: "settings" }).then(setRun, setError);
  }, []);
  return html`<section class="card" aria-labelledby="torc"><h2 id="torc">Settings of torc</h2>
    <p class="muted">Read when a program starts. Change them in the configuration file or the environment.</p>
    <${Failure} error=${error} />
    ${run?.document ? html`<${PlainTable} label="Settings" rows=${settingsOf(run.document)} keyOf=${(/** @type {any} */ row) => row.name} columns=${[
      { title: "Setting", show: (/** @type {any} */ row) => html`<code>${broken(row.name)}</code>` },
      { title: "Value", show: (/** @type {any} */ row) => html`<span class="mono">${row.value}</span>` },
      { title: "From", show: (/** @type {any} */ row) => row.origin ?? "default" },
    ]} />` : error ? "" : html`<${Loading} />`}
    <p><${Command} text="torc config show" /></p>
  </section>`;
}

/** The name of a setting, which a narrow window may break after each part. @param {string} name */
const broken = (name) => name.split(/(?<=[._])/).map((part, index) => html`${index ? html`<wbr />` : ""}${part}`);

/** Sections of settings; the document has other parts too. */
const SECTIONS = ["client", "server", "dash"];

/** @param {Record<string, any>} document */
function settingsOf(document) {
  const origins = new Map(flat("", document.origins ?? {}).map(({ name, value }) => [name, value]));
  return SECTIONS.flatMap((section) => flat(section, document[section] ?? {})).map((row) => ({ ...row, origin: origins.get(row.name) }));
}

/**
 * Settings as rows; the document has sections within sections.
 * @param {string} prefix
 * @param {any} value
 * @returns {{name: string, value: string}[]}
 */
function flat(prefix, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [{ name: prefix, value: valueText(value) }];
  return Object.entries(value).flatMap(([name, each]) => flat(prefix ? `${prefix}.${name}` : name, each));
}

/** @param {any} value */
const valueText = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));
