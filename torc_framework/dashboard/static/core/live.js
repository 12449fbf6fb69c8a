// The one event stream of a tab: events of the chosen workflow, applied at most four times a second.

import { effect, signal } from "../vendor/ui.js";
import { refreshes, server, session } from "./api.js";
import { workflowId } from "./router.js";

/**
 * @typedef {{id: number, type: string, severity: string, timestamp: string | number, data: Record<string, any>}} LiveEvent
 */

/** The newest events of the chosen workflow, newest last; at most `MOST_EVENTS`. @type {{value: LiveEvent[]}} */
export const liveEvents = signal(/** @type {LiveEvent[]} */ ([]));

/** Increases when something has changed in the chosen workflow. */
export const changes = signal(0);

/** The state of the stream. @type {{value: {state: "off" | "live" | "connecting" | "reconnecting" | "gone", since: number}}} */
export const stream = signal({ state: /** @type {any} */ ("off"), since: Date.now() });

export const MOST_EVENTS = 5000;
const APPLY_MS = 250;
/** A browser has six connections to a host, and a stream holds one: tabs that are not seen give theirs back. */
const HIDDEN_MS = 10_000;
const RETRY_MS = 3000;

/** @type {EventSource | null} */
let source = null;
/** @type {number | null} */
let streamOf = null;
/** @type {LiveEvent[]} */
let arrived = [];
let timer = 0;
let hiddenTimer = 0;

/** @param {typeof stream.value.state} state */
function become(state) {
  if (stream.value.state !== state) stream.value = { state, since: Date.now() };
}

function apply() {
  timer = 0;
  if (arrived.length) liveEvents.value = [...liveEvents.value, ...arrived].slice(-MOST_EVENTS);
  arrived = [];
  changes.value += 1;
}

function applySoon() {
  if (!timer) timer = setTimeout(apply, APPLY_MS);
}

/** @param {MessageEvent} message */
function onEvent(message) {
  const event = read(message);
  if (event) receive([{ ...event, type: event.event_type }]);
}

/**
 * Take events; they are applied together with others a little later.
 * @param {LiveEvent[]} events
 */
export function receive(events) {
  arrived.push(...events);
  if (arrived.length > MOST_EVENTS) arrived = arrived.slice(-MOST_EVENTS);
  applySoon();
}

/** @param {MessageEvent} message */
function read(message) {
  try {
    return JSON.parse(message.data);
  } catch {
    return null; // a frame that a lost connection cut
  }
}

/** @param {number} id */
function open(id) {
  close();
  streamOf = id;
  become("connecting");
  source = new EventSource(`dash/workflows/${id}/events`);
  source.onmessage = onEvent;
  source.onerror = () => {
    become("reconnecting");
    // The browser gives up after an answer that is no stream, such as a proxy's 502.
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => streamOf === id && open(id), RETRY_MS);
  };
  source.addEventListener("state", (message) => onState(read(/** @type {MessageEvent} */ (message))));
  source.addEventListener("counts", applySoon); // too many events to send: the numbers have changed
  source.addEventListener("resync", () => {
    refreshes.value += 1;
  });
}

/** @param {{state: "connecting" | "live" | "reconnecting" | "gone"} | null} frame */
function onState(frame) {
  if (!frame) return;
  if (frame.state === "live" && stream.value.state === "reconnecting") refreshes.value += 1;
  become(frame.state);
  if (frame.state === "gone") source?.close();
}

function close() {
  source?.close();
  source = null;
  streamOf = null;
  become("off");
}

/** Keep the stream on the chosen workflow from now on. */
export function followWorkflow() {
  effect(() => {
    const id = workflowId();
    const isIn = session.value?.logged_in;
    if (streamOf === id && isIn) return;
    liveEvents.value = [];
    if (id !== null && isIn && !document.hidden) open(id);
    else close();
  });
  effect(() => {
    const isAway = server.value.isAway;
    const id = workflowId();
    if (!isAway && id !== null && !document.hidden && source?.readyState === EventSource.CLOSED) open(id);
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    const id = workflowId();
    if (document.hidden) {
      hiddenTimer = setTimeout(close, HIDDEN_MS);
    } else if (id !== null && !source) {
      open(id);
      refreshes.value += 1;
    }
  });
}
