// Words, glyphs and colours of statuses and states. The server sends them, so that page and command line agree.

import { signal } from "../vendor/ui.js";

/** @typedef {{word: string, glyph: string, colour: string, description?: string}} Look */

/**
 * @typedef {object} Words
 * @property {Record<string, Look>} job_statuses in the order of summaries
 * @property {Record<string, Look>} workflow_states
 * @property {Record<string, Look>} runner_states
 * @property {number} silent_after_s seconds without a report after which a runner is silent
 * @property {Record<string, string>} exit_classes words
 * @property {Record<string, {meaning: string, severity: string}>} event_types
 */

/** What the server sent. @type {{value: Words}} */
export const words = signal({ job_statuses: {}, workflow_states: {}, runner_states: {}, silent_after_s: Infinity, exit_classes: {}, event_types: {} });

/** Labels of jobs' statuses in the order of summaries. */
export const statusOrder = () => Object.keys(words.value.job_statuses);

/** Statuses from done to not begun: a bar fills from its left end. */
export const BAR_ORDER = [
  ...["completed", "failed", "terminated", "pending_failed", "canceled", "running", "pending", "ready", "blocked"],
  ...["uninitialized", "disabled"],
];

/**
 * Return the look of a job's status; an unknown one is shown by its own name.
 * @param {string} label
 * @returns {Look}
 */
export const statusLook = (label) => words.value.job_statuses[label] ?? unknown(label);

/**
 * Return the look of a workflow's state.
 * @param {string} label
 * @returns {Look}
 */
export const stateLook = (label) => words.value.workflow_states[label] ?? statusLook(label);

/**
 * Return the look of what a runner does.
 * @param {string} label
 * @returns {Look}
 */
export const runnerLook = (label) => words.value.runner_states[label] ?? unknown(label);

/** @param {string} label @returns {Look} */
const unknown = (label) => ({ glyph: "·", colour: "", word: label.replaceAll("_", " ") });

/**
 * Return the word of a class of endings.
 * @param {string | null | undefined} label
 */
export const classWord = (label) => (label ? (words.value.exit_classes[label] ?? label.replaceAll("_", " ")) : "");

/**
 * Return a colour of the page's style, such as that of a status for a canvas.
 * @param {string} name of a custom property without its dashes: "status-failed"
 */
export const styleColour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888888";
