// Addresses of views: everything that a view shows is in the part of the URL after "#".
//
// An address is `#/w/12/jobs?q=status:failed`. Paths are lists of texts; parameters are texts. The part before "#"
// never changes, so that the page works below any prefix of a proxy.

import { signal } from "../vendor/ui.js";

/** @typedef {{path: string[], params: Record<string, string>}} Route */

/**
 * Read an address.
 * @param {string} hash the part of a URL from "#" on
 * @returns {Route}
 */
export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a typed address with a lone "%"
  }
}

/**
 * Write an address; parameters that are empty or undefined are left out.
 * @param {(string | number)[]} path
 * @param {Record<string, string | number | undefined | null>} [params]
 */
export function address(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path.map((part) => encodeURIComponent(String(part))).join("/")}${text ? `?${text}` : ""}`;
}

/** The view that is shown. */
export const route = signal(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/**
 * Show a view.
 * @param {(string | number)[]} path
 * @param {Record<string, string | number | undefined | null>} [params]
 */
export function go(path, params) {
  location.hash = address(path, params);
}

/**
 * Change parameters of the shown view without an entry in the history, such as while a person types a filter.
 * @param {Record<string, string | number | undefined | null>} params
 */
export function setParams(params) {
  const next = address(route.value.path, { ...route.value.params, ...params });
  history.replaceState(null, "", next);
  route.value = parseRoute(next);
}

/** The id of the chosen workflow, or null. */
export function workflowId() {
  const { path } = route.value;
  return path[0] === "w" && /^\d+$/.test(path[1] ?? "") ? Number(path[1]) : null;
}
