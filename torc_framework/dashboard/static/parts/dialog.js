// Modal dialogs: the browser's own, which keeps the focus inside and ends with Escape.

import { html, signal, useEffect, useId, useRef } from "../vendor/ui.js";
import { route } from "../core/router.js";

/** The open dialog: a function that returns its content, or null. @type {{value: (() => any) | null}} */
const content = signal(/** @type {(() => any) | null} */ (null));

/** @param {() => any} render */
export function openDialog(render) {
  content.value = render;
}

export function closeDialog() {
  content.value = null;
}

/** Whether a dialog is open. */
export const hasDialog = () => content.value !== null;

/** The place of the open dialog; stands once in the page. */
export const DialogPlace = () => (content.value ? html`<${Frame} key=${content.value} render=${content.value} />` : null);

/** @param {{render: () => any}} props */
function Frame({ render }) {
  const element = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const place = route.value.path.join("/");
    const end = route.subscribe(({ path }) => path.join("/") !== place && closeDialog()); // it is about the view behind it
    const dialog = element.current;
    dialog.showModal();
    return () => {
      end();
      dialog.close(); // while it is open, nothing behind it can have the focus
      // The button that opened it may be gone: a card that was about a failure, for one.
      if (focused?.isConnected) focused.focus();
      if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
    };
  }, []);
  const onClick = (/** @type {MouseEvent} */ event) => event.target === element.current && closeDialog();
  return html`<dialog ref=${element} onClose=${() => content.value === render && closeDialog()} onMouseDown=${onClick}><${Content} render=${render} /></dialog>`;
}

/** @param {{render: () => any}} props */
const Content = ({ render }) => html`<div class="dialog-box">${render()}</div>`;

/**
 * The frame of a dialog's content.
 * @param {{title: string, children?: any, buttons?: any}} props
 */
export function DialogBox({ title, children, buttons }) {
  const id = useId();
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => box.current?.closest("dialog")?.setAttribute("aria-labelledby", id), []);
  return html`<section ref=${box} class="dialog">
    <header><h2 id=${id}>${title}</h2><button type="button" class="quiet" aria-label="Close" onClick=${closeDialog}>✕</button></header>
    <div class="dialog-body">${children}</div>
    <footer>${buttons ?? html`<button type="button" onClick=${closeDialog}>Close</button>`}</footer>
  </section>`;
}
