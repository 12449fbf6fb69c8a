import { html } from "../vendor/ui.js";
export const Sweep = () => html`<p>…</p>`;
