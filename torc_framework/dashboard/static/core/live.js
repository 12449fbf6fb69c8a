// The live events of the chosen workflow, applied at most four times a second.

import { effect, signal } from "../vendor/ui.js";
import { refreshes, session } from "./api.js";
import { workflowId } from "./router.js";
import { SharedStream } from "./shared_stream.js";

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
/** Milliseconds after which a tab that is not seen gets no events. */
const HIDDEN_MS = 10_000;
/** Milliseconds without a word of the shared worker, which says every 5 seconds that it runs, after which it counts as ended. */
const LOST_MS = 15_000;

/** Makes the shared stream send the events of a workflow to this tab. @type {((workflow: number | null, user: string) => void) | null} */
let follow = null;
/** @type {number | null} */
let streamOf = null;
let followedAs = "";
/** @type {LiveEvent[]} */
let arrived = [];
let timer = 0;
let hiddenTimer = 0;
let heardAt = 0;
let lostTimer = 0;

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

/**
 * Take events; they are applied together with others a little later.
 * @param {LiveEvent[]} events
 */
export function receive(events) {
  arrived.push(...events);
  if (arrived.length > MOST_EVENTS) arrived = arrived.slice(-MOST_EVENTS);
  applySoon();
}

/** @param {import("./shared_stream.js").StreamMessage} message */
function onMessage({ name, data }) {
  heardAt = Date.now();
  if (streamOf === null || name === "alive" || (data && data.workflow_id !== streamOf)) return;
  if (name === "message") receive([{ ...data, type: data.event_type }]);
  else if (name === "counts") applySoon(); // too many events to send: the numbers have changed
  else if (name === "resync") refreshes.value += 1;
  else if (name === "broken") become("reconnecting");
  else onState(data.state);
}

/** @param {"connecting" | "live" | "reconnecting" | "gone"} state */
function onState(state) {
  const before = stream.value.state;
  if (state === "live" && before === "reconnecting") refreshes.value += 1;
  else if (state === "live" && before !== "live") applySoon(); // something may have happened since the page read its data
  become(state);
}

/** Use the stream that the tabs of this browser share, or one of this tab where there are no shared workers. */
function connect() {
  if (!("SharedWorker" in globalThis)) return streamAlone();
  // Tabs that were loaded from another version have a worker of their own.
  const name = `torc-dash ${session.value?.version}`;
  const worker = new SharedWorker(new URL("stream_worker.js", import.meta.url), { type: "module", name });
  worker.port.onmessage = ({ data }) => onMessage(data);
  /** @param {() => void} another connects to another stream */
  const replace = (another) => {
    clearInterval(lostTimer);
    worker.port.close();
    become("reconnecting");
    another();
    follow?.(streamOf, followedAs);
  };
  worker.onerror = () => replace(streamAlone);
  heardAt = Date.now();
  lostTimer = setInterval(() => {
    if (streamOf !== null && Date.now() - heardAt > LOST_MS) replace(connect);
  }, LOST_MS / 5);
  follow = (workflow, user) => worker.port.postMessage({ workflow, user });
}

function streamAlone() {
  const own = new SharedStream(document.baseURI);
  follow = (workflow, user) => own.follow(onMessage, workflow, user);
}

/** Follow the chosen workflow if a reader is logged in and sees the tab. @param {boolean} isSeen */
function update(isSeen) {
  const id = session.value?.logged_in && isSeen ? workflowId() : null;
  const user = `${session.value?.user}`;
  if (id === streamOf && (id === null || user === followedAs)) return;
  if (id !== null && !follow) connect();
  streamOf = id;
  followedAs = user;
  heardAt = Date.now(); // a tab that was not seen may have been stopped
  become(id === null ? "off" : "connecting");
  follow?.(id, user);
}

/** Follow the chosen workflow again, which was gone. */
export function followAgain() {
  streamOf = null;
  update(!document.hidden);
}

/** Keep the stream on the chosen workflow from now on. */
export function followWorkflow() {
  effect(() => {
    const id = workflowId();
    if (id !== streamOf) liveEvents.value = [];
    update(!document.hidden);
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
      hiddenTimer = setTimeout(() => update(false), HIDDEN_MS);
    } else if (streamOf === null && workflowId() !== null) {
      update(true);
      refreshes.value += 1;
    }
  });
  addEventListener("pagehide", () => update(false));
  addEventListener("pageshow", () => update(!document.hidden)); // also after the tab went back to this page
}
