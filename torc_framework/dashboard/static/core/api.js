// Requests to the server: relative addresses, JSON, the token against forged requests, and whether the server answers.
//
// `api/` is the API of torc-server, `dash/` are the routes of torc-dash.

import { signal } from "../vendor/ui.js";
import { sizeText } from "./quantities.js";

/** A refused or failed request; `status` is 0 where no answer came. */
export class RequestFailure extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * @typedef {object} Session
 * @property {boolean} logged_in
 * @property {string | null} user
 * @property {boolean} is_owner whether the reader may run commands and read files with the rights of torc-dash
 * @property {string | null} csrf
 * @property {("token" | "password")[]} logins how a reader may log in
 * @property {boolean} upstream_requires_login
 * @property {string} version
 */

/** The reader's session; null until the first answer. @type {{value: Session | null}} */
export const session = signal(/** @type {Session | null} */ (null));

/**
 * Whether the server answers: since when it does not, and when the page tries again (milliseconds since the epoch).
 * @type {{value: {isAway: boolean, since: number, nextTry: number}}}
 */
export const server = signal({ isAway: false, since: 0, nextTry: 0 });

/** Increases when the server answers again, and when a reader asks for new data. */
export const refreshes = signal(0);

/** Whether the reader may run commands. */
export const isOwner = () => Boolean(session.value?.is_owner);

/** Bytes of a body from which proxies may refuse it: nginx takes 1 MiB by default. */
const LARGE_BYTES = 1e6;
/** Statuses of a proxy whose server is away. */
const AWAY = new Set([0, 502, 503, 504]);
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15_000;
/** Milliseconds without an answer after which the page asks whether the server answers. */
const SILENCE_MS = 3000;
/** Milliseconds that the server has for the answer to that. */
const ANSWER_MS = 3000;
let pause = FIRST_PAUSE_MS;
let retryTimer = 0;
/** When the server answered last, milliseconds since the epoch. */
let answeredAt = Date.now();
let isProbing = false;

function wentAway() {
  if (server.value.isAway) return;
  pause = FIRST_PAUSE_MS;
  server.value = { isAway: true, since: answeredAt, nextTry: Date.now() + pause };
  retryTimer = setTimeout(tryAgain, pause);
}

/** Note an answer, also a late one to a request that was made before the server went away. */
function answered() {
  answeredAt = Date.now();
  if (!server.value.isAway) return;
  clearTimeout(retryTimer);
  server.value = { isAway: false, since: 0, nextTry: 0 };
  refreshes.value += 1;
}

const probe = () => get("api/ping", {}, AbortSignal.timeout(ANSWER_MS));

async function tryAgain() {
  try {
    session.value = await get("dash/session");
    if (session.value?.logged_in) await probe();
    answered();
  } catch {
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    if (!server.value.isAway) return;
    server.value = { ...server.value, nextTry: Date.now() + pause };
    retryTimer = setTimeout(tryAgain, pause);
  }
}

/** From now on, ask a server that is silent whether it answers: one that is stopped refuses no request. */
export function watchServer() {
  setInterval(async () => {
    const isSilent = Date.now() - answeredAt >= SILENCE_MS;
    if (!isSilent || isProbing || document.hidden || server.value.isAway || !session.value?.logged_in) return;
    isProbing = true;
    try {
      await probe();
    } catch {
      // `request` has noted it
    } finally {
      isProbing = false;
    }
  }, 1000);
}

/**
 * Show the log-in, with the ways in that are open now.
 * @param {Session} ended
 */
async function forgetSession(ended) {
  session.value = { ...ended, logged_in: false, is_owner: false };
  try {
    session.value = await get("dash/session");
  } catch {
    // the ways in are those of the last session
  }
}

/** Answers by address, for `If-None-Match`; the oldest are forgotten. @type {Map<string, {etag: string, body: any}>} */
const tagged = new Map();
const MOST_TAGGED = 60;

/**
 * Get JSON.
 * @param {string} path relative to the page, such as "api/workflows/1"
 * @param {Record<string, string | number | boolean | undefined | null>} [params]
 * @param {AbortSignal} [aborted]
 * @returns {Promise<any>}
 */
export async function get(path, params = {}, aborted) {
  const url = withParams(path, params);
  const known = tagged.get(url);
  const answer = await request(url, { headers: known ? { "If-None-Match": known.etag } : {}, signal: aborted });
  if (answer.status === 304 && known) return known.body;
  const body = await answer.json();
  const etag = answer.headers.get("ETag");
  if (etag) remember(url, { etag, body });
  return body;
}

/**
 * @param {string} url
 * @param {{etag: string, body: any}} answer
 */
function remember(url, answer) {
  tagged.delete(url);
  tagged.set(url, answer);
  const oldest = tagged.keys().next().value;
  if (tagged.size > MOST_TAGGED && oldest !== undefined) tagged.delete(oldest);
}

/**
 * Send JSON, or a text or file as it is; return the JSON of the answer.
 * @param {"POST" | "PUT" | "DELETE" | "PATCH"} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string, string | number | boolean | undefined | null>} [params]
 * @returns {Promise<any>}
 */
export async function send(method, path, body, params = {}) {
  const isRaw = body instanceof Blob || typeof body === "string";
  /** @type {Record<string, string>} */
  const headers = { "X-Torc-CSRF": session.value?.csrf ?? "" };
  if (body !== undefined) headers["Content-Type"] = isRaw ? "application/octet-stream" : "application/json";
  const sent = body === undefined || isRaw ? body : JSON.stringify(body);
  const answer = await request(withParams(path, params), { method, headers, body: sent });
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/**
 * @param {string} path
 * @param {Record<string, string | number | boolean | undefined | null>} params
 */
export function withParams(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * @param {string} url
 * @param {RequestInit} options
 */
async function request(url, options) {
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(url, { ...options, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    wentAway();
    const size = sizeOf(options.body);
    throw new RequestFailure(size > LARGE_BYTES ? `The connection ended before a request of ${sizeText(size)} was answered. Give the path of the spec instead if it happens again: a proxy before torc-dash may not take so much.` : "The server does not answer.", 0);
  }
  if (url.startsWith("api/") && !AWAY.has(answer.status)) answered();
  if (answer.ok || answer.status === 304) return answer;
  const message = await messageOf(answer, sizeOf(options.body));
  if (AWAY.has(answer.status)) wentAway();
  if (answer.status === 401 && session.value?.logged_in) await forgetSession(session.value);
  throw new RequestFailure(message, answer.status);
}

/** @param {BodyInit | null | undefined} body a text or file */
function sizeOf(body) {
  return body instanceof Blob ? body.size : typeof body === "string" ? new Blob([body]).size : 0;
}

/**
 * @param {Response} answer
 * @param {number} size bytes of the request's body
 */
async function messageOf(answer, size) {
  try {
    const body = await answer.json();
    const message = body?.error?.message ?? body?.error;
    if (typeof message === "string") return message;
  } catch {
    // an answer of a proxy between, which is no JSON
    if (answer.status === 413) return `A proxy before torc-dash refuses a request of ${sizeText(size)}. Give the path of the spec instead, or have its limit raised (nginx: client_max_body_size).`;
  }
  return `The server answered ${answer.status} ${answer.statusText}.`;
}
