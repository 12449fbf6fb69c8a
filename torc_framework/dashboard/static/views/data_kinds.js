// The tables of records: their columns, and the fields by which the server filters them.

import { html } from "../vendor/ui.js";
import { requestedSecondsText, requestedSizeText } from "../core/quantities.js";
import { address } from "../core/router.js";
import { classWord } from "../core/words.js";
import { Copy, Duration, Name, Size, Status, Time } from "../parts/basics.js";

/**
 * @typedef {object} DataKind
 * @property {string} name part of the address
 * @property {string} title
 * @property {string} about one sentence
 * @property {string} path of the API, or a function of the workflow's id
 * @property {string[]} filters fields by which the server filters; the first is that of a plain word
 * @property {import("../parts/virtual_table.js").Column[]} columns
 * @property {string} command the same in a terminal
 * @property {boolean} [isWhole] the server answers a plain list
 */

/** @param {any} value */
const json = (value) => html`<span class="mono one-line" title=${JSON.stringify(value)}>${value === undefined || value === null ? "" : JSON.stringify(value)}</span>`;
/** @param {any} row */
const jobLink = (row) => html`<a href=${address(["w", row.workflow_id, "j", row.job_id])}>${row.job_id}</a>`;
/** @param {string} key @param {string} title @param {string} [width] @returns {import("../parts/virtual_table.js").Column} */
const text = (key, title, width = "minmax(8rem, 1fr)") => ({ key, title, width, canSort: true });
/** @param {string} key @param {string} title @param {string} [width] @returns {import("../parts/virtual_table.js").Column} */
const number = (key, title, width = "6rem") => ({ key, title, width, isNumber: true, canSort: true });
const ID = number("id", "Id", "5.5rem");
const NAME = { ...text("name", "Name", "minmax(12rem, 2fr)"), show: (/** @type {any} */ row) => html`<${Name} text=${row.name ?? ""} />` };

/** @type {DataKind[]} */
export const DATA_KINDS = [
  {
    name: "files", title: "Files", path: "api/files", filters: ["name", "path", "produced_by_job_id", "is_output"], command: "torc files list",
    about: "Files that jobs read and write, with the modification time that the last initialize recorded.",
    columns: [ID, NAME, { ...text("path", "Path", "minmax(16rem, 3fr)"), show: (row) => html`<span class="mono">${row.path}</span> <${Copy} text=${row.path} />` },
      { key: "st_mtime", title: "Modified", width: "10rem", canSort: true, show: (row) => html`<${Time} at=${row.st_mtime ? 1000 * row.st_mtime : null} />` }],
  },
  {
    name: "user_data", title: "User data", path: "api/user_data", filters: ["name", "is_ephemeral", "producer_job_id", "consumer_job_id"], command: "torc user-data list",
    about: "JSON values that jobs read and write. Those that are ephemeral are cleared by a new run.",
    columns: [ID, NAME, { key: "data", title: "Value", width: "minmax(16rem, 3fr)", show: (row) => json(row.data) }, { key: "is_ephemeral", title: "Ephemeral", width: "7rem", show: (row) => (row.is_ephemeral ? "yes" : "no") }],
  },
  {
    name: "results", title: "Results", path: "api/results", filters: ["job_id", "run_id", "return_code", "status", "compute_node_id", "all_runs"], command: "torc results list",
    about: "How attempts ended, and what they used. all_runs:true shows earlier runs too.",
    columns: [ID, { ...number("job_id", "Job"), show: jobLink }, number("run_id", "Run", "4.5rem"), number("attempt_id", "Attempt", "5.5rem"),
      { ...text("status", "Status", "9rem"), show: (row) => html`<${Status} of=${row.status} />` }, number("return_code", "Code", "5rem"),
      { key: "exit_class", title: "Ending", width: "8rem", show: (row) => classWord(row.exit_class) },
      { ...number("exec_time_minutes", "Run time", "7rem"), show: (row) => html`<${Duration} seconds=${60 * row.exec_time_minutes} />` },
      { ...number("peak_memory_bytes", "Peak memory", "8.5rem"), show: (row) => html`<${Size} bytes=${row.peak_memory_bytes} />` },
      { ...number("peak_cpu_percent", "Peak CPU %", "7rem"), show: (row) => (row.peak_cpu_percent === undefined ? "" : Math.round(row.peak_cpu_percent)) },
      number("compute_node_id", "Runner", "5.5rem"), { ...text("completion_time", "Ended", "9rem"), show: (row) => html`<${Time} at=${row.completion_time} />` },
      { key: "reason", title: "Reason", width: "minmax(10rem, 2fr)" }],
  },
  {
    name: "compute_nodes", title: "Compute nodes", path: "api/compute_nodes", filters: ["hostname", "is_active", "scheduled_compute_node_id"], command: "torc compute-nodes list",
    about: "Runners that work or worked on the workflow.",
    columns: [ID, text("hostname", "Host"), { key: "is_active", title: "Works", width: "5.5rem", show: (row) => (row.is_active ? "yes" : "no") }, text("compute_node_type", "Kind", "7rem"),
      number("num_cpus", "CPUs"), { ...number("memory_gb", "Memory", "7rem"), show: (row) => html`<${Size} bytes=${row.memory_gb * 1024 ** 3} />` }, number("num_gpus", "GPUs"), number("pid", "Process", "6.5rem"),
      { ...text("start_time", "Started", "9rem"), show: (row) => html`<${Time} at=${row.start_time} />` }, { ...number("duration_seconds", "Worked", "7rem"), show: (row) => html`<${Duration} seconds=${row.duration_seconds} />` }],
  },
  {
    name: "requirements", title: "Requirements", path: "api/resource_requirements", filters: ["name", "memory", "num_cpus", "num_gpus", "num_nodes", "runtime", "job_id"], command: "torc resource-requirements list",
    about: "What jobs ask for.",
    columns: [ID, NAME, number("num_cpus", "CPUs"), { ...text("memory", "Memory", "8rem"), show: (row) => requestedSizeText(row.memory) }, { ...text("runtime", "Run time", "8rem"), show: (row) => requestedSecondsText(row.runtime) }, number("num_gpus", "GPUs"), number("num_nodes", "Nodes")],
  },
  {
    name: "slurm_schedulers", title: "Slurm schedulers", path: "api/slurm_schedulers", filters: ["name", "account", "partition", "qos", "walltime", "nodes"], command: "torc slurm list",
    about: "With which options nodes of Slurm are asked for.",
    columns: [ID, NAME, text("account", "Account"), text("partition", "Partition"), number("nodes", "Nodes"), text("walltime", "Walltime", "7rem"), text("qos", "QoS", "6rem"), text("gres", "GRES", "6rem"), { ...text("mem", "Memory", "6rem"), show: (row) => requestedSizeText(row.mem) }, text("extra", "Extra")],
  },
  {
    name: "allocations", title: "Scheduled nodes", path: "api/scheduled_compute_nodes", filters: ["status", "scheduler_type", "allocation_id"], command: "torc scheduled-compute-nodes list",
    about: "Allocations that were asked for from a batch system.",
    columns: [ID, text("allocation_id", "Batch job"), text("status", "State", "8rem"), text("scheduler_type", "Scheduler", "8rem"), number("scheduler_config_id", "Options", "6rem"), text("request", "Request")],
  },
  {
    name: "actions", title: "Actions", path: "api/workflows/{id}/actions", filters: [], isWhole: true, command: "torc workflows show",
    about: "What happens by itself when the workflow starts, or when jobs become ready or end.",
    columns: [{ ...ID, canSort: false }, { key: "trigger_type", title: "When", width: "12rem" }, { key: "action_type", title: "Does", width: "11rem" }, { key: "action_config", title: "Options", width: "minmax(14rem, 3fr)", show: (row) => json(row.action_config) },
      { key: "executed", title: "Done", width: "5rem", show: (row) => (row.executed ? "yes" : "no") }, { key: "executed_at", title: "At", width: "9rem", show: (row) => html`<${Time} at=${row.executed_at} />` }, { key: "error", title: "Error", width: "minmax(10rem, 2fr)" }],
  },
  {
    name: "failure_handlers", title: "Failure handlers", path: "api/failure_handlers", filters: ["name"], command: "torc workflows export",
    about: "Rules for which endings a job is tried again, and what runs before.",
    columns: [ID, NAME, { key: "rules", title: "Rules", width: "minmax(20rem, 4fr)", show: (row) => json(row.rules) }],
  },
];
