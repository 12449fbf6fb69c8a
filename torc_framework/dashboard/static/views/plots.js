import { html } from "../vendor/ui.js";
export const Plots = () => html`<p>…</p>`;
