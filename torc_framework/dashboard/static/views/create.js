// Creating a workflow: by a wizard, in an editor, from a file, or from a path on the machine of torc-dash.

import { html, useState } from "../vendor/ui.js";
import { isOwner } from "../core/api.js";
import { address, route } from "../core/router.js";
import { Empty, Failure } from "../parts/basics.js";
import { Check } from "./create/check.js";
import { Editor } from "./create/editor.js";
import { Wizard } from "./create/wizard.js";

const WAYS = [["wizard", "Wizard"], ["editor", "Editor"], ["file", "Upload a file"], ["path", "Path"]];

/** @param {{rest: string[]}} props */
export function Create({ rest }) {
  const way = WAYS.some(([name]) => name === rest[0]) ? rest[0] : "wizard";
  const head = html`<header class="view-head"><h1>Create workflow</h1></header>`;
  if (!isOwner()) return html`${head}<${Empty} title="You may not create workflows here."><p>This needs the start token of torc-dash. In a terminal: <code>torc workflows create workflow.yaml</code></p><//>`;
  return html`${head}
    <nav class="choice" aria-label="Ways to create"><ul>${WAYS.map(([name, title]) => html`<li key=${name}><a href=${address(["create", name])} aria-current=${name === way ? "page" : undefined}>${title}</a></li>`)}</ul></nav>
    ${way === "wizard" ? html`<${Wizard} />` : ""}
    ${way === "editor" ? html`<${Editor} example=${route.value.params.example} />` : ""}
    ${way === "file" ? html`<${Upload} />` : ""}
    ${way === "path" ? html`<${FromPath} />` : ""}`;
}

/** Formats of specs by the ending of a file. @type {Record<string, string>} */
const FORMATS = { yaml: "yaml", yml: "yaml", json: "json", json5: "json5", kdl: "kdl" };
const MOST_BYTES = 16 * 1024 ** 2;

function Upload() {
  const [file, setFile] = useState(/** @type {{name: string, text: string, format: string} | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isOver, setOver] = useState(false);
  const read = async (/** @type {File | undefined} */ chosen) => {
    setError(null);
    setFile(null);
    if (!chosen) return;
    const format = FORMATS[chosen.name.split(".").at(-1)?.toLowerCase() ?? ""];
    if (!format) setError(new Error(`${chosen.name} is no spec: its name ends in .yaml, .yml, .json, .json5 or .kdl.`));
    else if (chosen.size > MOST_BYTES) setError(new Error(`${chosen.name} is larger than 16 MiB.`));
    else setFile({ name: chosen.name, text: await chosen.text(), format });
  };
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    read(event.dataTransfer?.files[0]);
  };
  return html`<section class=${isOver ? "card drop over" : "card drop"} aria-label="Upload" onDrop=${drop} onDragLeave=${() => setOver(false)} onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true))}>
      <p>Drop a spec file here, or choose one: YAML, JSON, JSON5 or KDL.</p>
      <label>Spec file <input type="file" accept=".yaml,.yml,.json,.json5,.kdl" onChange=${(/** @type {any} */ event) => read(event.currentTarget.files[0])} /></label>
    </section>
    <${Failure} error=${error} />
    ${file ? html`<p>${file.name}</p><pre class="block">${file.text.slice(0, 20_000)}</pre><${Check} key=${file.text} options=${{ text: file.text, format: file.format }} />` : ""}`;
}

function FromPath() {
  const [path, setPath] = useState("");
  return html`<section class="card" aria-label="Path">
      <label class="wide">Path of a spec file on the machine of torc-dash <input data-search type="text" value=${path} placeholder="/projects/study/workflow.yaml" onInput=${(/** @type {any} */ event) => setPath(event.currentTarget.value.trim())} /></label>
    </section>
    ${path ? html`<${Check} key=${path} options=${{ path }} />` : ""}`;
}
