// A line chart of one amount over time.

import { html, useEffect, useRef } from "../vendor/ui.js";
import uPlot from "../vendor/uplot.js";
import { preferences } from "../core/preferences.js";
import { clockText, secondsText, timeText } from "../core/times.js";
import { styleColour } from "../core/words.js";

const HEIGHT = 220;

/** Steps of whole numbers, and of sizes. */
export const WHOLE_STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
export const SIZE_STEPS = Array.from({ length: 45 }, (_, power) => 2 ** power);

/** @param {number} time @param {number[]} ticks */
function tickText(time, ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
  if (step >= 86400) return timeText(1000 * time);
  return step >= 60 ? clockText(1000 * time) : secondsText(time, step);
}

/**
 * @param {object} props
 * @param {string} props.title
 * @param {number[]} props.times seconds since the epoch
 * @param {(number | null)[]} props.values
 * @param {number | null} [props.limit] what the job asked for, as a line
 * @param {(value: number) => string} props.format
 * @param {number[]} props.steps between lines of the grid: the least that leaves enough room is taken
 */
export function Chart({ title, times, values, limit = null, format, steps }) {
  const place = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const axis = { stroke: styleColour("muted"), grid: { stroke: styleColour("line"), width: 1 }, ticks: { stroke: styleColour("line") } };
    const text = (/** @type {any} */ _, /** @type {number | null} */ value) => (value === null || value === undefined ? "–" : format(value));
    const chart = new uPlot(
      {
        width: place.current.clientWidth,
        height: HEIGHT,
        series: [
          { value: (/** @type {any} */ _, /** @type {number | null} */ time) => (time === null ? "–" : timeText(1000 * time)) },
          { label: title, stroke: styleColour("status-running"), width: 2, value: text },
          ...(limit === null ? [] : [{ label: "Asked for", stroke: styleColour("status-failed"), dash: [6, 4], value: text }]),
        ],
        axes: [
          { ...axis, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((time) => tickText(time, ticks)) },
          { ...axis, size: 90, incrs: steps, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(format) },
        ],
        scales: { y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, Math.max(most, limit ?? 0, 1) * 1.05] } },
      },
      limit === null ? [times, values] : [times, values, times.map(() => limit)],
      place.current,
    );
    const observer = new ResizeObserver(() => place.current && chart.setSize({ width: place.current.clientWidth, height: HEIGHT }));
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [times, values, limit, preferences.value]);
  const known = /** @type {number[]} */ (values.filter((value) => value !== null));
  const about = known.length ? `at most ${format(known.reduce((most, value) => Math.max(most, value), -Infinity))}, at the end ${format(known[known.length - 1])}` : "no values";
  return html`<figure class="chart"><figcaption>${title}: ${about}</figcaption><div ref=${place} role="img" aria-label=${`${title} over time: ${about}`}></div></figure>`;
}
