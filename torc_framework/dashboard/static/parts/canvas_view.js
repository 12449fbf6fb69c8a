// A canvas that can be moved and zoomed by pointer, wheel, touch and keys; draws only when something has changed.

/** @typedef {{x: number, y: number, scale: number}} Viewpoint place of the drawing's origin in the canvas, in pixels */

const SMALLEST = 0.02;
const LARGEST = 4;
const DRAG_PX = 4;

export class CanvasView {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {object} hooks
   * @param {(context: CanvasRenderingContext2D, view: Viewpoint, width: number, height: number) => void} hooks.draw
   * @param {(x: number, y: number, isDouble: boolean) => void} hooks.onClick in the drawing's coordinates
   */
  constructor(canvas, { draw, onClick }) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.hooks = { draw, onClick };
    /** @type {Viewpoint} */
    this.view = { x: 0, y: 0, scale: 1 };
    this.frame = 0;
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    this.moved = 0;
    this.ender = new AbortController();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
    this.listen();
  }

  listen() {
    const on = (/** @type {string} */ type, /** @type {(event: any) => void} */ handler, options = {}) =>
      this.canvas.addEventListener(type, handler, { signal: this.ender.signal, ...options });
    on("pointerdown", (event) => this.down(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("dblclick", (event) => this.hooks.onClick(...this.at(event), true));
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("keydown", (event) => this.key(event));
  }

  end() {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.ender.abort();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.drawNow();
  }

  /** Draw with the next frame. */
  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.frame = 0;
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, clientWidth, clientHeight);
    this.hooks.draw(this.context, this.view, clientWidth, clientHeight);
  }

  /**
   * Show a part of the drawing.
   * @param {{left: number, top: number, right: number, bottom: number}} box
   */
  fit({ left, top, right, bottom }) {
    const { clientWidth, clientHeight } = this.canvas;
    const room = Math.min(clientWidth / Math.max(1, right - left), clientHeight / Math.max(1, bottom - top));
    const scale = Math.min(1, Math.max(SMALLEST, room * 0.94));
    this.view = { scale, x: (clientWidth - scale * (left + right)) / 2, y: (clientHeight - scale * (top + bottom)) / 2 };
    this.redraw();
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] the fixed point, in pixels of the canvas */
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.view.scale * factor));
    const change = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * change, y: y - (y - this.view.y) * change };
    this.redraw();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x + dx, y: this.view.y + dy };
    this.redraw();
  }

  /** @param {any} event @returns {[number, number]} */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const { x, y, scale } = this.view;
    return [(event.clientX - box.left - x) / scale, (event.clientY - box.top - y) / scale];
  }

  /** @param {any} event */
  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.moved = 0;
  }

  /** @param {any} event */
  move(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const here = { x: event.clientX, y: event.clientY };
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.moved += Math.abs(here.x - last.x) + Math.abs(here.y - last.y);
    if (other) {
      const box = this.canvas.getBoundingClientRect();
      const before = Math.hypot(last.x - other.x, last.y - other.y);
      const after = Math.hypot(here.x - other.x, here.y - other.y);
      if (before > 0) this.zoom(after / before, other.x - box.left, other.y - box.top);
    } else {
      this.pan(here.x - last.x, here.y - last.y);
    }
    this.pointers.set(event.pointerId, here);
  }

  /** @param {any} event */
  up(event) {
    this.pointers.delete(event.pointerId);
    if (this.moved < DRAG_PX) this.hooks.onClick(...this.at(event), false);
  }

  /** @param {any} event */
  wheel(event) {
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.pan(60, 0),
      ArrowRight: () => this.pan(-60, 0),
      ArrowUp: () => this.pan(0, 60),
      ArrowDown: () => this.pan(0, -60),
      "+": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }
}
