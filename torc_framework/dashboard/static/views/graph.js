// What depends on what: groups of jobs in layers, drawn on a canvas, and the same as a list.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/ui.js";
import { useData } from "../core/data.js";
import { countText } from "../core/quantities.js";
import { preferences } from "../core/preferences.js";
import { address, go, route, setParams } from "../core/router.js";
import { statusOrder, words } from "../core/words.js";
import { ActionButton } from "../parts/actions.js";
import { Empty, Name, Shown, Status, StatusBar, StatusCounts } from "../parts/basics.js";
import { CanvasView } from "../parts/canvas_view.js";
import { GraphScene } from "../parts/graph_scene.js";
import { PlainTable } from "../parts/plain_table.js";
import { groupFilter, quoted } from "./overview.js";

/** @typedef {import("../parts/graph_scene.js").GraphNode} GraphNode */
/** @typedef {{kind: string, structure: string, nodes: GraphNode[], edges: [number, number, number][], layer_count: number, job_count: number, edge_count: number, omitted: number, omitted_edges?: number, total: number, offset: number}} GraphData */

const KINDS = [["jobs", "Jobs"], ["files", "Jobs and files"], ["user_data", "Jobs and user data"]];
const NODES = 1000;
const OPEN_NODES = 5000;
/** Most boxes of a graph that is first seen at a scale at which they can be read, even if not all are in view. */
const FEW_BOXES = 60;
const READABLE = 0.5;

/** @param {{id: number}} props */
export function Graph({ id }) {
  const { kind = "jobs", open, offset, around, depth, as } = route.value.params;
  const from = useData(`api/workflows/${id}/views/graph`, { kind, open, offset, around, depth, limit: open || around ? OPEN_NODES : NODES });
  const isWhole = !open && !around;
  return html`<header class="view-head"><h1>Graph</h1><span class="grow"></span>
      ${isWhole ? "" : html`<a class="button" href=${address(["w", id, "graph"], { kind: kind === "jobs" ? "" : kind, as })}>Whole graph</a>`}
      <${ActionButton} name="execution_plan" workflowId=${id} />
      <label>Show <select value=${kind} onChange=${(/** @type {any} */ event) => setParams({ kind: event.currentTarget.value, open: "", offset: "", around: "" })}>${KINDS.map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}</select></label>
      <label>As <select value=${as ?? "drawing"} onChange=${(/** @type {any} */ event) => setParams({ as: event.currentTarget.value === "list" ? "list" : "" })}><option value="drawing">drawing and list</option><option value="list">list</option></select></label>
      ${around ? html`<label>Distance <select value=${depth ?? "1"} onChange=${(/** @type {any} */ event) => setParams({ depth: event.currentTarget.value })}>${[1, 2, 3, 5, 10].map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>` : ""}
    </header>
    <${Shown} from=${from}>${(/** @type {GraphData} */ data) => html`<${Content} id=${id} data=${data} isWhole=${isWhole} showsDrawing=${as !== "list"} />`}<//>`;
}

/** @param {{id: number, data: GraphData, isWhole: boolean, showsDrawing: boolean}} props */
function Content({ id, data, isWhole, showsDrawing }) {
  const [selected, setSelected] = useState(/** @type {string | null} */ (null));
  const node = data.nodes.find((each) => each.id === selected) ?? null;
  if (!data.nodes.length) return html`<${Empty} title="This workflow has no jobs." />`;
  return html`
    <p class="muted">${isWhole
      ? `${countText(data.job_count, "job")} in ${countText(data.layer_count, "layer")}, ${countText(data.edge_count, "dependency", "dependencies")}. Jobs whose names differ in digits only are one box.`
      : `${countText(data.nodes.length, "box", "boxes")} of ${countText(data.total)}.`}
      ${data.omitted ? ` ${countText(data.omitted)} are left out.` : ""}${data.omitted_edges ? ` ${countText(data.omitted_edges, "line")} are left out.` : ""}
      ${isWhole && !data.edges.length ? html` No dependencies: <a href=${address(["w", id, "jobs"])}>${countText(data.job_count, "independent job")}</a>.` : ""}</p>
    <${Legend} nodes=${data.nodes} />
    ${showsDrawing ? html`<${Drawing} id=${id} data=${data} selected=${selected} onSelect=${setSelected} />` : ""}
    ${node ? html`<${Selection} id=${id} node=${node} />` : showsDrawing ? html`<p class="muted">Click a box for its jobs; double-click opens a group. Drag or use the arrow keys to move, the wheel or + and − to zoom.</p>` : ""}
    <${Paging} data=${data} />
    <h2>The same as a list</h2>
    <${NodeTable} id=${id} nodes=${data.nodes} />`;
}

/** The colours of the statuses that the boxes have. @param {{nodes: GraphNode[]}} props */
function Legend({ nodes }) {
  const labels = statusOrder().filter((label) => nodes.some((node) => node.counts?.[label]));
  return labels.length ? html`<ul class="counts" aria-label="Colours">${labels.map((label) => html`<li key=${label}><span class=${`swatch bar-${label}`}></span> <${Status} of=${label} /></li>`)}</ul>` : "";
}

/** @param {{id: number, data: GraphData, selected: string | null, onSelect: (id: string | null) => void}} props */
function Drawing({ id, data, selected, onSelect }) {
  const canvas = useRef(/** @type {any} */ (null));
  const view = useRef(/** @type {CanvasView | null} */ (null));
  const shape = `${data.kind} ${data.structure} ${data.nodes.length} ${data.nodes[0]?.id} ${data.offset}`;
  const scene = useMemo(() => new GraphScene(data.nodes, data.edges), [shape]);
  useEffect(() => {
    const onClick = (/** @type {number} */ x, /** @type {number} */ y, /** @type {boolean} */ isDouble) => {
      const node = scene.nodes[scene.nodeAt(x, y)];
      onSelect(node?.id ?? null);
      if (isDouble && node) openNode(id, node);
    };
    const made = new CanvasView(canvas.current, { draw: (...all) => scene.draw(...all), onClick, isHeavy: scene.isHeavy });
    view.current = made;
    made.resize();
    made.fit(scene.box, scene.nodes.length <= FEW_BOXES ? READABLE : 0);
    return () => made.end();
  }, [scene]);
  useEffect(() => {
    if (scene.nodes !== data.nodes) scene.setStatuses(data.nodes); // statuses change, positions stay
    scene.selected = data.nodes.findIndex((node) => node.id === selected);
    view.current?.redraw();
  }, [data, selected, preferences.value.theme, words.value]);
  return html`<div class="drawing">
    <canvas ref=${canvas} class="graph-canvas" style=${{ "--content": `${scene.box.bottom + 120}px` }} tabindex="0" role="img" aria-label=${`Graph of ${countText(data.nodes.length, "box", "boxes")}; the list below has the same content`}></canvas>
    <div class="drawing-tools">
      <button type="button" aria-label="Zoom in" onClick=${() => view.current?.zoom(1.25)}>+</button>
      <button type="button" aria-label="Zoom out" onClick=${() => view.current?.zoom(0.8)}>−</button>
      <button type="button" onClick=${() => view.current?.fit(scene.box)}>Fit</button>
    </div>
  </div>`;
}

/** @param {number} id @param {GraphNode} node */
function openNode(id, node) {
  if (node.job_id) go(["w", id, "j", node.job_id]);
  else if (node.count > 1) go(["w", id, "graph"], { ...route.value.params, open: node.id, offset: "", around: "" });
}

/** @param {GraphNode} node */
const isGroup = (node) => !node.job_id && node.count > 1 && node.kind !== "rest";

/** @param {GraphNode} node */
const filterOf = (node) => (node.job_id ? `id:${node.job_id}` : groupFilter({ ...node, group: node.label }));

/** The tables in which files and user data stand. @type {Record<string, string>} */
const DATA_VIEWS = { file: "files", files: "files", user_data: "user_data" };

/** What one can do with a node. @param {{id: number, node: GraphNode}} props */
const NodeLinks = ({ id, node }) => html`<span class="row">
  ${isGroup(node) ? html`<a href=${address(["w", id, "graph"], { ...route.value.params, open: node.id, offset: "", around: "" })}>open</a>` : ""}
  ${DATA_VIEWS[node.kind] ? html`<a href=${address(["w", id, "data", DATA_VIEWS[node.kind]], node.count === 1 ? { q: `name:${quoted(node.label)}` } : {})}>data</a>` : ""}
  ${node.kind === "jobs" ? html`<a href=${address(["w", id, "jobs"], { q: filterOf(node) })}>jobs</a>` : ""}
  ${node.job_id ? html`<a href=${address(["w", id, "j", node.job_id])}>job</a><a href=${address(["w", id, "graph"], { ...route.value.params, around: node.job_id, open: "", offset: "" })}>neighbours</a>` : ""}
</span>`;

/** @param {{id: number, node: GraphNode}} props */
const Selection = ({ id, node }) => html`<section class="card" aria-label="Chosen box" aria-live="polite">
  <h2><${Name} text=${node.label} /> ${node.count > 1 ? `× ${countText(node.count)}` : ""}</h2>
  ${node.counts ? html`<${StatusCounts} counts=${node.counts} href=${(/** @type {string} */ label) => address(["w", id, "jobs"], { q: `${filterOf(node)} status:${label}` })} />` : ""}
  <${NodeLinks} id=${id} node=${node} />
</section>`;

/** @param {{data: GraphData}} props */
function Paging({ data }) {
  const shown = data.nodes.length;
  if (!route.value.params.open || data.offset + shown >= data.total) return data.offset ? html`<p><button type="button" onClick=${() => setParams({ offset: Math.max(0, data.offset - OPEN_NODES) })}>Earlier members</button></p>` : null;
  return html`<p class="row">
    ${data.offset ? html`<button type="button" onClick=${() => setParams({ offset: Math.max(0, data.offset - OPEN_NODES) })}>Earlier members</button>` : ""}
    <button type="button" onClick=${() => setParams({ offset: data.offset + OPEN_NODES })}>Further members</button>
  </p>`;
}

const MOST_LISTED = 300;
/** @type {Record<string, string>} */
const KIND_WORDS = { job: "job", jobs: "jobs", file: "file", files: "files", user_data: "user data", rest: "others" };

/** @param {{id: number, nodes: GraphNode[]}} props */
const NodeTable = ({ id, nodes }) => html`<${PlainTable} label="Boxes of the graph" rows=${nodes.slice(0, MOST_LISTED)} keyOf=${(/** @type {GraphNode} */ node) => node.id} columns=${[
    { title: "Layer", isNumber: true, show: (/** @type {GraphNode} */ node) => node.layer + 1 },
    { title: "Name", show: (/** @type {GraphNode} */ node) => html`<${Name} text=${node.label} />` },
    { title: "Kind", show: (/** @type {GraphNode} */ node) => KIND_WORDS[node.kind] ?? node.kind },
    { title: "Number", isNumber: true, show: (/** @type {GraphNode} */ node) => countText(node.count) },
    { title: "Statuses", show: (/** @type {GraphNode} */ node) => (node.counts && Object.keys(node.counts).length ? html`<${StatusBar} counts=${node.counts} />` : "") },
    { title: "", show: (/** @type {GraphNode} */ node) => html`<${NodeLinks} id=${id} node=${node} />` },
  ]} />
  ${nodes.length > MOST_LISTED ? html`<p class="muted">The first ${MOST_LISTED} of ${countText(nodes.length)}; <a href=${address(["w", id, "jobs"])}>Jobs</a> lists all.</p>` : ""}`;
