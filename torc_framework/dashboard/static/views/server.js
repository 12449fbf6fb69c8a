// The server behind, starting and stopping it with --standalone, and the commands that ran here.

import { html, useState } from "../vendor/ui.js";
import { get, isOwner, send } from "../core/api.js";
import { useData } from "../core/data.js";
import { address } from "../core/router.js";
import { Command, Copy, Empty, Failure, Shown, Time } from "../parts/basics.js";
import { DialogBox, openDialog } from "../parts/dialog.js";
import { tell } from "../parts/messages.js";
import { PlainTable } from "../parts/plain_table.js";

const REFRESH_MS = 5000;
const LOG_LEVELS = ["error", "warn", "info", "debug", "trace"];

export function Server() {
  const state = useData("dash/state", {}, { live: false, everyMs: REFRESH_MS });
  return html`<header class="view-head"><h1>Server</h1></header>
    <${Shown} from=${state}>${(/** @type {any} */ data) => html`<section class="card" aria-labelledby="behind"><h2 id="behind">torc-server</h2>
      <dl class="facts">
        <dt>State</dt><dd>${data.server.state === "live" ? "● Answers" : "⚠ Does not answer"} since <${Time} at=${1000 * data.server.since} />${data.server.error ? `: ${data.server.error}` : ""}</dd>
        ${data.server.url ? html`<dt>Address</dt><dd class="mono">${data.server.url} <${Copy} text=${data.server.url} /></dd>` : ""}
        ${data.server.version ? html`<dt>Version</dt><dd>${data.server.version}</dd>` : ""}
        <dt>torc-dash</dt><dd>${data.version} on ${data.hostname}, in <span class="mono">${data.folder}</span></dd>
      </dl>
      <${Test} />
    </section>`}<//>
    ${isOwner() ? html`<${OwnServer} /><${CommandRuns} />` : ""}`;
}

/** A request to the server, timed. */
function Test() {
  const [text, setText] = useState("");
  const test = async () => {
    const begun = performance.now();
    try {
      await get("api/ping");
      setText(`It answered in ${Math.round(performance.now() - begun)} ms.`);
    } catch (error) {
      setText(/** @type {Error} */ (error).message);
    }
  };
  return html`<p class="row"><button type="button" onClick=${test}>Test the connection</button><span role="status">${text}</span></p>`;
}

/** The server that torc-dash started. */
function OwnServer() {
  const server = useData("dash/server", {}, { live: false, everyMs: REFRESH_MS });
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const change = async (/** @type {"start" | "stop"} */ what, /** @type {object | undefined} */ options = undefined) => {
    setError(null);
    try {
      await send("POST", `dash/server/${what}`, options);
      tell(what === "start" ? "The server runs." : "The server has ended.");
    } catch (caught) {
      setError(/** @type {Error} */ (caught));
    }
    server.reload();
  };
  return html`<${Shown} from=${server}>${(/** @type {any} */ data) => html`<section class="card" aria-labelledby="own"><h2 id="own">Start and stop</h2>
    ${data.standalone
      ? data.running
        ? html`<dl class="facts"><dt>Database</dt><dd class="mono">${data.database ?? "a URL"}</dd><dt>Process</dt><dd>${data.pid}</dd><dt>Log level</dt><dd>${data.log_level}</dd></dl>
          <p class="row"><button type="button" class="danger" onClick=${() => openDialog(() => html`<${StopDialog} onStop=${() => change("stop")} />`)}>Stop the server…</button></p>`
        : html`<${StartForm} options=${data} onStart=${(/** @type {object} */ options) => change("start", options)} />`
      : html`<p class="muted">This torc-dash uses a server that runs by itself. With <code>torc-dash --standalone</code> it starts and stops one of its own.</p>`}
    <${Failure} error=${error} />
  </section>`}<//>`;
}

/**
 * With what the server is started; an empty database is the one of the last start.
 * @param {{options: any, onStart: (options: object) => void}} props
 */
function StartForm({ options, onStart }) {
  const [port, setPort] = useState(String(options.port));
  const [database, setDatabase] = useState(options.database ?? "");
  const [level, setLevel] = useState(options.log_level);
  const start = (/** @type {Event} */ event) => {
    event.preventDefault();
    onStart({ port: Number(port), log_level: level, ...(database.trim() ? { database: database.trim() } : {}) });
  };
  return html`<form class="filters" onSubmit=${start}>
    <label class="wide">Database, a path on this host <input class="mono" value=${database} placeholder="as before" onInput=${(/** @type {any} */ event) => setDatabase(event.currentTarget.value)} /></label>
    <label>Port (0 takes a free one) <input type="number" min="0" max="65535" required value=${port} onInput=${(/** @type {any} */ event) => setPort(event.currentTarget.value)} /></label>
    <label>Log level <select value=${level} onChange=${(/** @type {any} */ event) => setLevel(event.currentTarget.value)}>${LOG_LEVELS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
    <button type="submit" class="primary">Start the server</button>
  </form>`;
}

/** @param {{onStop: () => void}} props */
const StopDialog = ({ onStop }) => html`<${DialogBox} title="Stop the server" buttons=${html`<button type="button" class="danger" onClick=${(/** @type {any} */ event) => {
  event.currentTarget.closest("dialog").close();
  onStop();
}}>Stop the server</button>`}>
  <p>Runners lose their server. Jobs that run go on, and are reported when the server is back. The data stays in the database.</p>
<//>`;

/** Commands that torc-dash ran. */
function CommandRuns() {
  const commands = useData("dash/commands", {}, { live: false, everyMs: 3000 });
  const stop = async (/** @type {number} */ id) => {
    try {
      await send("POST", `dash/commands/${id}/stop`);
    } catch (error) {
      tell(/** @type {Error} */ (error).message, { isError: true });
    }
    commands.reload();
  };
  return html`<section class="card" aria-labelledby="commands"><h2 id="commands">Commands that ran here</h2>
    <${Shown} from=${commands}>${(/** @type {any} */ data) =>
      data.runs.length
        ? html`<${PlainTable} label="Commands" rows=${data.runs} keyOf=${(/** @type {any} */ run) => run.id} columns=${[
            { title: "Command", show: (/** @type {any} */ run) => html`<${Command} text=${run.text} />` },
            { title: "Workflow", show: (/** @type {any} */ run) => (run.workflow_id ? html`<a href=${address(["w", run.workflow_id])}>${run.workflow_id}</a>` : "") },
            { title: "State", show: (/** @type {any} */ run) => `${run.state}${run.exit_code ? ` (exit code ${run.exit_code})` : ""}` },
            { title: "Started", show: (/** @type {any} */ run) => html`<${Time} at=${1000 * run.started_at} />` },
            { title: "Output", show: (/** @type {any} */ run) => html`<button type="button" class="small" onClick=${() => openDialog(() => html`<${Output} id=${run.id} />`)}>Show</button>${run.state === "running" ? html` <button type="button" class="small" onClick=${() => stop(run.id)}>Stop</button>` : ""}` },
          ]} />`
        : html`<${Empty} title="No command ran yet." />`}<//>
  </section>`;
}

/** @param {{id: number}} props */
function Output({ id }) {
  const run = useData(`dash/commands/${id}`, {}, { live: false, everyMs: 2000 });
  return html`<${DialogBox} title=${run.data?.text ?? "Command"}><${Shown} from=${run}>${(/** @type {any} */ data) => html`<pre class="block">${data.output || data.error ? `${data.error}${data.output}` : "No output."}</pre>`}<//><//>`;
}
