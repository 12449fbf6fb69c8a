// What an attempt used of what its job asked for.

import { html } from "../vendor/ui.js";
import { countText, durationText, requestedBytes, requestedSeconds, sizeText } from "../core/quantities.js";
import { Share } from "./basics.js";

/** The run time of an attempt in seconds, or null while it runs. @param {any} result */
export const secondsOf = (result) => (result ? (result.observation?.duration_s ?? 60 * result.exec_time_minutes) : null);

/**
 * Requested against used, as a list with a bar for each amount.
 * @param {{result: any, requirements: any}} props a record of a result, and one of resource requirements
 */
export function Usage({ result, requirements }) {
  if (!result || !requirements) return null;
  const cpus = requirements.num_cpus ?? 1;
  const rows = [
    { title: "Run time", used: secondsOf(result), of: requestedSeconds(requirements.runtime), text: durationText },
    { title: "Peak memory", used: result.peak_memory_bytes ?? null, of: requestedBytes(requirements.memory), text: sizeText },
    { title: "CPU, mean", used: result.avg_cpu_percent ?? null, of: 100 * cpus, text: (/** @type {number} */ percent) => `${(percent / 100).toFixed(1)} of ${countText(cpus, "CPU")}` },
  ];
  return html`<dl class="facts usage" aria-label="Requested against used">${rows.map(
    ({ title, used, of, text }) => html`<dt key=${title}>${title}</dt><dd><${Share} used=${used} of=${of} text=${used === null ? "not measured" : title.startsWith("CPU") || !of ? text(used) : `${text(used)} of ${text(of)} asked`} /></dd>`,
  )}</dl>`;
}
