// The drawing of a graph: boxes in layers from left to right, lines between them. Positions come from the server.

import { BAR_ORDER, styleColour, statusLook } from "../core/words.js";

/**
 * @typedef {object} GraphNode
 * @property {string} id
 * @property {string} kind
 * @property {string} label
 * @property {number} count
 * @property {Record<string, number>} [counts]
 * @property {number} layer
 * @property {number} order
 * @property {number} [stage]
 * @property {number} [job_id]
 */

const BOX_WIDTH = 180;
const BOX_HEIGHT = 34;
const COLUMN = 260;
const ROW = 46;
/** Scales below which labels, and curves of lines, are left out. */
const LABEL_SCALE = 0.45;
const CURVES = 1500;
const PATH_SEGMENTS = 100;
const HEAVY = 2000;

export class GraphScene {
  /** @param {GraphNode[]} nodes @param {[number, number, number][]} edges */
  constructor(nodes, edges) {
    this.nodes = nodes;
    this.edges = edges;
    this.x = new Float32Array(nodes.length);
    this.y = new Float32Array(nodes.length);
    /** Nodes of each layer by their order. @type {Map<number, number[]>} */
    this.layers = new Map();
    nodes.forEach((node, index) => this.layers.set(node.layer, [...(this.layers.get(node.layer) ?? []), index]));
    const longest = Math.max(1, ...[...this.layers.values()].map((members) => members.length));
    for (const [layer, members] of this.layers) {
      members.sort((first, second) => nodes[first].order - nodes[second].order);
      members.forEach((index, position) => {
        this.x[index] = layer * COLUMN;
        this.y[index] = (position + (longest - members.length) / 2) * ROW;
      });
    }
    this.box = { left: 0, top: 0, right: (Math.max(0, ...this.layers.keys()) + 1) * COLUMN - (COLUMN - BOX_WIDTH), bottom: longest * ROW - (ROW - BOX_HEIGHT) };
    this.selected = -1;
    /** Whether drawing it takes longer than a frame. */
    this.isHeavy = nodes.length + edges.length > HEAVY;
    this.setStatuses(nodes);
  }

  /** Take new numbers of the same nodes. @param {GraphNode[]} nodes */
  setStatuses(nodes) {
    this.nodes = nodes;
    /** Parts of boxes by status: node, begin and end as shares of the width. @type {Map<string, [number, number, number][]>} */
    this.parts = new Map();
    nodes.forEach((node, index) => {
      const counts = BAR_ORDER.filter((label) => node.counts?.[label]).map((label) => /** @type {[string, number]} */ ([label, node.counts?.[label] ?? 0]));
      const total = counts.reduce((sum, [, count]) => sum + count, 0) || 1;
      let begin = 0;
      for (const [label, count] of counts) {
        const end = begin + count / total;
        const parts = this.parts.get(label);
        if (parts) parts.push([index, begin, end]);
        else this.parts.set(label, [[index, begin, end]]);
        begin = end;
      }
    });
  }

  /** Return the position of the node at a point, or -1. @param {number} x @param {number} y */
  nodeAt(x, y) {
    for (const members of this.layers.values()) {
      const left = this.x[members[0]];
      if (x < left || x > left + BOX_WIDTH) continue;
      const index = members[Math.floor((y - this.y[members[0]]) / ROW)];
      return index !== undefined && y <= this.y[index] + BOX_HEIGHT ? index : -1;
    }
    return -1;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./canvas_view.js").Viewpoint} view
   * @param {number} width
   * @param {number} height
   */
  draw(context, view, width, height) {
    context.translate(view.x, view.y);
    context.scale(view.scale, view.scale);
    const seen = { left: -view.x / view.scale, top: -view.y / view.scale, right: (width - view.x) / view.scale, bottom: (height - view.y) / view.scale };
    this.drawEdges(context, view.scale);
    this.drawBoxes(context, seen, view.scale);
    if (view.scale >= LABEL_SCALE) this.drawLabels(context, seen);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} scale */
  drawEdges(context, scale) {
    const isMany = this.edges.length > CURVES;
    const line = (/** @type {(edge: [number, number, number]) => boolean} */ has) => {
      context.beginPath();
      let segments = 0;
      for (const edge of this.edges) {
        if (!has(edge)) continue;
        segments += 1;
        if (segments % PATH_SEGMENTS === 0) {
          context.stroke(); // a path of thousands of lines takes much longer than many short ones
          context.beginPath();
        }
        const [source, target] = edge;
        const fromX = this.x[source] + BOX_WIDTH;
        const fromY = this.y[source] + BOX_HEIGHT / 2;
        const toX = this.x[target];
        const toY = this.y[target] + BOX_HEIGHT / 2;
        context.moveTo(fromX, fromY);
        if (isMany) context.lineTo(toX, toY);
        else context.bezierCurveTo(fromX + 40, fromY, toX - 40, toY, toX, toY);
      }
      context.stroke();
    };
    context.lineWidth = 1 / scale;
    context.strokeStyle = styleColour("line-strong");
    context.globalAlpha = isMany ? 0.25 : 0.6;
    line(() => true);
    if (this.selected >= 0) {
      context.globalAlpha = 1;
      context.lineWidth = 2 / scale;
      context.strokeStyle = styleColour("accent");
      line(([source, target]) => source === this.selected || target === this.selected);
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{left: number, top: number, right: number, bottom: number}} seen
   * @param {number} scale
   */
  drawBoxes(context, seen, scale) {
    const isSeen = (/** @type {number} */ index) =>
      this.x[index] < seen.right && this.x[index] + BOX_WIDTH > seen.left && this.y[index] < seen.bottom && this.y[index] + BOX_HEIGHT > seen.top;
    const isFar = scale < LABEL_SCALE;
    context.fillStyle = styleColour("surface");
    context.lineWidth = 1 / scale;
    context.strokeStyle = styleColour("line-strong");
    for (let index = 0; index < this.nodes.length; index += 1) {
      if (!isSeen(index)) continue;
      context.fillRect(this.x[index], this.y[index], BOX_WIDTH, BOX_HEIGHT);
      if (!isFar) context.strokeRect(this.x[index], this.y[index], BOX_WIDTH, BOX_HEIGHT);
    }
    const top = isFar ? 0 : BOX_HEIGHT - 8; // far away the whole box has the colour, near it leaves room for the label
    for (const [label, parts] of this.parts ?? []) {
      context.fillStyle = styleColour(`status-${label}`);
      for (const [index, begin, end] of parts) {
        if (isSeen(index)) context.fillRect(this.x[index] + begin * BOX_WIDTH, this.y[index] + top, (end - begin) * BOX_WIDTH, BOX_HEIGHT - top);
      }
    }
    if (this.selected >= 0) {
      context.lineWidth = 3 / scale;
      context.strokeStyle = styleColour("accent");
      context.strokeRect(this.x[this.selected], this.y[this.selected], BOX_WIDTH, BOX_HEIGHT);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {{left: number, top: number, right: number, bottom: number}} seen */
  drawLabels(context, seen) {
    context.font = "13px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = styleColour("text");
    this.nodes.forEach((node, index) => {
      if (this.x[index] > seen.right || this.x[index] + BOX_WIDTH < seen.left || this.y[index] > seen.bottom || this.y[index] + BOX_HEIGHT < seen.top) return;
      context.fillText(labelText(node), this.x[index] + 8, this.y[index] + 13, BOX_WIDTH - 16);
    });
  }
}

const LONGEST = 26;

/** @param {GraphNode} node */
function labelText(node) {
  const number = node.count > 1 ? ` × ${node.count.toLocaleString("en-US")}` : "";
  const label = Object.keys(node.counts ?? {});
  const glyph = node.count === 1 && label.length === 1 ? `${statusLook(label[0]).glyph} ` : "";
  const room = LONGEST - number.length - glyph.length;
  const name = node.label.length > room ? `${node.label.slice(0, Math.ceil(room / 2) - 1)}…${node.label.slice(-Math.floor(room / 2))}` : node.label;
  return `${glyph}${name}${number}`;
}
