// A canvas that can be moved and zoomed by pointer, wheel, touch and keys; draws only when something has changed.

/** @typedef {{x: number, y: number, scale: number}} Viewpoint place of the drawing's origin in the canvas, in pixels */

/** @typedef {{image: HTMLCanvasElement, view: Viewpoint, takenAt: number}} Picture a drawing, from where it was seen, and when */

const SMALLEST = 0.02;
const LARGEST = 4;
const EDGE_PX = 8;
const DRAG_PX = 4;
/** How long a moved drawing rests before it is drawn anew; until then its picture is moved. */
const REST_MS = 120;
/** Shortest time between two drawings while it moves on. */
const RENEW_MS = 300;
/** Width and height of that picture in views: it has a margin to move into. */
const PICTURE = 2;

export class CanvasView {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {object} hooks
   * @param {(context: CanvasRenderingContext2D, view: Viewpoint, width: number, height: number) => void} hooks.draw
   * @param {(x: number, y: number, isDouble: boolean) => void} hooks.onClick in the drawing's coordinates
   * @param {boolean} [hooks.isHeavy] whether a drawing takes longer than a frame
   */
  constructor(canvas, { draw, onClick, isHeavy = false }) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.hooks = { draw, onClick, isHeavy };
    /** The last drawing with a margin, and the place from which it was seen. @type {Picture | null} */
    this.picture = null;
    this.restTimer = 0;
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
    clearTimeout(this.restTimer);
    this.observer.disconnect();
    this.ender.abort();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    this.picture = null;
    this.drawNow();
  }

  /** Draw anew with the next frame. */
  redraw() {
    this.picture = null;
    this.redrawMoved();
  }

  /** Draw with the next frame what has only moved. */
  redrawMoved() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.frame = 0;
    if (!this.hooks.isHeavy) {
      this.paint(this.context, this.view, this.canvas.clientWidth, this.canvas.clientHeight);
      return;
    }
    if (this.picture && this.isCovered(this.picture)) {
      clearTimeout(this.restTimer);
      this.restTimer = setTimeout(() => this.redraw(), REST_MS);
    } else {
      this.picture = this.takePicture();
    }
    this.showPicture(this.picture);
  }

  /** @param {CanvasRenderingContext2D} context @param {Viewpoint} view @param {number} width @param {number} height */
  paint(context, view, width, height) {
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.hooks.draw(context, view, width, height);
  }

  /** Return the drawing with a margin around the view. */
  takePicture() {
    const { width, height, clientWidth, clientHeight } = this.canvas;
    const image = document.createElement("canvas");
    image.width = PICTURE * width;
    image.height = PICTURE * height;
    const margin = (PICTURE - 1) / 2;
    const view = { ...this.view, x: this.view.x + margin * clientWidth, y: this.view.y + margin * clientHeight };
    this.paint(/** @type {CanvasRenderingContext2D} */ (image.getContext("2d")), view, PICTURE * clientWidth, PICTURE * clientHeight);
    return { image, view: this.view, takenAt: performance.now() };
  }

  /** Whether a picture still fills the view, or is too new to be replaced. @param {Picture} picture */
  isCovered({ view, takenAt }) {
    const { clientWidth, clientHeight } = this.canvas;
    const { left, top, zoom } = this.placeOf(view);
    const isFull = left <= 0 && top <= 0 && left + PICTURE * clientWidth * zoom >= clientWidth && top + PICTURE * clientHeight * zoom >= clientHeight;
    return isFull || performance.now() - takenAt < RENEW_MS;
  }

  /** Where the picture of a view is to be shown now. @param {Viewpoint} view */
  placeOf(view) {
    const { clientWidth, clientHeight } = this.canvas;
    const zoom = this.view.scale / view.scale;
    const margin = (PICTURE - 1) / 2;
    return { zoom, left: this.view.x - (view.x + margin * clientWidth) * zoom, top: this.view.y - (view.y + margin * clientHeight) * zoom };
  }

  /** @param {Picture} picture */
  showPicture({ image, view }) {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = devicePixelRatio || 1;
    const { left, top, zoom } = this.placeOf(view);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, clientWidth, clientHeight);
    this.context.drawImage(image, left, top, PICTURE * clientWidth * zoom, PICTURE * clientHeight * zoom);
  }

  /**
   * Show a part of the drawing, from its beginning if it has no room at the least scale.
   * @param {{left: number, top: number, right: number, bottom: number}} box
   * @param {number} [least]
   */
  fit({ left, top, right, bottom }, least = SMALLEST) {
    const { clientWidth, clientHeight } = this.canvas;
    const room = Math.min(clientWidth / Math.max(1, right - left), clientHeight / Math.max(1, bottom - top));
    const scale = Math.min(1, Math.max(SMALLEST, least, room * 0.94));
    const begin = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ size) => Math.max((size - scale * (to - from)) / 2, EDGE_PX) - scale * from;
    this.view = { scale, x: begin(left, right, clientWidth), y: begin(top, bottom, clientHeight) };
    this.redraw();
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] the fixed point, in pixels of the canvas */
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.view.scale * factor));
    const change = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * change, y: y - (y - this.view.y) * change };
    this.redrawMoved();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x + dx, y: this.view.y + dy };
    this.redrawMoved();
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
