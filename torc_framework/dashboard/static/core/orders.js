// Commands of torc that torc-dash runs for the reader.

import { signal } from "../vendor/ui.js";
import { get, send } from "./api.js";

/**
 * @typedef {object} CommandOption
 * @property {string} name
 * @property {"flag" | "int" | "float" | "text" | "path" | "ids" | "spec" | "format" | "spec_path"} kind
 * @property {string} help
 */

/**
 * @typedef {object} CommandKind
 * @property {string} name
 * @property {string} title
 * @property {"dry_run" | "impact" | null} preview how it can tell what it would do
 * @property {boolean} destroys
 * @property {boolean} is_long
 * @property {boolean} needs_workflow
 * @property {string} undo how it is undone, or that it cannot be
 * @property {CommandOption[]} options
 */

/**
 * @typedef {object} Order
 * @property {string} command
 * @property {number} [workflow_id]
 * @property {Record<string, any>} [options]
 * @property {boolean} [preview]
 */

/**
 * @typedef {object} Run
 * @property {number} id
 * @property {string} command
 * @property {number | null} workflow_id
 * @property {boolean} preview
 * @property {string} text the command as a person types it
 * @property {"running" | "succeeded" | "failed" | "stopped"} state
 * @property {number | null} exit_code
 * @property {number} started_at seconds since the epoch
 * @property {number | null} ended_at
 * @property {any} document JSON that the command printed
 * @property {string} output
 * @property {string} error
 * @property {string[]} [sentences] what the command would do, of a preview
 * @property {string[]} [findings]
 */

/** The commands by name; empty until they are loaded, and for readers who may run none. */
export const commandKinds = signal(/** @type {Record<string, CommandKind>} */ ({}));

/** Ask which commands there are. */
export async function loadCommands() {
  const { commands } = await get("dash/commands");
  commandKinds.value = Object.fromEntries(commands.map((/** @type {CommandKind} */ each) => [each.name, each]));
}

/**
 * Return what a person types for an order; nothing is run.
 * @param {Order} order
 * @returns {Promise<string>}
 */
export async function textOf(order) {
  return (await send("POST", "dash/commands", { ...order, describe: true })).text;
}

/** Seconds in which a command that may take days refuses to start. */
const STARTED_S = 2;

/**
 * Run an order and wait for its end, or until `onStart` has the run and the caller lost interest.
 * @param {Order} order
 * @param {(run: Run) => void} [onProgress]
 * @returns {Promise<Run>}
 */
export async function runOrder(order, onProgress = () => {}) {
  const isLong = commandKinds.value[order.command]?.is_long && !order.preview;
  /** @type {Run} */
  let run = await send("POST", "dash/commands", { ...order, wait: isLong ? STARTED_S : 5 });
  while (run.state === "running") {
    onProgress(run);
    if (isLong) return run;
    run = await get(`dash/commands/${run.id}`, { wait: 5 });
  }
  onProgress(run);
  return run;
}

/**
 * Return the order that a command's text means, or null if torc-dash does not run this command.
 * @param {string} text such as "torc run 12 --retry-failed"
 * @param {number} workflowId
 * @returns {Order | null}
 */
export function orderOf(text, workflowId) {
  const words = text.split(/\s+/);
  const kind = commandKinds.value[(words[1] === "workflows" ? words[2] : words[1] ?? "")?.replaceAll("-", "_")];
  const rest = words.slice(words[1] === "workflows" ? 3 : 2);
  if (words[0] !== "torc" || !kind || rest.shift() !== String(workflowId)) return null;
  /** @type {Record<string, any>} */
  const options = {};
  for (const word of rest) {
    const [, name = "", value] = /^--([a-z-]+)(?:=(\S+))?$/.exec(word) ?? [];
    const option = kind.options.find((each) => each.name === name.replaceAll("-", "_"));
    if (!option || (option.kind === "flag") !== (value === undefined)) return null;
    options[option.name] = value === undefined ? true : valueOf(option.kind, value);
  }
  return { command: kind.name, workflow_id: workflowId, options };
}

/**
 * Return a text as one word of a shell.
 * @param {string} text
 */
export const shellWord = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Return the value of an option from its text.
 * @param {CommandOption["kind"]} kind
 * @param {string} text
 */
export function valueOf(kind, text) {
  if (kind === "int" || kind === "float") return Number(text);
  if (kind === "ids") return text.split(/[\s,]+/).filter(Boolean).map(Number);
  return text;
}
