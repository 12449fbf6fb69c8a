// Jobs by the values of two parameters: which values fail, take long, or need much memory.

import { html } from "../vendor/ui.js";
import { useData } from "../core/data.js";
import { countText, durationText, sizeText } from "../core/quantities.js";
import { address, route, setParams } from "../core/router.js";
import { statusLook, statusOrder } from "../core/words.js";
import { Empty, Shown } from "../parts/basics.js";
import { quoted } from "./overview.js";

/**
 * @typedef {object} SweepData
 * @property {{name: string, value_count: number, job_count: number, source?: string}[]} parameters
 * @property {string[]} families
 * @property {string | null} family
 * @property {string | null} x
 * @property {string | null} y
 * @property {string[]} x_values
 * @property {string[]} y_values
 * @property {{x: number[], y: number[], counts: Record<string, number>[], seconds: (number | null)[], most_seconds: (number | null)[], peak_memory_bytes: (number | null)[], job_id: number[]}} cells
 * @property {number} job_count
 * @property {number} omitted
 */

const COLOURS = [["status", "Status"], ["seconds", "Mean run time"], ["most_seconds", "Longest run time"], ["peak_memory_bytes", "Peak memory"]];

/** @param {{id: number}} props */
export function Sweep({ id }) {
  const { family, x, y } = route.value.params;
  const from = useData(`api/workflows/${id}/views/sweep`, { family, x, y });
  return html`<header class="view-head"><h1>Sweep</h1></header>
    <${Shown} from=${from}>${(/** @type {SweepData} */ data) =>
      data.x
        ? html`<${Content} id=${id} data=${data} />`
        : html`<${Empty} title="The jobs of this workflow have no parameters."><p>A job with <code>parameters:</code> in the spec stands for one job per combination of values; this view compares them.</p><//>`}<//>`;
}

/** @param {{id: number, data: SweepData}} props */
function Content({ id, data }) {
  const colour = route.value.params.colour ?? "status";
  const choice = (/** @type {string} */ param, /** @type {string} */ title, /** @type {string} */ value, /** @type {string[][]} */ values) =>
    html`<label>${title} <select value=${value} onChange=${(/** @type {any} */ event) => setParams({ [param]: event.currentTarget.value, ...(param === "family" ? { x: "", y: "" } : {}) })}>${values.map(([each, label]) => html`<option key=${each} value=${each}>${label}</option>`)}</select></label>`;
  const names = data.parameters.map(({ name, value_count }) => [name, `${name} (${countText(value_count, "value")})`]);
  return html`<div class="filters">
      ${data.families.length > 1 ? choice("family", "Jobs", data.family ?? "", data.families.map((family) => [family, family])) : ""}
      ${choice("x", "Across", data.x ?? "", names)}
      ${data.y ? choice("y", "Down", data.y, names) : ""}
      ${choice("colour", "Colour", colour, COLOURS)}
    </div>
    <p class="muted">${countText(data.job_count, "job")}${data.omitted ? `; ${countText(data.omitted)} more are in values that are left out` : ""}. A cell leads to its jobs.${data.parameters.some((each) => each.source === "name") ? " Values were read from the names of the jobs." : ""}</p>
    <${Grid} id=${id} data=${data} colour=${colour} />`;
}

/** @param {{id: number, data: SweepData, colour: string}} props */
function Grid({ id, data, colour }) {
  const { cells, x_values: across, y_values: down } = data;
  const at = new Map(cells.x.map((x, index) => [`${x} ${cells.y[index]}`, index]));
  const amounts = colour === "status" ? [] : /** @type {(number | null)[]} */ (/** @type {any} */ (cells)[colour]);
  const known = amounts.filter((amount) => amount !== null);
  const range = { least: Math.min(...known), most: Math.max(...known) };
  const rows = data.y ? down : [""];
  return html`<div class="table-box sweep" tabindex="0" role="region" aria-label="Grid of parameters"><table>
    <caption class="muted">${data.x}${data.y ? ` across, ${data.y} down` : ""}</caption>
    <thead><tr><th scope="col">${data.y ? `${data.y} \\ ${data.x}` : data.x}</th>${across.map((value) => html`<th key=${value} scope="col">${value}</th>`)}</tr></thead>
    <tbody>${rows.map((value, y) => html`<tr key=${value}><th scope="row">${value}</th>${across.map((_, x) => {
      const index = at.get(`${x} ${y}`);
      return index === undefined ? html`<td key=${x}></td>` : html`<${Cell} key=${x} id=${id} data=${data} index=${index} colour=${colour} amount=${amounts[index]} range=${range} />`;
    })}</tr>`)}</tbody>
  </table></div>
  ${known.length ? html`<p class="row muted">${amountText(colour, range.least)} <span class="scale" role="presentation"></span> ${amountText(colour, range.most)}</p>` : ""}`;
}

/** The status that a cell shows: the worst of its jobs. */
const WORST = ["failed", "terminated", "pending_failed", "canceled", "running", "pending", "ready", "blocked", "uninitialized", "disabled", "completed"];

/**
 * @param {{id: number, data: SweepData, index: number, colour: string, amount: number | null | undefined, range: {least: number, most: number}}} props
 */
function Cell({ id, data, index, colour, amount, range }) {
  const { cells } = data;
  const counts = cells.counts[index];
  const worst = WORST.find((label) => counts[label]) ?? "blocked";
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const title = statusOrder().filter((label) => counts[label]).map((label) => `${counts[label]} ${statusLook(label).word}`).join(", ");
  const link = total === 1 ? address(["w", id, "j", cells.job_id[index]]) : address(["w", id, "jobs"], { q: cellFilter(data, index) });
  if (colour === "status") {
    return html`<td class=${`cell cell-${worst}`}><a href=${link} title=${title}>${statusLook(worst).glyph}${total > 1 ? ` ${counts[worst]}/${total}` : ""}<span class="hidden"> ${title}</span></a></td>`;
  }
  const share = amount === null || amount === undefined ? null : range.most > range.least ? (amount - range.least) / (range.most - range.least) : 0.5;
  return html`<td class="cell amount" style=${share === null ? {} : { backgroundColor: `hsl(212 60% ${92 - 55 * share}%)`, color: share > 0.45 ? "#ffffff" : "#0c1218" }}><a href=${link} title=${title}>${amount === null || amount === undefined ? "–" : amountText(colour, amount)}</a></td>`;
}

/** @param {SweepData} data @param {number} index */
function cellFilter(data, index) {
  const values = [data.x_values[data.cells.x[index]], ...(data.y ? [data.y_values[data.cells.y[index]]] : [])];
  return values.map(quoted).join(" ");
}

/** @param {string} colour @param {number} amount */
const amountText = (colour, amount) => (colour === "peak_memory_bytes" ? sizeText(amount) : durationText(amount));
