// Draws the page that stands as JSON in the document: charts by uPlot, a table that sorts.
(() => {
  "use strict";
  const SHOWN = 20; // lines that a crowded chart begins with
  const BARS = 60; // jobs in a bar chart
  const ROWS = 1000; // rows of a table at first
  const TIPPED = 12; // lines in the box at the cursor
  const HEIGHT = 340;
  const LABEL = 20; // letters of a job's name below a bar
  const LETTER = 8; // pixels of a letter, roughly

  const page = JSON.parse(document.getElementById("page").textContent);
  const charts = [];
  window.torcCharts = charts;

  function make(tag, properties = {}, ...children) {
    const { style, ...rest } = properties;
    const element = Object.assign(document.createElement(tag), rest);
    if (style) Object.assign(element.style, style);
    element.append(...children);
    return element;
  }

  // Amounts as the command line shows them: 8.8 MiB, 3 min 05 s.
  const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const rounded = (value, digits) => Math.round(value * 10 ** digits) / 10 ** digits;
  const tenths = (value, whole) => `${rounded(value, value < whole ? 1 : 0)}`;
  const two = (value) => `${value}`.padStart(2, "0");

  function size(value, digits = 1) {
    let step = 0;
    while ((value >= 1000 || tenths(value, 99.95) >= 1024) && step < SIZES.length - 1) {
      value /= 1024;
      step += 1;
    }
    return `${rounded(value, step && value < 99.95 ? digits : 0)} ${SIZES[step]}`;
  }

  function duration(value) {
    if (value < 9.95) return `${Math.round(value * 10) / 10} s`;
    const step = value >= 86400 - 30 ? 3600 : value >= 3600 - 0.5 ? 60 : 1;
    const whole = Math.round(value / step) * step;
    const amounts = [
      [Math.floor(whole / 86400), "d"],
      [Math.floor(whole / 3600) % 24, "h"],
      [Math.floor(whole / 60) % 60, "min"],
      [whole % 60, "s"],
    ].filter(([amount]) => amount);
    const padded = (unit, at) => at && (unit === "min" || unit === "s");
    return amounts.map(([amount, unit], at) => `${padded(unit, at) ? two(amount) : amount} ${unit}`).join(" ");
  }

  const formats = {
    text: (value) => value,
    count: (value) => Math.round(value).toLocaleString("en"),
    percent: (value) => `${tenths(value, 9.95)}%`,
    bytes: size,
    seconds: duration,
  };
  const shown = (unit, value) => (value === null || value === undefined ? "–" : formats[unit](value));

  // Colours that stay apart: steps of the golden angle around the circle.
  const colour = (index, alpha = 1) => `hsl(${(215 + index * 137.508) % 360} 65% 52% / ${alpha})`;
  const ink = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name);

  // Steps of an axis: round figures, in powers of two for bytes.
  const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

  function axes({ unit, axis }, below) {
    const look = {
      stroke: ink("--soft"),
      grid: { stroke: ink("--line") },
      ticks: { stroke: ink("--line") },
      labelFont: "12px system-ui, sans-serif",
      labelSize: 20,
    };
    const values = (_, splits) => splits.map((split) => (unit === "bytes" ? size(split, 2) : shown(unit, split)));
    const left = { ...look, size: 76, label: axis, values };
    if (unit === "bytes") left.incrs = BYTE_STEPS;
    if (unit === "count") left.incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000];
    return [{ ...look, ...below }, left];
  }

  const day = (time) => `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const clock = (time) => `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;

  // Labels of a time axis: the time of day, and below it the date where it begins; dates alone for steps of days.
  function moments(plot, splits, axis, space, step) {
    let before = "";
    return splits.map((split) => {
      const time = new Date(split * 1000);
      const date = day(time);
      const begins = date !== before ? `\n${date}` : "";
      before = date;
      if (step >= 86400) return date;
      const fraction = step < 1 ? `.${Math.floor((split % 1) * 10 + 1e-6)}` : "";
      return (step < 60 ? clock(time) + fraction : clock(time).slice(0, 5)) + begins;
    });
  }

  const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const timeAxis = { label: `Time (${ZONE})`, space: 80, size: 52, values: moments };

  // The range of times: all of them, and half a minute around a single one, to which uPlot would give years.
  const period = (plot, first, last) => (plot.data[0].length > 1 ? [first, last] : [first - 30, first + 30]);

  // The nearest point of a line that has a value: lines have samples at times of their own.
  function nearest(plot, series, index) {
    const values = plot.data[series];
    if (series === 0 || values[index] != null) return index;
    const at = plot.data[0][index];
    let [before, after] = [index, index];
    while (before >= 0 && values[before] == null) before -= 1;
    while (after < values.length && values[after] == null) after += 1;
    if (before < 0) return after < values.length ? after : index;
    if (after >= values.length) return before;
    return at - plot.data[0][before] <= plot.data[0][after] - at ? before : after;
  }

  function tip(unit, heading) {
    const box = make("div", { className: "tip" });
    return {
      hooks: {
        init: (plot) => plot.over.append(box),
        setCursor: (plot) => {
          const { left, top, idx, idxs } = plot.cursor;
          box.style.display = left < 0 || idx == null ? "none" : "block";
          if (left < 0 || idx == null) return;
          const lines = plot.series
            .map((series, number) => ({ series, number, value: plot.data[number][idxs[number] ?? idx] }))
            .filter(({ series, number, value }) => number > 0 && series.show && value != null)
            .sort((one, other) => other.value - one.value);
          box.replaceChildren(
            make("b", {}, heading(plot, idx)),
            ...lines.slice(0, TIPPED).map(({ series, number, value }) =>
              make(
                "div",
                {},
                make("i", { style: { background: plot.torcColours[number - 1] } }),
                `${series.label}: ${shown(unit, value)}`,
              ),
            ),
          );
          if (lines.length > TIPPED) box.append(make("div", {}, `and ${lines.length - TIPPED} more`));
          const flips = left > plot.over.clientWidth / 2;
          box.style.left = flips ? "" : `${left + 16}px`;
          box.style.right = flips ? `${plot.over.clientWidth - left + 16}px` : "";
          box.style.top = `${Math.max(0, Math.min(top, plot.over.clientHeight - box.clientHeight))}px`;
        },
      },
    };
  }

  // The wheel zooms at the cursor; dragging with shift held moves along.
  function wheel() {
    return {
      hooks: {
        ready: (plot) => {
          const first = plot.data[0][0];
          const last = plot.data[0][plot.data[0].length - 1];
          const move = (min, max) => {
            const span = Math.min(max - min, last - first);
            const begin = Math.max(first, Math.min(min, last - span));
            plot.setScale("x", { min: begin, max: begin + span });
          };
          plot.over.addEventListener(
            "wheel",
            (event) => {
              if (!event.ctrlKey && !event.shiftKey) return; // else the page could not be scrolled
              event.preventDefault();
              const { min, max } = plot.scales.x;
              const at = plot.posToVal(plot.cursor.left, "x");
              const factor = (event.deltaY || event.deltaX) < 0 ? 0.75 : 4 / 3;
              move(at - (at - min) * factor, at + (max - at) * factor);
            },
            { passive: false },
          );
          plot.over.addEventListener(
            "mousedown",
            (event) => {
              if (!event.shiftKey || event.button !== 0) return;
              event.preventDefault();
              event.stopImmediatePropagation();
              const { min, max } = plot.scales.x;
              const unit = (max - min) / plot.over.clientWidth;
              const drag = (moved) => {
                const by = (event.clientX - moved.clientX) * unit;
                move(min + by, max + by);
              };
              addEventListener("mousemove", drag);
              addEventListener("mouseup", () => removeEventListener("mousemove", drag), { once: true });
            },
            { capture: true },
          );
        },
      },
    };
  }

  function save(plot, name) {
    const source = plot.ctx.canvas;
    const picture = make("canvas", { width: source.width, height: source.height });
    const context = picture.getContext("2d");
    context.fillStyle = ink("--card")();
    context.fillRect(0, 0, picture.width, picture.height);
    context.drawImage(source, 0, 0);
    make("a", { href: picture.toDataURL("image/png"), download: `${name}.png` }).click();
  }

  // A frame with a title, buttons and room for the plot; `build` makes the plot of a width.
  function frame(chart, build) {
    const place = make("div", { className: "plot" });
    const holder = {
      plot: null,
      draw() {
        holder.plot?.destroy();
        holder.plot = build(place, place.clientWidth || 800);
      },
    };
    const button = (label, title, act) => make("button", { type: "button", textContent: label, title, onclick: act });
    const card = make(
      "section",
      { className: "card" },
      make(
        "div",
        { className: "head" },
        make("h2", {}, chart.title),
        button("Reset zoom", "Show everything; so does a double click", () => holder.draw()),
        button("Save PNG", "Save as a picture", () => save(holder.plot, chart.title)),
      ),
      place,
    );
    document.body.append(card);
    new ResizeObserver(() => {
      const width = place.clientWidth;
      if (!width || !holder.plot || holder.plot.width === width) return;
      if (chart.kind === "bars") holder.draw(); // whether its labels are turned depends on the width
      else holder.plot.setSize({ width, height: HEIGHT });
    }).observe(place);
    charts.push(holder);
    return { card, holder };
  }

  function lines(chart) {
    const picked = new Set(chart.series.slice(0, SHOWN));
    const when = (plot, index) => {
      const time = new Date(plot.data[0][index] * 1000);
      return `${day(time)} ${clock(time)}`;
    };
    const { card, holder } = frame(chart, (place, width) => {
      const chosen = chart.series.filter((series) => picked.has(series));
      const colours = chosen.map((series) => colour(chart.series.indexOf(series)));
      const data = chosen.length ? uPlot.join(chosen.map(({ times, values }) => [times, values])) : [[0], []];
      const options = {
        width,
        height: HEIGHT,
        series: [
          { label: "Time", value: (plot, _, __, index) => (index == null ? "–" : when(plot, index)) },
          ...chosen.map((series, index) => ({
            label: series.label,
            stroke: colours[index],
            width: 2,
            spanGaps: true,
            fill: chosen.length === 1 ? colour(0, 0.12) : undefined,
            // A line of one sample is nothing but its point.
            points:
              series.times.length === 1
                ? { show: true, size: 10, fill: colours[index] }
                : { show: series.times.length < 100 && chosen.length < 5, size: 5 },
            value: (_, value) => shown(chart.unit, value),
          })),
        ],
        padding: [null, 36, null, null],
        axes: axes(chart, timeAxis),
        scales: { x: { range: period }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
        cursor: { dataIdx: nearest, focus: { prox: 24 } },
        focus: { alpha: 0.35 },
        plugins: [tip(chart.unit, when), wheel()],
      };
      const plot = new uPlot(options, data, place);
      plot.torcColours = colours;
      return plot;
    });
    if (chart.series.length > SHOWN) card.append(picker(chart, picked, holder));
    holder.draw();
  }

  function picker(chart, picked, holder) {
    const list = make("ul");
    const filter = make("input", { type: "search", placeholder: "Find jobs", ariaLabel: "Find jobs" });
    const fill = () => {
      const wanted = filter.value.toLowerCase();
      const found = chart.series.filter((series) => series.label.toLowerCase().includes(wanted));
      list.replaceChildren(
        ...found.slice(0, 500).map((series) => {
          const box = make("input", { type: "checkbox", checked: picked.has(series) });
          box.onchange = () => {
            picked[box.checked ? "add" : "delete"](series);
            holder.draw();
          };
          return make("li", { title: series.label }, make("label", {}, box, ` ${series.label}`));
        }),
      );
      if (found.length > 500) list.append(make("li", {}, `and ${found.length - 500} more`));
    };
    filter.oninput = fill;
    fill();
    const note = `The ${SHOWN} largest of ${chart.series.length} are drawn at first. `;
    return make("div", { className: "pick" }, note, filter, list);
  }

  // Returns a function that shortens long names to the part in which they differ.
  function shortener(names) {
    const shared = (letter) => {
      const most = Math.min(...names.map((name) => name.length));
      let length = 0;
      while (names.length > 1 && length < most && names.every((name) => letter(name, length) === letter(names[0], length)))
        length += 1;
      return length;
    };
    const before = shared((name, at) => name[at]);
    const after = shared((name, at) => name[name.length - 1 - at]);
    return (name) => {
      if (name.length <= LABEL) return name;
      const head = before > 6 ? `${name.slice(0, 5)}…` : name.slice(0, before);
      const core = name.slice(before, Math.max(before, name.length - after));
      const text = `${head}${core}${after > 1 ? "…" : name.slice(name.length - after)}`;
      return text.length > LABEL ? `${text.slice(0, 6)}…${text.slice(7 - LABEL)}` : text;
    };
  }

  function bars(chart) {
    const count = Math.min(BARS, chart.labels.length);
    const name = (index) => chart.labels[index] ?? "";
    const short = shortener(chart.labels.slice(0, count));
    const colours = [colour(0, 0.35), colour(0)];
    const { card, holder } = frame(chart, (place, width) => {
      const longest = Math.max(...chart.labels.slice(0, count).map((label) => short(label).length)) * LETTER;
      const turned = longest > (width - 100) / count;
      const data = [Array.from({ length: count }, (_, index) => index)];
      data.push(...chart.series.map((series) => series.values.slice(0, count)));
      const options = {
        width,
        height: HEIGHT,
        series: [
          { label: "Job", value: (_, __, ___, index) => (index == null ? "–" : name(index)) },
          ...chart.series.map((series, index) => ({
            label: series.label,
            fill: colours[index],
            stroke: colours[index],
            paths: uPlot.paths.bars({ size: [index ? 0.4 : 0.8, 60] }),
            points: { show: false },
            value: (_, value) => shown(chart.unit, value),
          })),
        ],
        padding: [null, turned ? Math.min(longest * 0.7, width / 6) : null, null, null],
        axes: axes(chart, {
          rotate: turned ? -40 : 0,
          size: turned ? 24 + longest * 0.65 : 40,
          space: turned ? 22 : longest,
          incrs: [1, 2, 5, 10, 20, 50],
          values: (_, splits) => splits.map((split) => short(name(split))),
        }),
        scales: {
          x: { time: false, range: (_, min, max) => [Math.ceil(min) - 0.6, Math.floor(max) + 0.6] },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
        },
        plugins: [tip(chart.unit, (_, index) => name(index))],
      };
      const plot = new uPlot(options, data, place);
      plot.torcColours = colours;
      return plot;
    });
    if (count < chart.labels.length) {
      const text = `The ${count} largest of ${chart.labels.length}; the table has all.`;
      card.append(make("p", { className: "note" }, text));
    }
    holder.draw();
  }

  function table({ columns, rows }) {
    const body = make("tbody");
    const note = make("p", { className: "note" });
    const filter = make("input", { type: "search", placeholder: "Find jobs", ariaLabel: "Find jobs" });
    let order = null;
    let most = ROWS;
    const fill = () => {
      const wanted = filter.value.toLowerCase();
      let found = rows.filter((row) => row[0].toLowerCase().includes(wanted));
      if (order) {
        const { column, sign } = order;
        const isText = columns[column].unit === "text";
        const compare = isText ? (a, b) => a.localeCompare(b, "en", { numeric: true }) : (a, b) => a - b;
        found = [...found].sort((one, other) => sign * compare(one[column], other[column]));
      }
      body.replaceChildren(
        ...found.slice(0, most).map((row) =>
          make("tr", {}, ...row.map((cell, index) => make("td", {}, shown(columns[index].unit, cell)))),
        ),
      );
      note.replaceChildren(`${found.length} of ${rows.length} `);
      if (found.length > most) {
        const all = () => {
          most = Infinity;
          fill();
        };
        note.append(make("button", { type: "button", textContent: "Show all rows", onclick: all }));
      }
    };
    const heads = columns.map(({ label, unit }, column) => {
      const head = make("th", { scope: "col" });
      const sort = () => {
        const first = unit === "text" ? 1 : -1; // names from A, figures from the largest
        order = { column, sign: order?.column === column ? -order.sign : first };
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
        fill();
      };
      head.append(make("button", { type: "button", textContent: label, onclick: sort }));
      return head;
    });
    filter.oninput = fill;
    fill();
    const figures = make("table", { className: "figures" }, make("thead", {}, make("tr", {}, ...heads)), body);
    const title = make("div", { className: "head" }, make("h2", {}, "Figures"), rows.length > 10 ? filter : "");
    document.body.append(
      make("section", { className: "card" }, title, make("div", { className: "scroll" }, figures), note),
    );
  }

  document.body.append(make("h1", {}, page.title), make("p", { className: "subtitle" }, page.subtitle));
  const draw = { lines, bars };
  for (const chart of page.charts) draw[chart.kind](chart);
  if (page.table) table(page.table);
  const hint = "Drag to zoom, double click to see everything. With Shift: the wheel zooms, dragging moves. ";
  document.body.append(make("p", { className: "note" }, `${hint}Click a name in a legend to hide its line.`));
})();
