// The drawing of a timeline: bars of attempts in lanes of runners, with an axis of times.

import { clockText, secondsText, timeText } from "../core/times.js";
import { styleColour } from "../core/words.js";

/**
 * @typedef {object} TimelineData
 * @property {number} from_s
 * @property {number} to_s
 * @property {number | null} first_s
 * @property {number | null} last_s
 * @property {string[]} statuses
 * @property {{id: number, label: string, rows: number, attempts: number, busy_s: number, started_s: number | null, ended_s: number | null}[]} lanes
 * @property {number} lane_count
 * @property {number} attempt_count
 * @property {{lane: number[], row: number[], start: number[], end: number[], status: number[], count: number[], job_id: number[]}} bars
 * @property {number} unplaced
 */

export const GUTTER = 130;
const AXIS = 24;
const BAR = 12;
const LANE_GAP = 10;
const LEAST_LANE = 16;
/** Steps of the axis in seconds. */
const STEPS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];
const STEP_PX = 90;

export class TimelineScene {
  /** @param {TimelineData} data */
  constructor(data) {
    this.data = data;
    /** @type {number[]} */
    this.tops = [];
    let top = AXIS;
    for (const lane of data.lanes) {
      this.tops.push(top);
      top += Math.max(LEAST_LANE, lane.rows * BAR) + LANE_GAP;
    }
    this.height = top;
    this.selected = -1;
  }

  /** @param {number} width */
  pixelsPerSecond(width) {
    return (width - GUTTER) / Math.max(0.001, this.data.to_s - this.data.from_s);
  }

  /** Return the time at a pixel, in seconds since the epoch. @param {number} x @param {number} width */
  timeAt(x, width) {
    return this.data.from_s + (x - GUTTER) / this.pixelsPerSecond(width);
  }

  /** Return the position of the bar at a point, or -1. @param {number} x @param {number} y @param {number} width */
  barAt(x, y, width) {
    const { bars } = this.data;
    const scale = this.pixelsPerSecond(width);
    for (let index = 0; index < bars.lane.length; index += 1) {
      const top = this.tops[bars.lane[index]] + bars.row[index] * BAR;
      if (y < top || y >= top + BAR) continue;
      const left = GUTTER + bars.start[index] * scale;
      if (x >= left - 1 && x <= Math.max(left + 3, GUTTER + bars.end[index] * scale)) return index;
    }
    return -1;
  }

  /** @param {CanvasRenderingContext2D} context @param {number} scrollTop @param {number} width @param {number} height */
  draw(context, scrollTop, width, height) {
    context.save();
    context.translate(0, -scrollTop);
    this.drawLanes(context, width, scrollTop, scrollTop + height);
    this.drawBars(context, width, scrollTop, scrollTop + height);
    context.restore();
    this.drawAxis(context, width, height);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} from @param {number} to */
  drawLanes(context, width, from, to) {
    const { lanes, from_s } = this.data;
    const scale = this.pixelsPerSecond(width);
    context.font = "13px system-ui, sans-serif";
    context.textBaseline = "top";
    lanes.forEach((lane, index) => {
      const top = this.tops[index];
      const laneHeight = Math.max(LEAST_LANE, lane.rows * BAR);
      if (top > to || top + laneHeight < from) return;
      context.fillStyle = styleColour("raised");
      const left = lane.started_s === null ? GUTTER : Math.max(GUTTER, GUTTER + (lane.started_s - from_s) * scale);
      const right = lane.ended_s === null ? width : Math.min(width, GUTTER + (lane.ended_s - from_s) * scale);
      if (right > left) context.fillRect(left, top, right - left, laneHeight);
      context.fillStyle = styleColour("text");
      context.fillText(lane.label, 6, top, GUTTER - 12);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} from @param {number} to */
  drawBars(context, width, from, to) {
    const { bars, statuses } = this.data;
    const scale = this.pixelsPerSecond(width);
    context.save();
    context.beginPath();
    context.rect(GUTTER, from, width - GUTTER, to - from);
    context.clip();
    statuses.forEach((label, status) => {
      context.beginPath();
      for (let index = 0; index < bars.lane.length; index += 1) {
        if (bars.status[index] !== status) continue;
        const top = this.tops[bars.lane[index]] + bars.row[index] * BAR;
        if (top > to || top + BAR < from) continue;
        const left = GUTTER + bars.start[index] * scale;
        context.rect(left, top + 1, Math.max(1, (bars.end[index] - bars.start[index]) * scale - 0.5), BAR - 2);
      }
      context.fillStyle = styleColour(`status-${label}`);
      context.fill();
    });
    if (this.selected >= 0) {
      const left = GUTTER + bars.start[this.selected] * scale;
      context.strokeStyle = styleColour("text");
      context.lineWidth = 2;
      context.strokeRect(left, this.tops[bars.lane[this.selected]] + bars.row[this.selected] * BAR, Math.max(3, (bars.end[this.selected] - bars.start[this.selected]) * scale), BAR);
    }
    context.restore();
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  drawAxis(context, width, height) {
    const { from_s, to_s } = this.data;
    const scale = this.pixelsPerSecond(width);
    const step = STEPS.find((each) => each * scale >= STEP_PX) ?? STEPS[STEPS.length - 1];
    context.fillStyle = styleColour("surface");
    context.fillRect(0, 0, width, AXIS - 2);
    context.fillStyle = styleColour("muted");
    context.strokeStyle = styleColour("line");
    context.lineWidth = 1;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.beginPath();
    for (let time = Math.ceil(from_s / step) * step; time <= to_s; time += step) {
      const x = GUTTER + (time - from_s) * scale;
      const text = step >= 86400 ? timeText(1000 * time) : step >= 60 ? clockText(1000 * time) : secondsText(time, step);
      if (x + 4 + context.measureText(text).width < width) context.fillText(text, x + 4, AXIS / 2 - 1, STEP_PX);
      context.moveTo(Math.round(x) + 0.5, 0);
      context.lineTo(Math.round(x) + 0.5, height);
    }
    context.globalAlpha = 0.5;
    context.stroke();
    context.globalAlpha = 1;
  }
}
