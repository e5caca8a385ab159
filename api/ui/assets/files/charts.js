// Draws charts of the table #series, with uPlot. The table stays: it has the same figures, for
// those who do not see a canvas, and without JavaScript.
//
// An element with data-chart has the keys of the columns to draw; data-log makes the axis
// logarithmic, and data-seconds shows durations. A header cell has its key in data-key, its colour
// is that of the line, and data-dash makes it dashed. Values are in data-v; empty for none.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const charts = new Map();

  const number = (cell) => (cell.dataset.v ? Number(cell.dataset.v) : null);

  // read returns the header cell and the values of each column, by key.
  const read = (table) => {
    const rows = all("tbody tr", table).map((row) => [...row.cells].map(number));
    return new Map(all("thead th[data-key]", table).map((head) => [head.dataset.key, { head, values: rows.map((row) => row[head.cellIndex]) }]));
  };

  const took = (s) => (s === null || s === undefined ? "–" : s < 1 ? `${+(s * 1000).toPrecision(3)} ms` : s < 60 ? `${+s.toPrecision(3)} s` : s < 3600 ? `${+(s / 60).toPrecision(3)} min` : `${+(s / 3600).toPrecision(3)} h`);
  const counted = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));

  const zone = document.body.dataset.zone;
  const options = (place, columns, table) => {
    const style = getComputedStyle(place);
    const axis = { stroke: style.color, grid: { stroke: style.borderTopColor, width: 1 }, ticks: { stroke: style.borderTopColor, width: 1 } };
    const show = "seconds" in place.dataset ? took : counted;
    const log = "log" in place.dataset;
    return {
      width: place.clientWidth,
      height: 220,
      tzDate: zone ? (at) => uPlot.tzDate(new Date(at * 1000), zone) : undefined,
      cursor: { drag: { x: false, y: false } },
      scales: {
        y: log
          ? { distr: 3, range: (_, least, most) => (least === null ? [0.001, 1] : uPlot.rangeLog(least, most, 10, true)) }
          : { range: (_, least, most) => [0, Math.max(1, most === null ? 1 : most * 1.05)] },
      },
      axes: [
        { ...axis, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
        { ...axis, size: 72, values: (_, at) => at.map((n) => (n === null ? "" : log ? took(n) : Number.isInteger(n) ? counted(n) : "")) },
      ],
      series: [
        { label: "From", value: "{HH}:{mm}:{ss}" },
        ...columns.map(({ head }) => ({
          label: head.dataset.label || head.textContent,
          stroke: getComputedStyle(head).color,
          width: 2,
          dash: head.dataset.dash ? [6, 4] : undefined,
          points: { show: log, size: 4 },
          value: (_, n) => show(n),
        })),
      ],
      // The newest slot has not ended: it is shaded.
      hooks: {
        drawClear: [(u) => {
          const step = Number(table.dataset.step);
          const times = u.data[0];
          if (!times.length) return;
          const from = u.valToPos(times[times.length - 1] - step / 2, "x", true);
          u.ctx.save();
          u.ctx.globalAlpha = 0.35;
          u.ctx.fillStyle = style.borderTopColor;
          u.ctx.fillRect(from, u.bbox.top, u.bbox.left + u.bbox.width - from, u.bbox.height);
          u.ctx.restore();
        }],
      },
    };
  };

  const draw = (fresh) => {
    const table = document.getElementById("series");
    if (!table) return;
    const columns = read(table);
    document.getElementById("charts").hidden = false;
    for (const place of all("[data-chart]")) {
      const shown = place.dataset.chart.split(" ").map((key) => columns.get(key));
      const data = [columns.get("time").values, ...shown.map(({ values }) => values)];
      let chart = charts.get(place);
      if (chart && !fresh) {
        chart.setData(data);
        continue;
      }
      if (chart) chart.destroy();
      charts.set(place, new uPlot(options(place, shown, table), data, place));
    }
  };

  let width = 0;
  const resized = () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    for (const [place, chart] of charts) chart.setSize({ width: place.clientWidth, height: 220 });
  };

  draw(true);
  addEventListener("resize", resized);
  addEventListener("hf:updated", () => draw(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
})();
