// A table of a few rows, all in the page.

import { html } from "../vendor/ui.js";

/**
 * @param {object} props
 * @param {string} props.label
 * @param {{title: string, isNumber?: boolean, show: (row: any) => any}[]} props.columns
 * @param {any[]} props.rows
 * @param {(row: any) => string | number} [props.keyOf]
 * @param {(row: any) => string} [props.classOf]
 */
export const PlainTable = ({ label, columns, rows, keyOf, classOf }) => html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
  <table>
    <thead>
      <tr>${columns.map((column) => html`<th key=${column.title} scope="col" class=${column.isNumber ? "number" : ""}>${column.title}</th>`)}</tr>
    </thead>
    <tbody>
      ${rows.map(
        (row, index) => html`<tr key=${keyOf ? keyOf(row) : index} class=${classOf ? classOf(row) : ""}>
          ${columns.map((column) => html`<td key=${column.title} class=${column.isNumber ? "number" : ""}>${column.show(row)}</td>`)}
        </tr>`,
      )}
    </tbody>
  </table>
</div>`;
