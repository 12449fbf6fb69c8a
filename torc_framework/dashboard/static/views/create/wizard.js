// The wizard: basics, jobs, schedulers, actions, review. It keeps a draft in the browser until the workflow is created.

import { html, useEffect, useRef, useState } from "../../vendor/ui.js";
import { emptyAction, emptyJob, emptyScheduler, emptyWizard, PRESETS, problemsOf, specOf, TRIGGERS } from "../../core/wizard_spec.js";
import { Copy } from "../../parts/basics.js";
import { Check } from "./check.js";

/** @typedef {import("../../core/wizard_spec.js").Wizard} WizardState */

const STEPS = ["Basics", "Jobs", "Schedulers", "Actions", "Review"];
const DRAFT = "torc-dash-wizard";

/** @returns {WizardState} */
function draft() {
  try {
    return { ...emptyWizard(), ...JSON.parse(localStorage.getItem(DRAFT) ?? "{}") };
  } catch {
    return emptyWizard();
  }
}

export function Wizard() {
  const [state, setState] = useState(draft);
  const [step, setStep] = useState(0);
  const [shows, setShows] = useState(false);
  const heading = useRef(/** @type {any} */ (null));
  useEffect(() => {
    try {
      localStorage.setItem(DRAFT, JSON.stringify(state));
    } catch {
      // storage is off: the draft lasts as long as the page
    }
  }, [state]);
  const problems = problemsOf(state, step);
  const change = (/** @type {Partial<WizardState>} */ changes) => setState({ ...state, ...changes });
  const to = (/** @type {number} */ next) => {
    if (next > step && problems.length) {
      setShows(true);
      return;
    }
    setShows(false);
    setStep(next);
    heading.current?.focus();
  };
  const forget = () => {
    setState(emptyWizard());
    setStep(0);
  };
  const Step = [Basics, Jobs, Schedulers, Actions, Review][step];
  return html`<ol class="steps" aria-label="Steps">${STEPS.map((title, index) => html`<li key=${title} aria-current=${index === step ? "step" : undefined} class=${index < step ? "done" : ""}>${index + 1}. ${title}</li>`)}</ol>
    <h2 ref=${heading} tabindex="-1">${STEPS[step]}</h2>
    <${Step} state=${state} change=${change} onCreated=${forget} />
    ${shows && problems.length ? html`<div class="failure" role="alert"><ul>${problems.map((problem) => html`<li key=${problem}>${problem}</li>`)}</ul></div>` : ""}
    <p class="row">
      ${step > 0 ? html`<button type="button" onClick=${() => to(step - 1)}>Back</button>` : ""}
      ${step < STEPS.length - 1 ? html`<button type="button" class="primary" onClick=${() => to(step + 1)}>Next</button>` : ""}
      <span class="grow"></span>
      <button type="button" class="quiet" onClick=${forget}>Start over</button>
    </p>`;
}

/** @typedef {{state: WizardState, change: (changes: Partial<WizardState>) => void, onCreated: () => void}} StepProps */

/**
 * @param {{label: string, value: string, onChange: (text: string) => void, required?: boolean, placeholder?: string, isLong?: boolean}} props
 */
function Field({ label, value, onChange, required = false, placeholder = "", isLong = false }) {
  const input = (/** @type {any} */ event) => onChange(event.currentTarget.value);
  return html`<label class=${isLong ? "wide" : ""}>${label}${required ? " (required)" : ""}
    ${isLong ? html`<textarea rows="2" value=${value} placeholder=${placeholder} onInput=${input}></textarea>` : html`<input type="text" value=${value} required=${required} placeholder=${placeholder} onInput=${input} />`}</label>`;
}

/** @param {StepProps} props */
const Basics = ({ state, change }) => html`<div class="filters starts">
    <${Field} label="Workflow name" required value=${state.name} placeholder="data-pipeline" onChange=${(/** @type {string} */ name) => change({ name })} />
    <${Field} label="Description" isLong value=${state.description} placeholder="What the workflow does" onChange=${(/** @type {string} */ description) => change({ description })} />
  </div>`;

/**
 * Replace one item of a list.
 * @template T
 * @param {T[]} list @param {number} index @param {Partial<T>} changes
 */
const replaced = (list, index, changes) => list.map((item, position) => (position === index ? { ...item, ...changes } : item));

/** @param {StepProps} props */
function Jobs({ state, change }) {
  const set = (/** @type {number} */ index, /** @type {any} */ changes) => change({ jobs: replaced(state.jobs, index, changes) });
  const rename = (/** @type {number} */ index, /** @type {string} */ name) => {
    const before = state.jobs[index].name;
    const jobs = replaced(state.jobs, index, { name }).map((job) => ({ ...job, dependsOn: job.dependsOn.map((each) => (each === before && before ? name : each)) }));
    change({ jobs });
  };
  const remove = (/** @type {number} */ index) => {
    const { name } = state.jobs[index];
    change({ jobs: state.jobs.filter((_, position) => position !== index).map((job) => ({ ...job, dependsOn: job.dependsOn.filter((each) => each !== name) })) });
  };
  return html`${state.jobs.map((job, index) => {
      const others = state.jobs.filter((other) => other !== job && other.name).map((other) => other.name);
      return html`<fieldset key=${index} class="card item"><legend>Job ${index + 1}</legend>
        <${Field} label="Job name" required value=${job.name} placeholder="preprocess" onChange=${(/** @type {string} */ name) => rename(index, name)} />
        <${Field} label="Command" required isLong value=${job.command} placeholder="python preprocess.py" onChange=${(/** @type {string} */ command) => set(index, { command })} />
        ${others.length ? html`<div class="checks" role="group" aria-label=${`Jobs that block job ${index + 1}`}><span>Blocked by</span>${others.map((name) => html`<label class="check" key=${name}><input type="checkbox" checked=${job.dependsOn.includes(name)} onChange=${(/** @type {any} */ event) => set(index, { dependsOn: event.currentTarget.checked ? [...job.dependsOn, name] : job.dependsOn.filter((each) => each !== name) })} /> ${name}</label>`)}</div>` : ""}
        <label>Resources <select value=${job.preset} onChange=${(/** @type {any} */ event) => set(index, { preset: event.currentTarget.value })}>${Object.entries(PRESETS).map(([name, { title }]) => html`<option key=${name} value=${name}>${title}</option>`)}<option value="custom">Custom</option></select></label>
        ${job.preset === "custom" ? html`<${Field} label="CPUs" value=${job.cpus} onChange=${(/** @type {string} */ cpus) => set(index, { cpus })} /><${Field} label="Memory" value=${job.memory} placeholder="4g" onChange=${(/** @type {string} */ memory) => set(index, { memory })} /><${Field} label="GPUs" value=${job.gpus} onChange=${(/** @type {string} */ gpus) => set(index, { gpus })} />` : ""}
        <${Field} label="Run time" value=${job.runtime} placeholder="PT1H" onChange=${(/** @type {string} */ runtime) => set(index, { runtime })} />
        ${state.schedulers.length ? html`<label>Scheduler <select value=${job.scheduler} onChange=${(/** @type {any} */ event) => set(index, { scheduler: event.currentTarget.value })}><option value="">none: runs anywhere</option>${state.schedulers.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>` : ""}
        <button type="button" onClick=${() => remove(index)}>Remove job ${index + 1}</button>
      </fieldset>`;
    })}
    <p><button type="button" onClick=${() => change({ jobs: [...state.jobs, emptyJob()] })}>+ Add job</button></p>`;
}

/** @type {[keyof import("../../core/wizard_spec.js").WizardScheduler, string, boolean, string][]} */
const SCHEDULER_FIELDS = [
  ["name", "Scheduler name", true, "compute"], ["account", "Account", true, "my_project"], ["nodes", "Nodes", false, "1"], ["walltime", "Wall time", false, "02:00:00"], ["partition", "Partition", false, ""],
  ["qos", "QoS", false, ""], ["gres", "GRES", false, "gpu:2"], ["mem", "Memory for each node", false, "64G"], ["tmp", "Local scratch", false, ""], ["extra", "Extra options of sbatch", false, ""],
];

/** @param {StepProps} props */
const Schedulers = ({ state, change }) => html`<p class="muted">Only for Slurm. Without a scheduler the jobs run wherever a runner is started. Assign a scheduler to a job in the step before.</p>
  ${state.schedulers.map((scheduler, index) => html`<fieldset key=${index} class="card item"><legend>Scheduler ${index + 1}</legend>
    ${SCHEDULER_FIELDS.map(([key, label, required, placeholder]) => html`<${Field} key=${key} label=${label} required=${required} placeholder=${placeholder} value=${scheduler[key]} onChange=${(/** @type {string} */ text) => change({ schedulers: replaced(state.schedulers, index, { [key]: text }) })} />`)}
    <button type="button" onClick=${() => change({ schedulers: state.schedulers.filter((_, position) => position !== index) })}>Remove scheduler ${index + 1}</button>
  </fieldset>`)}
  <p><button type="button" onClick=${() => change({ schedulers: [...state.schedulers, emptyScheduler()] })}>+ Add scheduler</button></p>`;

/** @param {StepProps} props */
const Actions = ({ state, change }) => html`<p class="muted">An action asks Slurm for nodes by itself. It needs a scheduler.</p>
  ${state.actions.map((action, index) => {
    const set = (/** @type {any} */ changes) => change({ actions: replaced(state.actions, index, changes) });
    return html`<fieldset key=${index} class="card item"><legend>Action ${index + 1}</legend>
      <label>Trigger <select value=${action.trigger} onChange=${(/** @type {any} */ event) => set({ trigger: event.currentTarget.value })}>${Object.entries(TRIGGERS).map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}</select></label>
      <label>Scheduler <select value=${action.scheduler} onChange=${(/** @type {any} */ event) => set({ scheduler: event.currentTarget.value })}><option value="">choose…</option>${state.schedulers.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      ${action.trigger === "on_workflow_start" ? "" : html`<div class="checks" role="group" aria-label=${`Jobs of action ${index + 1}`}><span>Jobs</span>${state.jobs.filter((job) => job.name).map(({ name }) => html`<label class="check" key=${name}><input type="checkbox" checked=${action.jobs.includes(name)} onChange=${(/** @type {any} */ event) => set({ jobs: event.currentTarget.checked ? [...action.jobs, name] : action.jobs.filter((each) => each !== name) })} /> ${name}</label>`)}</div>`}
      <${Field} label="Number of allocations" value=${action.allocations} onChange=${(/** @type {string} */ allocations) => set({ allocations })} />
      <button type="button" onClick=${() => change({ actions: state.actions.filter((_, position) => position !== index) })}>Remove action ${index + 1}</button>
    </fieldset>`;
  })}
  <p><button type="button" disabled=${!state.schedulers.length} onClick=${() => change({ actions: [...state.actions, emptyAction(state.schedulers)] })}>+ Add action</button></p>`;

/** @param {StepProps} props */
function Review({ state, onCreated }) {
  const text = JSON.stringify(specOf(state), null, 2);
  return html`<p>This is the spec that is sent. <${Copy} text=${text} label="Copy spec" /></p>
    <pre class="block">${text}</pre>
    <${Check} key=${text} options=${{ text, format: "json" }} onCreated=${onCreated} />`;
}
