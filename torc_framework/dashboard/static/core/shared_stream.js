// The one event stream of several readers: events of all their workflows in one connection.
//
// A browser has six connections to a host, and a stream holds one for as long as it is open. `stream_worker.js` runs this
// for all tabs of a browser; a browser without shared workers runs it in each tab.

/**
 * @typedef {{name: "message" | "state" | "counts" | "resync" | "broken" | "alive", data: any}} StreamMessage
 * What a reader gets: a frame of the stream, `broken` when the connection is lost, or `alive` from a worker that runs.
 * @typedef {(message: StreamMessage) => void} StreamReader
 */

const RETRY_MS = 3000;
/** Readers that come and go together change the stream once. */
const GATHER_MS = 20;
/** Less than the server's limit for one stream, 16; the workflows that were chosen first are left out. */
const MOST_WORKFLOWS = 12;

export class SharedStream {
  /** @type {Map<StreamReader, number>} */
  #workflowOf = new Map();
  /** The latest state frame by workflow. @type {Map<number, any>} */
  #states = new Map();
  /** The id of the latest event by workflow, from which another connection goes on. @type {Map<number, number>} */
  #lastIds = new Map();
  /** @type {EventSource | null} */
  #source = null;
  #streamed = "";
  #user = "";
  #timer = 0;

  /** @param {string} base URL of the page */
  constructor(base) {
    this.base = base;
  }

  /**
   * Send the events of a workflow to a reader from now on; of none with null.
   * @param {StreamReader} reader
   * @param {number | null} workflow
   * @param {string} user who is logged in: another one gets a connection of their own
   */
  follow(reader, workflow, user) {
    this.#workflowOf.delete(reader);
    if (workflow !== null) {
      this.#workflowOf.set(reader, workflow);
      const state = this.#states.get(workflow);
      if (user !== this.#user) this.#close();
      else if (state?.state === "gone") this.#states.delete(workflow);
      else if (state) reader({ name: "state", data: state });
      this.#user = user;
    }
    this.#updateSoon(GATHER_MS);
  }

  /** @param {number} pause milliseconds */
  #updateSoon(pause) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#update(), pause);
  }

  /** Open the stream of the workflows that have readers, unless it is open. */
  #update() {
    const followed = [...new Set(this.#workflowOf.values())].slice(-MOST_WORKFLOWS);
    const workflows = followed.filter((id) => this.#states.get(id)?.state !== "gone").sort((a, b) => a - b);
    const isOpen = this.#source !== null && this.#source.readyState !== EventSource.CLOSED;
    if (workflows.join() === this.#streamed && (isOpen || !workflows.length)) return;
    const lastIds = workflows.filter((id) => this.#lastIds.has(id)).map((id) => `${id}=${this.#lastIds.get(id)}`);
    const states = workflows.map((id) => /** @type {const} */ ([id, this.#states.get(id)]));
    this.#close();
    if (!workflows.length) return;
    this.#states = new Map(states.filter(([, state]) => state));
    this.#streamed = workflows.join();
    const query = new URLSearchParams({ workflows: this.#streamed });
    if (lastIds.length) query.set("last_event_id", lastIds.join());
    this.#open(new EventSource(new URL(`dash/events?${query}`, this.base)));
  }

  /** @param {EventSource} source */
  #open(source) {
    this.#source = source;
    for (const name of /** @type {const} */ (["message", "state", "counts", "resync"])) {
      source.addEventListener(name, (message) => this.#take(source, name, /** @type {MessageEvent} */ (message)));
    }
    source.onerror = () => {
      if (source !== this.#source) return;
      // What is gone stays so, and the server ends a stream whose workflows are all gone.
      for (const [id, { state }] of this.#states) if (state !== "gone") this.#states.delete(id);
      for (const [reader, workflow] of this.#workflowOf) if (!this.#states.has(workflow)) reader({ name: "broken", data: null });
      // The browser gives up after an answer that is no stream, such as a proxy's 502.
      if (source.readyState === EventSource.CLOSED) this.#updateSoon(RETRY_MS);
    };
  }

  /**
   * Pass a frame on to the readers of its workflow.
   * @param {EventSource} source
   * @param {StreamMessage["name"]} name
   * @param {MessageEvent} message
   */
  #take(source, name, message) {
    const data = read(message);
    if (source !== this.#source || !data) return;
    const id = data.workflow_id;
    const lastId = { message: data.id, counts: data.to, resync: data.last_event_id }[/** @type {string} */ (name)];
    if (lastId !== undefined) this.#lastIds.set(id, lastId);
    if (name === "state") {
      this.#states.set(id, data);
      if (data.last_event_id !== null && !this.#lastIds.has(id)) this.#lastIds.set(id, data.last_event_id);
      if (data.state === "gone") this.#updateSoon(GATHER_MS);
    }
    for (const [reader, workflow] of this.#workflowOf) if (workflow === id) reader({ name, data });
  }

  #close() {
    this.#source?.close();
    this.#source = null;
    this.#streamed = "";
    this.#states.clear();
    this.#lastIds.clear();
  }
}

/** @param {MessageEvent} message */
function read(message) {
  try {
    return JSON.parse(message.data);
  } catch {
    return null; // a frame that a lost connection cut
  }
}
