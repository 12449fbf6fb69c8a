import { html } from "../vendor/ui.js";
export const Graph = () => html`<p>…</p>`;
