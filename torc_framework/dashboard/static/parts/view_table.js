// All views by their addresses. The order is that of the navigation, and of the digit keys.

import { Create } from "../views/create.js";
import { Data } from "../views/data.js";
import { Events } from "../views/events.js";
import { Failures } from "../views/failures.js";
import { Graph } from "../views/graph.js";
import { Help } from "../views/help.js";
import { Job } from "../views/job.js";
import { Jobs } from "../views/jobs.js";
import { Overview } from "../views/overview.js";
import { Plots } from "../views/plots.js";
import { Runners } from "../views/runners.js";
import { Server } from "../views/server.js";
import { Settings } from "../views/settings.js";
import { Sweep } from "../views/sweep.js";
import { Timeline } from "../views/timeline.js";
import { Workflows } from "../views/workflows.js";

/**
 * @typedef {object} WorkflowView
 * @property {string} name third part of the address
 * @property {string} title in the navigation; empty for none
 * @property {string} key letter after "g"
 * @property {any} view
 * @property {string[]} [also] names of views that belong to it
 */

/** @type {WorkflowView[]} */
export const WORKFLOW_VIEWS = [
  { name: "", title: "Overview", key: "o", view: Overview },
  { name: "jobs", title: "Jobs", key: "j", view: Jobs, also: ["j"] },
  { name: "graph", title: "Graph", key: "g", view: Graph },
  { name: "timeline", title: "Timeline", key: "t", view: Timeline },
  { name: "failures", title: "Failures", key: "f", view: Failures },
  { name: "sweep", title: "Sweep", key: "s", view: Sweep },
  { name: "runners", title: "Runners", key: "r", view: Runners },
  { name: "data", title: "Data", key: "d", view: Data },
  { name: "events", title: "Events", key: "e", view: Events },
  { name: "plots", title: "Plots", key: "p", view: Plots },
  { name: "j", title: "", key: "", view: Job },
];

/** @type {Record<string, {view: any, title: string}>} */
const OTHER_VIEWS = {
  w: { view: Workflows, title: "Workflows" },
  create: { view: Create, title: "Create" },
  server: { view: Server, title: "Server" },
  settings: { view: Settings, title: "Settings" },
  help: { view: Help, title: "Help" },
};

/**
 * Return the view of an address; the list of workflows if there is none.
 * @param {string[]} path
 * @returns {{view: any, title: string, props: Record<string, any>}}
 */
export function viewOf(path) {
  const [first = "w", id, name = ""] = path;
  if (first === "w" && /^\d+$/.test(id ?? "")) {
    const found = WORKFLOW_VIEWS.find((view) => view.name === name) ?? WORKFLOW_VIEWS[0];
    return { view: found.view, title: `${found.title || "Job"} · ${id}`, props: { id: Number(id), rest: path.slice(3) } };
  }
  const { view, title } = OTHER_VIEWS[first] ?? OTHER_VIEWS.w;
  return { view, title, props: { rest: path.slice(1) } };
}
