// The use of resources over time, from the samples that runners wrote.

import { html } from "../vendor/ui.js";
import { useData } from "../core/data.js";
import { countText, sizeText } from "../core/quantities.js";
import { address, route, setParams } from "../core/router.js";
import { Command, Empty, Shown } from "../parts/basics.js";
import { Chart, SIZE_STEPS, WHOLE_STEPS } from "../parts/chart.js";

/** @typedef {{id: string | number, run_id: number, hostname: string, path: string, kind: string, jobs: {job_id: number, job_name: string, attempt_id: number}[], count: number, note: string | null}} Source */

const MOST_JOBS = 2000;

/** @param {{id: number}} props */
export function Plots({ id }) {
  const from = useData(`dash/workflows/${id}/samples`, {}, { live: false, everyMs: 30_000 });
  return html`<header class="view-head"><h1>Plots</h1></header>
    <${Shown} from=${from}>${(/** @type {{sources: Source[]}} */ data) =>
      data.sources.some((source) => source.jobs.length)
        ? html`<${Chosen} id=${id} sources=${data.sources} />`
        : html`<${Empty} title="No samples of the use of resources.">
            <p>Samples are kept when the spec has</p>
            <pre class="block">${"resource_monitor:\n  enabled: true\n  granularity: time_series\n  sample_interval_seconds: 5"}</pre>
            ${data.sources.map((source) => (source.note ? html`<p class="muted" key=${source.id}>${source.path}: ${source.note}</p>` : ""))}
          <//>`}<//>`;
}

/** @param {{id: number, sources: Source[]}} props */
function Chosen({ id, sources }) {
  const { params } = route.value;
  const source = sources.find((each) => String(each.id) === params.source) ?? sources.find((each) => each.jobs.length) ?? sources[0];
  const wanted = params.job && source.jobs.find((job) => String(job.job_id) === params.job && (!params.attempt || String(job.attempt_id) === params.attempt));
  const job = wanted || source.jobs[0];
  const series = useData(job ? `dash/workflows/${id}/samples/series` : null, { source: source.id, job: job?.job_id, attempt: job?.attempt_id }, { live: false, everyMs: 10_000 });
  const record = useData(job ? `api/jobs/${job.job_id}` : null, {}, { live: false, everyMs: 0 });
  const requirements = useData(record.data?.resource_requirements_id ? `api/resource_requirements/${record.data.resource_requirements_id}` : null, {}, { live: false, everyMs: 0 });
  const choose = (/** @type {any} */ event) => {
    const [chosen, attempt] = event.currentTarget.value.split(".");
    setParams({ job: chosen, attempt });
  };
  return html`<div class="filters">
      <label>Samples of <select value=${String(source.id)} onChange=${(/** @type {any} */ event) => setParams({ source: event.currentTarget.value, job: "", attempt: "" })}>${sources.map((each) => html`<option key=${each.id} value=${String(each.id)}>run ${each.run_id}, ${each.hostname} (${countText(each.jobs.length, "attempt")})</option>`)}</select></label>
      <label>Job <select data-search value=${job ? `${job.job_id}.${job.attempt_id}` : ""} onChange=${choose}>${source.jobs.slice(0, MOST_JOBS).map((each) => html`<option key=${`${each.job_id}.${each.attempt_id}`} value=${`${each.job_id}.${each.attempt_id}`}>${each.job_name}, attempt ${each.attempt_id}</option>`)}</select></label>
      ${job ? html`<a href=${address(["w", id, "j", job.job_id])}>Job page</a>` : ""}
    </div>
    <${Shown} from=${series}>${(/** @type {any} */ data) => html`<${Charts} series=${data} requirements=${requirements.data} />`}<//>
    <p class="muted mono path">${source.path}</p>
    <p><${Command} text=${`torc plot-resources ${source.path}`} /></p>`;
}

const UNITS = { k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

/** @param {string | null | undefined} text a request for memory, such as "48g" */
function bytesOf(text) {
  const match = /^([\d.]+)\s*([kmgt])?/i.exec(text ?? "");
  if (!match) return null;
  return Number(match[1]) * (UNITS[/** @type {keyof typeof UNITS} */ (match[2]?.toLowerCase() ?? "")] ?? 1);
}

/** @param {{series: any, requirements: any}} props */
function Charts({ series, requirements }) {
  if (!series.t.length) return html`<${Empty} title="This attempt has no samples." />`;
  const gpu = (series.gpu_memory_bytes ?? []).some((/** @type {number | null} */ value) => value);
  return html`<p class="muted">${countText(series.count, "sample")}${series.count > series.t.length ? `, drawn with ${countText(series.t.length)} points that keep the peaks` : ""}.</p>
    <${Chart} title="CPU" times=${series.t} values=${series.cpu_percent} limit=${requirements ? 100 * requirements.num_cpus : null} format=${(/** @type {number} */ value) => `${Math.round(value)}%`} steps=${WHOLE_STEPS} />
    <${Chart} title="Memory" times=${series.t} values=${series.memory_bytes} limit=${bytesOf(requirements?.memory)} format=${sizeText} steps=${SIZE_STEPS} />
    <${Chart} title="Processes" times=${series.t} values=${series.num_processes} format=${(/** @type {number} */ value) => String(Math.round(value))} steps=${WHOLE_STEPS} />
    ${gpu ? html`<${Chart} title="GPU memory" times=${series.t} values=${series.gpu_memory_bytes} format=${sizeText} steps=${SIZE_STEPS} />` : ""}`;
}
