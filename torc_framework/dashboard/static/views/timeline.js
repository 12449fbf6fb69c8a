import { html } from "../vendor/ui.js";
export const Timeline = () => html`<p>…</p>`;
