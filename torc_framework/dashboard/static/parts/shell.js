// The frame of the page: heading, navigation, the state of the connection, and the chosen view.

import { html, signal, useEffect, useRef } from "../vendor/ui.js";
import { isOwner, refreshes, send, server, session } from "../core/api.js";
import { useData } from "../core/data.js";
import { followAgain, stream } from "../core/live.js";
import { isDark, isUpdated, prefer } from "../core/preferences.js";
import { address, route, workflowId } from "../core/router.js";
import { durationText } from "../core/quantities.js";
import { now, zoneName } from "../core/times.js";
import { Login } from "../views/login.js";
import { viewOf, WORKFLOW_VIEWS } from "./view_table.js";
import { Boundary } from "./boundary.js";
import { Empty, Name } from "./basics.js";
import { DialogPlace } from "./dialog.js";
import { MessagePlace } from "./messages.js";
import { PageKeys } from "./page_keys.js";

const isMenuOpen = signal(false);

/** The whole page. */
export function App() {
  if (!session.value) return html`<main class="alone"><p class="loading">${server.value.isAway ? "The server does not answer. Trying again…" : "Loading…"}</p></main>`;
  if (!session.value.logged_in) return html`<${Login} />`;
  return html`
    <a class="skip" href="#main" onClick=${skipToMain}>Skip to content</a>
    <${Header} />
    <${Frame} />
    <${PageKeys} />
    <${DialogPlace} />
    <${MessagePlace} />
  `;
}

const FORBIDDEN = 403;
const MISSING = 404;
/** Milliseconds between two looks at a workflow that the reader may not see, or that is missing. */
const LOOK_MS = 5000;

/** Navigation and view. A workflow that the reader may not see has neither; it is looked at again, as it may be shared. */
function Frame() {
  const id = workflowId();
  const workflow = useData(id === null ? null : `api/workflows/${id}`, {}, { live: false });
  const status = /** @type {any} */ (workflow.error)?.status;
  const isRefused = id !== null && [FORBIDDEN, MISSING].includes(status);
  const { state, since } = stream.value;
  useEffect(() => {
    if (state === "gone") workflow.at > since && !workflow.error ? followAgain() : workflow.reload();
  }, [id, state, workflow.at]);
  useEffect(() => {
    const timer = isRefused ? setInterval(() => isUpdated() && workflow.reload(), LOOK_MS) : 0;
    return () => clearInterval(timer);
  }, [id, isRefused]);
  return html`<div class="frame">
    <${Navigation} name=${workflow.data?.name} isRefused=${isRefused} />
    <${Main} refusal=${isRefused ? workflow.error : null} />
  </div>`;
}

/** @param {{id: number, refusal: import("../core/api.js").RequestFailure}} props */
const Refused = ({ id, refusal }) => html`<h1>Workflow ${id}</h1>
  <${Empty} title=${refusal.status === FORBIDDEN ? "You may not see this workflow." : "There is no such workflow."}>
    <p>${refusal.message}.</p>
    ${refusal.status === FORBIDDEN ? html`<p class="muted">Its owner or an administrator can share it with one of your access groups: <code>torc access-groups add-workflow ${id} GROUP</code>. This page then shows it.</p>` : ""}
    <p><a class="button" href="#/w">All workflows</a></p>
  <//>`;

/** @param {Event} event */
function skipToMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Header() {
  return html`<header class="top">
    <button type="button" class="quiet menu-button" aria-expanded=${isMenuOpen.value} aria-controls="navigation" onClick=${() => (isMenuOpen.value = !isMenuOpen.value)}>☰ Menu</button>
    <a class="brand" href="#/w">Torc</a>
    <span class="grow"></span>
    <${Connection} />
    ${isUpdated() ? "" : html`<button type="button" class="quiet" title="The page does not refresh by itself; Settings changes that" onClick=${() => (refreshes.value += 1)}>⟳ Refresh</button>`}
    <span class="zone" title="Times are shown in this zone">${zoneName()}</span>
    <button type="button" class="quiet" onClick=${() => prefer({ theme: isDark() ? "light" : "dark" })} aria-label=${isDark() ? "Light theme" : "Dark theme"}>${isDark() ? "☀" : "☾"}</button>
    <a class="button quiet" href="#/help" aria-label="Help">?</a>
    <${Reader} />
  </header>`;
}

function Reader() {
  const { user } = session.value ?? {};
  const logOut = async () => {
    session.value = await send("POST", "logout");
  };
  return html`<span class="reader">${user ?? ""}${isOwner() ? "" : html` <span class="muted" title="Commands of torc need the start token of torc-dash">(read and API only)</span>`}</span>
    <button type="button" class="quiet" onClick=${logOut}>Log out</button>`;
}

/** Whether what is shown is live, as text. */
function Connection() {
  void now.value;
  const { isAway, since, nextTry } = server.value;
  const { state } = stream.value;
  if (isAway) {
    const wait = Math.max(0, Math.ceil((nextTry - Date.now()) / 1000));
    return html`<span class="connection away" role="status">⚠ Server away: no answer for ${durationText((Date.now() - since) / 1000)}; next try in ${wait} s. Data may be old.</span>`;
  }
  const text = CONNECTION_TEXTS[state];
  return text ? html`<span class=${`connection ${state}`} role="status">${text}</span>` : "";
}

/** @type {Record<string, string>} */
const CONNECTION_TEXTS = {
  live: "● Live",
  connecting: "○ Connecting…",
  reconnecting: "◌ Reconnecting…",
  gone: "⚠ Deleted, or not shared with you",
};

/** @param {{name: string | undefined, isRefused: boolean}} props */
function Navigation({ name, isRefused }) {
  const id = workflowId();
  const [first, , third] = route.value.path;
  const link = (/** @type {string} */ to, /** @type {any} */ text, /** @type {boolean} */ isHere) =>
    html`<li><a href=${to} aria-current=${isHere ? "page" : undefined} onClick=${() => (isMenuOpen.value = false)}>${text}</a></li>`;
  return html`<nav id="navigation" class=${isMenuOpen.value ? "open" : ""} aria-label="Views">
    <ul>${link("#/w", "Workflows", first === "w" && id === null)}</ul>
    ${id === null || isRefused ? "" : html`<p class="nav-title">${name ? html`<${Name} text=${name} />` : "Workflow"} <span class="muted">#${id}</span></p>
      <ul>${WORKFLOW_VIEWS.filter((view) => view.title).map((view) => link(address(["w", id, ...(view.name ? [view.name] : [])]), view.title, (third ?? "") === view.name || Boolean(view.also?.includes(third ?? ""))))}</ul>`}
    <ul class="below">
      ${isOwner() ? link("#/create", "Create", first === "create") : ""}
      ${link("#/server", "Server", first === "server")}
      ${link("#/settings", "Settings", first === "settings")}
      ${link("#/help", "Help", first === "help")}
    </ul>
  </nav>`;
}

/**
 * Give the focus to an element when what had it in there is gone, such as the button of a failure that was repaired.
 * @param {HTMLElement} element
 */
function keepFocus(element) {
  /** @type {Node | null} */
  let focused = null;
  element.addEventListener("focusin", (event) => (focused = /** @type {Node} */ (event.target)));
  const observer = new MutationObserver(() => {
    if (!focused || focused.isConnected) return;
    focused = null;
    if (document.activeElement === document.body) element.focus({ preventScroll: true });
  });
  observer.observe(element, { childList: true, subtree: true });
  return () => observer.disconnect();
}

/** @param {{refusal: Error | null}} props */
function Main({ refusal }) {
  const element = useRef(/** @type {any} */ (null));
  const { path } = route.value;
  const { view: View, props, title } = viewOf(path);
  const place = path.slice(0, 4).join("/");
  useEffect(() => {
    document.title = `${title} · Torc`;
    if (document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  }, [place, title]);
  useEffect(() => keepFocus(element.current), []);
  return html`<main id="main" ref=${element} tabindex="-1"><${Boundary} key=${`${path[0]}/${path[1] ?? ""}/${path[2] ?? ""}`}>${refusal ? html`<${Refused} id=${props.id} refusal=${refusal} />` : html`<${View} ...${props} />`}<//></main>`;
}

