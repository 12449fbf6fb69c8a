// Who works on a workflow: runners with their load, allocations of a batch system, and what starts more.

import { html, useState } from "../vendor/ui.js";
import { isOwner, refreshes, send, server } from "../core/api.js";
import { useData } from "../core/data.js";
import { commandKinds } from "../core/orders.js";
import { countText, durationText, requestedSeconds, sizeText } from "../core/quantities.js";
import { address } from "../core/router.js";
import { milliseconds, now } from "../core/times.js";
import { runnerLook, words } from "../core/words.js";
import { ActionButton } from "../parts/actions.js";
import { Empty, Failure, Loading, Share, Shown, Time } from "../parts/basics.js";
import { DialogBox, openDialog } from "../parts/dialog.js";
import { PlainTable } from "../parts/plain_table.js";
import { LogView } from "./log.js";

const GIB = 1024 ** 3;

/** @param {{id: number}} props */
export function Runners({ id }) {
  return html`<header class="view-head"><h1>Runners</h1><span class="grow"></span>
      <${ActionButton} name="run" workflowId=${id} label="Run here" /><${ActionButton} name="submit" workflowId=${id} /><${ActionButton} name="utilization" workflowId=${id} />
    </header>
    <section class="card" aria-label="Runners"><${RunnerTable} id=${id} /></section>
    <${Allocations} id=${id} />`;
}

/** @param {{id: number, isShort?: boolean}} props */
export function RunnerTable({ id, isShort = false }) {
  const nodes = useData("api/compute_nodes", { workflow_id: id, limit: isShort ? 10 : 1000, sort_by: "id", reverse_sort: true, is_active: isShort ? true : undefined });
  const progress = useData(`api/workflows/${id}/progress`);
  const status = useData(`dash/workflows/${id}/overview`);
  if (nodes.data === null) return nodes.error ? html`<${Failure} error=${nodes.error} />` : html`<${Loading} />`;
  const rows = [...nodes.data.items].sort((first, second) => Number(second.is_active) - Number(first.is_active));
  if (!rows.length) {
    return html`<${Empty} title=${isShort ? "No runner works on this now." : "No runner has worked on this."}>
      ${isShort && commandKinds.value.run ? html`<p class="row"><${ActionButton} name="run" workflowId=${id} label="Run here" /><${ActionButton} name="submit" workflowId=${id} /></p>` : ""}<//>`;
  }
  const lost = new Set(status.data?.lost_runners ?? []);
  const loads = new Map((progress.data?.loads ?? []).map((/** @type {any} */ load) => [load.compute_node_id, load]));
  const load = (/** @type {any} */ node) => loads.get(node.id) ?? {};
  return html`<${PlainTable} label="Runners" rows=${rows} keyOf=${(/** @type {any} */ node) => node.id} columns=${[
    { title: "Runner", show: (/** @type {any} */ node) => html`<a href=${address(["w", id, "jobs"], { q: `runner:${node.id}` })}>${node.id}</a>` },
    { title: "Host", show: (/** @type {any} */ node) => html`${node.hostname} <span class="muted">${node.compute_node_type}</span>` },
    { title: "State", show: (/** @type {any} */ node) => html`<${State} node=${node} isLost=${lost.has(node.id)} hasButton=${!isShort && node.is_active} />` },
    { title: "Jobs now", isNumber: true, show: (/** @type {any} */ node) => (node.is_active ? `${countText(load(node).jobs ?? 0)}${load(node).claimed ? `, ${countText(load(node).claimed)} claimed` : ""}` : "") },
    { title: "CPUs", isNumber: true, show: (/** @type {any} */ node) => html`<${Share} used=${node.is_active ? load(node).num_cpus : null} of=${node.num_cpus} text=${node.is_active && load(node).num_cpus !== undefined ? `${load(node).num_cpus} of ${node.num_cpus}` : node.num_cpus} />` },
    { title: "Memory", isNumber: true, show: (/** @type {any} */ node) => html`<${Share} used=${node.is_active ? load(node).memory_bytes : null} of=${GIB * node.memory_gb} text=${`${node.is_active && load(node).memory_bytes ? `${sizeText(load(node).memory_bytes)} of ` : ""}${sizeText(GIB * node.memory_gb)}`} />` },
    ...(rows.some((node) => node.num_gpus) ? [{ title: "GPUs", isNumber: true, show: (/** @type {any} */ node) => node.num_gpus || "" }] : []),
    { title: "Started", show: (/** @type {any} */ node) => html`<${Time} at=${node.start_time} />` },
    { title: "Worked", isNumber: true, show: (/** @type {any} */ node) => durationText(workedSeconds(node)) },
    ...(rows.some(timeLeft) ? [{ title: "Time left", isNumber: true, show: timeLeft }] : []),
    ...(isShort ? [] : [{ title: "Log", show: (/** @type {any} */ node) => html`<button type="button" class="small" onClick=${() => openLog(id, { node: node.id }, `Log of runner ${node.id}`, node.is_active)}>Show</button>` }]),
  ]} />
  ${nodes.data.has_more ? html`<p class="muted">${countText(rows.length)} of ${countText(nodes.data.total_count)}.</p>` : ""}`;
}

/** What a runner does, as `torc compute-nodes list` tells it. @param {{node: any, isLost: boolean, hasButton: boolean}} props */
function State({ node, isLost, hasButton }) {
  const heardAt = milliseconds(node.last_heard_at);
  const heardS = heardAt === null ? 0 : Math.max(0, (now.value - heardAt) / 1000);
  const isSilent = node.is_active && heardS > words.value.silent_after_s;
  const look = runnerLook(!node.is_active ? "ended" : isLost ? "lost" : isSilent ? "silent" : node.is_draining ? "drains" : "works");
  const heard = node.is_active && heardAt !== null ? `heard of ${durationText(heardS)} ago` : "";
  return html`<span class="one-line"><span title=${heard}>${look.glyph} ${look.word}</span>${hasButton && !isLost ? html` <${DrainButton} node=${node} />` : ""}</span>${isSilent || isLost ? html`<br /><span class="muted one-line">${heard}</span>` : ""}`;
}

/** Asks a runner to take no more jobs, or to take jobs again. @param {{node: any}} props */
function DrainButton({ node }) {
  const title = node.is_draining
    ? `Let it take jobs again, as: torc compute-nodes drain ${node.id} --undo`
    : `It takes no more jobs, and ends when its jobs have ended, as: torc compute-nodes drain ${node.id}`;
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const change = () =>
    send("PUT", `api/compute_nodes/${node.id}`, { is_draining: !node.is_draining })
      .then(() => { setFailure(null); refreshes.value += 1; })
      .catch(setFailure);
  return html`<button type="button" class="small" title=${title} disabled=${server.value.isAway} onClick=${change}>${node.is_draining ? "Undo" : "Drain"}</button><${Failure} error=${failure} />`;
}

/** @param {any} node */
function workedSeconds(node) {
  if (!node.is_active && node.duration_seconds !== undefined) return node.duration_seconds;
  return Math.max(0, (now.value - (milliseconds(node.start_time) ?? now.value)) / 1000);
}

/** What is left of a runner's own time limit. @param {any} node */
function timeLeft(node) {
  const limit = requestedSeconds(node.time_limit);
  return node.is_active && limit !== null ? durationText(Math.max(0, limit - workedSeconds(node))) : "";
}

/** @param {number} id @param {Record<string, any>} which @param {string} title @param {boolean} isLive */
function openLog(id, which, title, isLive) {
  openDialog(() => html`<${DialogBox} title=${title}><${LogView} base=${`dash/workflows/${id}/log`} which=${which} isLive=${isLive} /><//>`);
}

/** Nodes asked for from a batch system. @param {{id: number}} props */
function Allocations({ id }) {
  const from = useData("api/scheduled_compute_nodes", { workflow_id: id, limit: 500, sort_by: "id", reverse_sort: true });
  const reasons = useData(`dash/workflows/${id}/queue-reasons`).data ?? {};
  return html`<section class="card" aria-labelledby="allocations"><h2 id="allocations">Allocations</h2>
    <${Shown} from=${from}>${(/** @type {any} */ data) =>
      data.items.length
        ? html`<${PlainTable} label="Allocations" rows=${data.items} keyOf=${(/** @type {any} */ each) => each.id} columns=${[
            { title: "Id", isNumber: true, show: (/** @type {any} */ each) => each.id },
            { title: "Batch job", show: (/** @type {any} */ each) => each.allocation_id ?? each.scheduler_id },
            { title: "Scheduler", show: (/** @type {any} */ each) => each.scheduler_type },
            { title: "State", show: (/** @type {any} */ each) => each.status },
            { title: "Reason", show: (/** @type {any} */ each) => reasons[each.id] ?? "" },
            { title: "Output", show: (/** @type {any} */ each) => html`${["stdout", "stderr"].map((stream) => html`<button type="button" class="small" key=${stream} onClick=${() => openLog(id, { allocation: each.id, stream }, `${stream} of batch job ${each.allocation_id ?? each.scheduler_id}`, each.status === "active")}>${stream}</button> `)}` },
          ]} />`
        : html`<p class="muted">None. A workflow gets nodes of a batch system with <code>torc submit ${id}</code>.</p>`}<//>
    ${isOwner() ? html`<p class="row"><${ActionButton} name="slurm_logs" workflowId=${id} /><${ActionButton} name="slurm_accounting" workflowId=${id} /><${ActionButton} name="sync_status" workflowId=${id} /></p>` : ""}
  </section>`;
}

