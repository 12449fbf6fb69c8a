// Fields for the options of a command.

import { html, useId } from "../vendor/ui.js";
import { valueOf } from "../core/orders.js";

/** @typedef {import("../core/orders.js").CommandOption} CommandOption */

/** Options that a first look shows; the others stand below "More options". */
const FEW = 4;

/**
 * @param {object} props
 * @param {CommandOption[]} props.options
 * @param {Record<string, any>} props.values
 * @param {string[]} [props.fixed] names of options that are not asked for: the button has chosen them
 * @param {number} [props.most] most options that a first look shows
 * @param {(values: Record<string, any>) => void} props.onChange
 */
export function OptionFields({ options, values, fixed = [], most = FEW, onChange }) {
  const shown = options.filter((option) => !HIDDEN.has(option.kind) && !fixed.includes(option.name));
  const first = shown.filter((option, index) => index < most || option.name in values);
  const others = shown.filter((option) => !first.includes(option));
  const set = (/** @type {string} */ name, /** @type {any} */ value) => {
    const { [name]: _, ...rest } = values;
    onChange(value === "" || value === false || value === undefined ? rest : { ...rest, [name]: value });
  };
  const field = (/** @type {CommandOption} */ option) =>
    html`<${Field} key=${option.name} option=${option} value=${values[option.name]} onChange=${(/** @type {any} */ value) => set(option.name, value)} />`;
  return html`${first.length ? html`<div class="options">${first.map(field)}</div>` : ""}
    ${others.length ? html`<details class="more-options"><summary>${first.length ? "More options" : "Options"}</summary><div class="options">${others.map(field)}</div></details>` : ""}`;
}

/** Kinds of options with fields of their own in a view. */
const HIDDEN = new Set(["spec", "format", "spec_path"]);
const NUMBERS = new Set(["int", "float"]);

/** Titles of options whose names are no words. @type {Record<string, string>} */
const TITLES = { num_cpus: "CPUs", num_gpus: "GPUs", memory_gb: "Memory, GiB", max_parallel_jobs: "Most jobs at once", output_dir: "Output folder", runtime: "Run time", runtime_multiplier: "Run time multiplier", max_retries: "Most recoveries" };

/** @param {string} name */
function titleOf(name) {
  const words = name.replaceAll("_", " ");
  return TITLES[name] ?? `${words[0].toUpperCase()}${words.slice(1)}`;
}

/** @param {{option: CommandOption, value: any, onChange: (value: any) => void}} props */
function Field({ option, value, onChange }) {
  const id = useId();
  const title = titleOf(option.name);
  if (option.kind === "flag") {
    return html`<div class="option">
      <label class="check"><input type="checkbox" checked=${Boolean(value)} aria-describedby=${id} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.checked)} /> ${title}</label>
      <p class="muted" id=${id}>${option.help}</p>
    </div>`;
  }
  const isNumber = NUMBERS.has(option.kind);
  const read = (/** @type {string} */ text) => (text === "" ? "" : valueOf(option.kind, text));
  return html`<div class="option">
    <label>${title}
      <input type=${isNumber ? "number" : "text"} step=${option.kind === "float" ? "any" : undefined} value=${Array.isArray(value) ? value.join(", ") : (value ?? "")}
        aria-describedby=${id}
        onInput=${(/** @type {any} */ event) => onChange(read(event.currentTarget.value))} />
    </label>
    <p class="muted" id=${id}>${option.help}</p>
  </div>`;
}

