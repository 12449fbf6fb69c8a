// When which runner worked on what: lanes of bars that can be zoomed, and the same as a table.

import { html, useEffect, useMemo, useRef, useState } from "../vendor/ui.js";
import { useData } from "../core/data.js";
import { countText, durationText, percentText } from "../core/quantities.js";
import { preferences } from "../core/preferences.js";
import { address, route, setParams } from "../core/router.js";
import { milliseconds } from "../core/times.js";
import { statusLook, words } from "../core/words.js";
import { Command, Empty, Shown, Status, Time } from "../parts/basics.js";
import { PlainTable } from "../parts/plain_table.js";
import { Usage } from "../parts/usage.js";
import { GUTTER, TimelineScene } from "../parts/timeline_scene.js";

/** @typedef {import("../parts/timeline_scene.js").TimelineData} TimelineData */

const LANES = 50;

/** @param {{id: number}} props */
export function Timeline({ id }) {
  const { from, to, by = "runner", offset = "0" } = route.value.params;
  const [width, setWidth] = useState(1000);
  const loaded = useData(`api/workflows/${id}/views/timeline`, { from, to, by, offset, limit: LANES, width: Math.max(200, width - GUTTER) });
  return html`<header class="view-head"><h1>Timeline</h1><span class="grow"></span>
      ${from || to ? html`<button type="button" onClick=${() => setParams({ from: "", to: "" })}>Whole time</button>` : ""}
      <label>A lane for each <select value=${by} onChange=${(/** @type {any} */ event) => setParams({ by: event.currentTarget.value, offset: "" })}><option value="runner">runner</option><option value="host">host</option></select></label>
    </header>
    <${Shown} from=${loaded}>${(/** @type {TimelineData} */ data) =>
      data.attempt_count || from
        ? html`<${Content} id=${id} data=${data} by=${by} onWidth=${setWidth} />`
        : html`<${Empty} title="Nothing has run yet."><p class="muted">${data.unplaced ? `${countText(data.unplaced, "attempt")} began; the start is not known yet.` : ""}</p><//>`}<//>`;
}

/** @param {{id: number, data: TimelineData, by: string, onWidth: (width: number) => void}} props */
function Content({ id, data, by, onWidth }) {
  const [bar, setBar] = useState(-1);
  const busy = data.lanes.reduce((sum, lane) => sum + lane.busy_s, 0);
  const place = Number(route.value.params.offset ?? 0);
  return html`
    <p class="muted">${countText(data.attempt_count, "attempt")} on ${countText(data.lane_count, by === "host" ? "host" : "runner")} from <${Time} at=${1000 * data.from_s} /> to <${Time} at=${1000 * data.to_s} /> (${durationText(data.to_s - data.from_s)}).${data.unplaced ? ` ${countText(data.unplaced, "running attempt")} without a known start ${data.unplaced === 1 ? "is" : "are"} not shown.` : ""}</p>
    <ul class="counts">${data.statuses.map((label) => html`<li key=${label}><span class=${`swatch bar-${label}`}></span> <${Status} of=${label} /></li>`)}<li><span class="swatch idle"></span> runner without a job</li></ul>
    <${Drawing} data=${data} selected=${bar} onSelect=${setBar} onWidth=${onWidth} />
    ${bar >= 0 && bar < data.bars.lane.length ? html`<${Selection} id=${id} data=${data} bar=${bar} by=${by} />` : html`<p class="muted">Drag to choose a time; click a bar for its jobs. The wheel with Ctrl, or + and −, zoom; the arrow keys move.</p>`}
    <p class="row">
      ${place > 0 ? html`<button type="button" onClick=${() => setParams({ offset: Math.max(0, place - LANES) })}>Earlier lanes</button>` : ""}
      ${place + data.lanes.length < data.lane_count ? html`<button type="button" onClick=${() => setParams({ offset: place + LANES })}>Further lanes</button>` : ""}
    </p>
    <h2>The same as a table</h2>
    <${PlainTable} label="Lanes" rows=${data.lanes} keyOf=${(/** @type {any} */ lane) => lane.id} columns=${[
      { title: by === "host" ? "Host" : "Runner", show: (/** @type {any} */ lane) => (by === "host" ? lane.label : html`<a href=${address(["w", id, "jobs"], { q: `runner:${lane.id}` })}>${lane.id}</a> ${lane.label}`) },
      { title: "Attempts", isNumber: true, show: (/** @type {any} */ lane) => countText(lane.attempts) },
      { title: "At once", isNumber: true, show: (/** @type {any} */ lane) => lane.rows },
      { title: "Sum of run times", isNumber: true, show: (/** @type {any} */ lane) => durationText(lane.busy_s) },
      { title: "Share of all", isNumber: true, show: (/** @type {any} */ lane) => percentText(busy ? (100 * lane.busy_s) / busy : 0) },
      { title: "Started", show: (/** @type {any} */ lane) => html`<${Time} at=${lane.started_s === null ? null : 1000 * lane.started_s} />` },
      { title: "Ended", show: (/** @type {any} */ lane) => html`<${Time} at=${lane.ended_s === null ? null : 1000 * lane.ended_s} />` },
    ]} />
    <p><${Command} text=${`torc results list ${id}`} /></p>`;
}

/** @param {{data: TimelineData, selected: number, onSelect: (bar: number) => void, onWidth: (width: number) => void}} props */
function Drawing({ data, selected, onSelect, onWidth }) {
  const box = useRef(/** @type {any} */ (null));
  const canvas = useRef(/** @type {any} */ (null));
  const drag = useRef(/** @type {{from: number, to: number} | null} */ (null));
  const scene = useMemo(() => new TimelineScene(data), [data]);
  scene.selected = selected;
  const draw = () => {
    const { clientWidth, clientHeight } = canvas.current;
    const ratio = devicePixelRatio || 1;
    canvas.current.width = Math.round(clientWidth * ratio);
    canvas.current.height = Math.round(clientHeight * ratio);
    const context = canvas.current.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    scene.draw(context, box.current.scrollTop, clientWidth, clientHeight);
    if (drag.current) {
      context.globalAlpha = 0.2;
      context.fillStyle = "#3b82f6";
      context.fillRect(drag.current.from, 0, drag.current.to - drag.current.from, clientHeight);
      context.globalAlpha = 1;
    }
  };
  useEffect(draw, [scene, selected, preferences.value, words.value]);
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (!canvas.current) return; // the view is gone
      onWidth(canvas.current.clientWidth);
      draw();
    });
    observer.observe(canvas.current);
    return () => observer.disconnect();
  }, [scene]);

  const width = () => canvas.current.clientWidth;
  const zoomTo = (/** @type {number} */ from, /** @type {number} */ to) => to - from >= 0.01 && setParams({ from: from.toFixed(3), to: to.toFixed(3) });
  const zoom = (/** @type {number} */ factor, /** @type {number} */ x = (width() + GUTTER) / 2) => {
    const middle = scene.timeAt(x, width());
    zoomTo(middle - (middle - data.from_s) * factor, middle + (data.to_s - middle) * factor);
  };
  const shift = (/** @type {number} */ share) => {
    const span = (data.to_s - data.from_s) * share;
    zoomTo(data.from_s + span, data.to_s + span);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    /** @type {Record<string, () => void>} */
    const keys = { ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25), "+": () => zoom(0.5), "-": () => zoom(2) };
    if (!keys[event.key] || event.ctrlKey) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  const onWheel = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey) return; // the plain wheel scrolls the lanes
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, event.offsetX);
  };
  const onPointer = (/** @type {any} */ event) => {
    const x = event.offsetX;
    if (event.type === "pointerdown") {
      drag.current = { from: x, to: x };
      canvas.current.setPointerCapture(event.pointerId);
    } else if (event.type === "pointermove" && drag.current) {
      drag.current.to = x;
      draw();
    } else if (event.type === "pointermove") {
      canvas.current.title = barText(data, scene.barAt(x, event.offsetY + box.current.scrollTop, width()));
    } else if (event.type === "pointerup" && drag.current) {
      const [from, to] = [drag.current.from, x].sort((first, second) => first - second);
      drag.current = null;
      if (to - from < 5) onSelect(scene.barAt(x, event.offsetY + box.current.scrollTop, width()));
      else zoomTo(scene.timeAt(Math.max(GUTTER, from), width()), scene.timeAt(to, width()));
    }
  };
  return html`<div class="drawing">
    <div class="timeline-box" ref=${box} onScroll=${draw} style=${{ "--content": `${scene.height + 12}px` }}>
      <canvas ref=${canvas} class="timeline-canvas" tabindex="0" role="img" aria-label="Timeline of attempts by runner; the table below has the same content"
        onKeyDown=${onKeyDown} onWheel=${onWheel} onPointerDown=${onPointer} onPointerMove=${onPointer} onPointerUp=${onPointer}></canvas>
      <div class="timeline-rest"></div>
    </div>
    <div class="drawing-tools below">
      <button type="button" aria-label="Zoom in" onClick=${() => zoom(0.5)}>+</button>
      <button type="button" aria-label="Zoom out" onClick=${() => zoom(2)}>−</button>
    </div>
  </div>`;
}

/** What a bar stands for; empty for none. @param {TimelineData} data @param {number} bar */
function barText({ bars, lanes, statuses }, bar) {
  if (bar < 0) return "";
  return `${countText(bars.count[bar], "attempt")} ${statusLook(statuses[bars.status[bar]]).word} on ${lanes[bars.lane[bar]].label}, ${durationText(bars.end[bar] - bars.start[bar])}`;
}

/** Requested against used, of the attempt of a bar. @param {{id: number, job: number, end: number}} props */
function AttemptUsage({ id, job, end }) {
  const record = useData(`api/jobs/${job}`, {}, { live: false, everyMs: 0 });
  const attempts = useData(`dash/workflows/${id}/jobs/${job}/attempts`, {}, { live: false, everyMs: 0 });
  const asked = record.data?.resource_requirements_id;
  const requirements = useData(asked ? `api/resource_requirements/${asked}` : null, {}, { live: false, everyMs: 0 });
  const ended = (attempts.data?.attempts ?? []).filter((/** @type {any} */ each) => each.result);
  const distance = (/** @type {any} */ each) => Math.abs((milliseconds(each.result.completion_time) ?? 0) - 1000 * end);
  const nearest = ended.reduce((/** @type {any} */ best, /** @type {any} */ each) => (best && distance(best) <= distance(each) ? best : each), null);
  return html`${record.data ? html`<p class="field-title">${record.data.name}${nearest ? `, attempt ${nearest.attempt_id} of run ${nearest.run_id}` : ""}</p>` : ""}
    <${Usage} result=${nearest?.result} requirements=${requirements.data} />`;
}

/** @param {{id: number, data: TimelineData, bar: number, by: string}} props */
function Selection({ id, data, bar, by }) {
  const { bars, lanes, statuses, from_s: begin } = data;
  const lane = lanes[bars.lane[bar]];
  const label = statuses[bars.status[bar]];
  const count = bars.count[bar];
  const q = `${by === "host" ? `node:${lane.label}` : `runner:${lane.id}`} status:${label}`;
  return html`<section class="card" aria-label="Chosen bar" aria-live="polite">
    <p><b>${countText(count, "attempt")}</b>, ${statusLook(label).word}, on ${lane.label}, from <${Time} at=${1000 * (begin + bars.start[bar])} />, ${durationText(bars.end[bar] - bars.start[bar])}.</p>
    ${count === 1 ? html`<${AttemptUsage} key=${bars.job_id[bar]} id=${id} job=${bars.job_id[bar]} end=${begin + bars.end[bar]} />` : ""}
    <p class="row"><a href=${address(["w", id, "j", bars.job_id[bar]])}>${count > 1 ? "The first job" : "The job"}</a>
      <a href=${address(["w", id, "jobs"], { q, sort: "-seconds" })}>Jobs of this ${by} with this status</a>
      ${count > 1 ? html`<button type="button" onClick=${() => setParams({ from: (begin + bars.start[bar]).toFixed(3), to: (begin + bars.end[bar]).toFixed(3) })}>Zoom to them</button>` : ""}</p>
  </section>`;
}
