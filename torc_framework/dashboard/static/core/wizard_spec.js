// The spec that the wizard makes from what a person has entered.

/**
 * @typedef {{name: string, command: string, dependsOn: string[], preset: string, cpus: string, memory: string, gpus: string, runtime: string, scheduler: string}} WizardJob
 * @typedef {{name: string, account: string, nodes: string, walltime: string, partition: string, qos: string, gres: string, mem: string, tmp: string, extra: string}} WizardScheduler
 * @typedef {{trigger: string, scheduler: string, jobs: string[], allocations: string}} WizardAction
 * @typedef {{name: string, description: string, jobs: WizardJob[], schedulers: WizardScheduler[], actions: WizardAction[]}} Wizard
 */

/** Presets of resources, those of the manual's wizard (chapter "Creating Workflows with the Dashboard Wizard", step 3). */
export const PRESETS = {
  small: { title: "Small: 1 CPU, 1 GB memory", num_cpus: 1, memory: "1g", num_gpus: 0 },
  medium: { title: "Medium: 8 CPUs, 50 GB memory", num_cpus: 8, memory: "50g", num_gpus: 0 },
  gpu: { title: "GPU: 1 CPU, 10 GB memory, 1 GPU", num_cpus: 1, memory: "10g", num_gpus: 1 },
};

export const TRIGGERS = { on_workflow_start: "When the workflow starts", on_jobs_ready: "When jobs become ready", on_jobs_complete: "When jobs complete" };

/** @returns {Wizard} */
export const emptyWizard = () => ({ name: "", description: "", jobs: [emptyJob()], schedulers: [], actions: [] });
/** @returns {WizardJob} */
export const emptyJob = () => ({ name: "", command: "", dependsOn: [], preset: "small", cpus: "1", memory: "1g", gpus: "0", runtime: "", scheduler: "" });
/** @returns {WizardScheduler} */
export const emptyScheduler = () => ({ name: "", account: "", nodes: "1", walltime: "01:00:00", partition: "", qos: "", gres: "", mem: "", tmp: "", extra: "" });
/**
 * Return an action, with the scheduler if there is only one.
 * @param {WizardScheduler[]} schedulers
 * @returns {WizardAction}
 */
export const emptyAction = (schedulers) => ({ trigger: "on_workflow_start", scheduler: schedulers.length === 1 ? schedulers[0].name : "", jobs: [], allocations: "1" });

/**
 * Return the spec as a JSON value.
 * @param {Wizard} wizard
 */
export function specOf(wizard) {
  const requirements = requirementsOf(wizard.jobs);
  return withoutEmpty({
    name: wizard.name,
    description: wizard.description,
    jobs: wizard.jobs.map((job) =>
      withoutEmpty({
        name: job.name,
        command: job.command,
        depends_on: job.dependsOn,
        resource_requirements: requirements.nameOf(job),
        scheduler: job.scheduler,
      }),
    ),
    resource_requirements: requirements.list,
    slurm_schedulers: wizard.schedulers.map(({ nodes, ...others }) => withoutEmpty({ ...others, nodes: Number(nodes) || 1 })),
    actions: wizard.actions.map((action) =>
      withoutEmpty({
        trigger_type: action.trigger,
        action_type: "schedule_nodes",
        jobs: action.trigger === "on_workflow_start" ? [] : action.jobs,
        scheduler: action.scheduler,
        scheduler_type: "slurm",
        num_allocations: Number(action.allocations) || 1,
      }),
    ),
  });
}

/** @param {WizardJob[]} jobs */
function requirementsOf(jobs) {
  /** @type {Map<string, Record<string, any>>} */
  const known = new Map();
  const amountsOf = (/** @type {WizardJob} */ job) => {
    const preset = PRESETS[/** @type {keyof typeof PRESETS} */ (job.preset)];
    const { num_cpus, memory, num_gpus } = preset ?? { num_cpus: Number(job.cpus) || 1, memory: job.memory || "1g", num_gpus: Number(job.gpus) || 0 };
    return { num_cpus, num_gpus, memory, runtime: job.runtime || "PT1H" };
  };
  const keyOf = (/** @type {WizardJob} */ job) => JSON.stringify(amountsOf(job));
  for (const job of jobs) {
    if (known.has(keyOf(job))) continue;
    const sameNames = [...known.values()].filter((each) => each.base === job.preset).length;
    known.set(keyOf(job), { base: job.preset, name: sameNames ? `${job.preset}_${sameNames + 1}` : job.preset, ...amountsOf(job) });
  }
  return { nameOf: (/** @type {WizardJob} */ job) => known.get(keyOf(job))?.name, list: [...known.values()].map(({ base: _, ...others }) => others) };
}

/**
 * Leave out what is empty.
 * @param {Record<string, any>} values
 */
const withoutEmpty = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && !(Array.isArray(value) && !value.length)));

/**
 * Return what is missing in a step, as sentences.
 * @param {Wizard} wizard
 * @param {number} step from 0
 */
export function problemsOf(wizard, step) {
  if (step === 0) return wizard.name.trim() ? [] : ["The workflow needs a name."];
  if (step === 1) return jobProblems(wizard.jobs);
  if (step === 2) return [...wizard.schedulers.filter((each) => !each.name || !each.account).map((_, index) => `Scheduler ${index + 1} needs a name and an account.`), ...twice(wizard.schedulers, "schedulers")];
  if (step === 3) return wizard.actions.flatMap((action, index) => [...(action.scheduler ? [] : [`Action ${index + 1} needs a scheduler.`]), ...(action.trigger === "on_workflow_start" || action.jobs.length ? [] : [`Action ${index + 1} needs jobs.`])]);
  return [];
}

/** @param {WizardJob[]} jobs */
function jobProblems(jobs) {
  if (!jobs.length) return ["The workflow needs a job."];
  const missing = jobs.flatMap((job, index) => (job.name && job.command ? [] : [`Job ${index + 1} needs a name and a command.`]));
  return [...missing, ...twice(jobs, "jobs")];
}

/** @param {{name: string}[]} items @param {string} what */
function twice(items, what) {
  const names = items.map((item) => item.name).filter(Boolean);
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  return [...new Set(repeated)].map((name) => `Two ${what} are called "${name}".`);
}
