// What happened when: stored events and, on top, those that come.

import { html, useEffect, useMemo, useState } from "../vendor/ui.js";
import { useData } from "../core/data.js";
import { shellWord } from "../core/orders.js";
import { liveEvents, stream } from "../core/live.js";
import { server } from "../core/api.js";
import { countText } from "../core/quantities.js";
import { address, route, setParams } from "../core/router.js";
import { words } from "../core/words.js";
import { Command, Empty, Failure, Loading, Time } from "../parts/basics.js";
import { PlainTable } from "../parts/plain_table.js";

const STORED = 200;
const STORED_OF_JOB = 1000;
const MOST_SHOWN = 500;
const LEVELS = ["debug", "info", "warning", "error"];

/** @typedef {{id: number, type: string, severity: string, timestamp: number | string, data: Record<string, any>}} ShownEvent */

/** @param {{id: number}} props */
export function Events({ id }) {
  const { level = "info", type = "", job = "" } = route.value.params;
  const stored = useData("api/events", { workflow_id: id, limit: STORED, sort_by: "id", reverse_sort: true, category: type }, { live: false, everyMs: 0 });
  const [upTo, setUpTo] = useState(0);
  const [clearedTo, setClearedTo] = useState(0);
  const events = useMemo(() => merged(stored.data?.items ?? [], liveEvents.value), [stored.data, liveEvents.value]);
  const newest = events[0]?.id ?? 0;
  useEffect(() => {
    if (!upTo && newest) setUpTo(newest); // what comes later waits for a click, so that the list does not jump
  }, [newest]);
  const matching = events.filter((event) => event.id > clearedTo && fits(event, level, type, job));
  const shown = matching.filter((event) => event.id <= upTo).slice(0, MOST_SHOWN);
  const waiting = matching.length - matching.filter((event) => event.id <= upTo).length;
  const types = Object.keys(words.value.event_types);
  return html`<header class="view-head"><h1>Events</h1><span class="grow"></span>
      <span class="muted" role="status">${stream.value.state === "live" && !server.value.isAway ? "Live" : "Not live now"}</span>
      <button type="button" onClick=${() => (setClearedTo(newest), setUpTo(newest))}>Clear the list</button>
    </header>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label>Level <select value=${level} onChange=${(/** @type {any} */ event) => setParams({ level: event.currentTarget.value })}>${LEVELS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
      <label>Type <select value=${type} onChange=${(/** @type {any} */ event) => setParams({ type: event.currentTarget.value })}><option value="">all</option>${types.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
      <label>Job <input data-search type="search" value=${job} placeholder="name or id" onInput=${(/** @type {any} */ event) => setParams({ job: event.currentTarget.value })} /></label>
    </form>
    <p class="new-rows" aria-live="polite">${waiting ? html`<button type="button" class="primary" onClick=${() => setUpTo(newest)}>Show ${countText(waiting, "new event")}</button>` : ""}</p>
    ${stored.data === null && !events.length ? (stored.error ? html`<${Failure} error=${stored.error} />` : html`<${Loading} />`) : shown.length ? html`<${EventTable} id=${id} events=${shown} />` : html`<${Empty} title="No events here." />`}
    <p><${Command} text=${`torc events monitor ${id}`} /></p>`;
}

/** The events of one job, newest first. @param {{id: number, job: number, name: string}} props */
export function JobEvents({ id, job, name }) {
  const stored = useData("api/events", { workflow_id: id, text: name, limit: STORED_OF_JOB, sort_by: "id", reverse_sort: true }, { live: false, everyMs: 0 });
  const events = merged(stored.data?.items ?? [], liveEvents.value).filter((event) => event.data.job_id === job);
  if (stored.data === null) return stored.error ? html`<${Failure} error=${stored.error} />` : html`<${Loading} />`;
  const rest = stored.data.has_more ? html`<p class="muted">Of the last ${countText(STORED_OF_JOB)} events with this name in them.</p>` : "";
  return html`${events.length ? html`<${EventTable} id=${id} events=${events} />` : html`<p class="muted">No event is about this job.</p>`}${rest}
    <p><${Command} text=${`torc events list ${id} --text ${shellWord(name)}`} /></p>`;
}

/** @param {{id: number, events: ShownEvent[]}} props */
const EventTable = ({ id, events }) => html`<${PlainTable} label="Events" rows=${events} keyOf=${(/** @type {ShownEvent} */ event) => event.id} classOf=${(/** @type {ShownEvent} */ event) => `level-${event.severity}`} columns=${[
  { title: "Time", show: (/** @type {ShownEvent} */ event) => html`<${Time} at=${event.timestamp} />` },
  { title: "Level", show: (/** @type {ShownEvent} */ event) => event.severity },
  { title: "Type", show: (/** @type {ShownEvent} */ event) => html`<span title=${words.value.event_types[event.type]?.meaning ?? ""}>${event.type}</span>` },
  { title: "Job", show: (/** @type {ShownEvent} */ event) => (event.data.job_id ? html`<a href=${address(["w", id, "j", event.data.job_id])}>${event.data.job_name ?? event.data.job_id}</a>` : "") },
  { title: "Details", show: (/** @type {ShownEvent} */ event) => html`<span class="mono details">${detailsText(event.data)}</span>` },
]} />`;

const KNOWN = new Set(["event_type", "job_id", "job_name", "severity", "workflow_id"]);

/** @param {Record<string, any>} data */
const detailsText = (data) =>
  Object.entries(data)
    .filter(([name, value]) => !KNOWN.has(name) && value !== null && value !== "")
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(" ");

/**
 * @param {any[]} stored
 * @param {import("../core/live.js").LiveEvent[]} live
 * @returns {ShownEvent[]} newest first
 */
function merged(stored, live) {
  const known = new Map();
  for (const event of stored) {
    const type = event.data?.event_type ?? "";
    known.set(event.id, { id: event.id, type, severity: words.value.event_types[type]?.severity ?? "info", timestamp: event.timestamp, data: event.data ?? {} });
  }
  for (const event of live) known.set(event.id, event);
  return [...known.values()].sort((a, b) => b.id - a.id);
}

/** @param {ShownEvent} event @param {string} level @param {string} type @param {string} job */
function fits(event, level, type, job) {
  if (LEVELS.indexOf(event.severity) < LEVELS.indexOf(level)) return false;
  if (type && event.type !== type) return false;
  return !job || String(event.data.job_id) === job || String(event.data.job_name ?? "").includes(job);
}
