import { html } from "../vendor/ui.js";
export const Create = () => html`<p>…</p>`;
