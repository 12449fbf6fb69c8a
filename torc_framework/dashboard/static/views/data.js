import { html } from "../vendor/ui.js";
export const Data = () => html`<p>…</p>`;
