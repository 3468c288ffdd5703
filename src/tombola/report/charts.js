// Charts, drawn by Apache ECharts as SVG in the colours of the page.

const COLOURS = 8;
const named = new Map();

// One colour for each name, the same in all charts: by order of first appearance.
function colourOf(name) {
  if (!named.has(name)) named.set(name, named.size % COLOURS);
  return `--c${named.get(name)}`;
}

function cssColour(variable) {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

function chartFigure(part, description, options, lines) {
  const canvas = element("div", { class: "chart", role: "img", "aria-label": description });
  const legend = element("ul", { class: "legend" });
  const numbers = element("details", {}, element("summary", {}, "Numbers"));
  const body = element("div", {}, element("p", { class: "axis soft" }, part.y), canvas, element("p", { class: "axis x soft" }, part.x), legend, numbers);
  const made = figure(part.name, body, { lines: () => lines(() => true), note: part.note, kind: part.kind });
  let chart = null;
  let shown = () => true;
  const draw = () => {
    if (made.hidden || !canvas.clientWidth) return;
    chart = chart || echarts.init(canvas, null, { renderer: "svg" });
    const { names = [], ...option } = options(shown, canvas.clientWidth, canvas.clientHeight);
    legend.replaceChildren(...names.map(([name, ink]) => element("li", {}, element("span", { class: "swatch", "--own": `var(${ink})` }), name)));
    chart.setOption(option, { notMerge: true });
    chart.resize();
  };
  const filter = (test) => {
    shown = test;
    made.hidden = !test(part.facets) || lines(test).length === 1;
    numbers.replaceChildren(numbers.firstChild, plainTable(lines(test), part.name));
    draw();
  };
  return { made, filter, draw };
}

function plainTable(lines, name) {
  const [head, ...rows] = lines;
  const cell = (value) => element("td", { class: typeof value === "string" && "text" }, typeof value === "number" ? String(+value.toFixed(4)) : value ?? "");
  return scroll(element("table", {},
    element("thead", {}, element("tr", {}, ...head.map((one) => element("th", { scope: "col" }, one)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell))))), name);
}

function axis(write, extra = {}) {
  const soft = cssColour("--soft");
  return {
    type: "value", scale: true,
    axisLabel: { color: soft, formatter: write, hideOverlap: true, margin: 13 }, axisLine: { lineStyle: { color: cssColour("--rule") } },
    splitLine: { lineStyle: { color: cssColour("--rule") } }, ...extra,
  };
}

const TOP = 14, BOTTOM = 32, LINE = 15;

function frame(right) {
  return { animation: false, textStyle: { fontFamily: "system-ui, sans-serif" }, grid: { left: 56, right, top: TOP, bottom: BOTTOM, outerBoundsMode: "none" } };
}

const pen = document.createElement("canvas").getContext("2d");
pen.font = "12px system-ui, sans-serif";

// The room that names at the ends of lines need, or 0 where they would take more than a third of the chart.
function roomFor(names, width) {
  const room = 16 + Math.ceil(Math.max(0, ...names.map((name) => pen.measureText(name).width)) * 1.05);
  return room <= width / 3.2 ? room : 0;
}

function tooltip(write) {
  return {
    backgroundColor: cssColour("--paper"), borderColor: cssColour("--rule"), textStyle: { color: cssColour("--ink") },
    confine: true, formatter: write,
  };
}

const share = (value) => `${+fixed(100 * value, 1)} %`;
const AXES = { number: (value) => String(+value.toPrecision(3)), percent: share, correlation: (value) => (Math.abs(value) < 10000 ? String(+fixed(value, 3)) : decimal(value)).replace("-", "−"), count: (value) => String(value) };

function drawCurves(part) {
  const writeX = part.ticks.length ? (place) => part.ticks[place] ?? "" : AXES[part.x_format];
  const writeY = AXES[part.y_format];
  const lines = (shown) => [
    ["line", part.x, part.y, "low", "high", "note"],
    ...part.series.filter((one) => shown(one.facets)).flatMap((one) => one.points.map((point) => [one.name, part.ticks[point.x] ?? point.x, point.y, point.low, point.high, point.ring])),
  ];
  part.series.forEach((one) => inkOf(one, part));
  const widest = Math.max(...part.series.flatMap((one) => one.points.map((point) => point.x)));
  const options = (shown, width, height) => {
    const series = part.series.filter((one) => shown(one.facets));
    const bounds = series.flatMap((one) => one.points.flatMap((point) => [point.low, point.high]));
    const [least, most, interval] = steps(Math.min(...bounds), Math.max(...bounds));
    const tall = height - TOP - BOTTOM;
    const shifts = apart(series, least, most, tall);
    const beside = shifts ? roomFor(series.map((one) => one.name), width) : 0;
    return {
      ...frame(beside || 24),
      names: beside ? [] : series.map((one) => [one.name, inkOf(one, part)]),
      tooltip: { ...tooltip((found) => curveTip(part, found, writeX, writeY)), trigger: "axis" },
      xAxis: axis(writeX, { min: part.x_format === "percent" || part.ticks.length ? 0 : Math.min(1, widest), max: widest, minInterval: part.x_format === "count" ? 1 : 0, interval: part.ticks.length ? 1 : undefined, splitLine: { show: false } }),
      yAxis: axis(writeY, { min: least, max: most, interval }),
      series: series.flatMap((one, index) => curveSeries(one, widest, part, beside ? shifts[index] : null)),
    };
  };
  const names = part.series.map((one) => one.name).join(", ");
  return chartFigure(part, `${part.y} against ${part.x} of ${names}; the numbers are below`, options, lines);
}

// Round bounds around two values and the step between their ticks: the finest that needs no more than six.
function steps(low, high) {
  const fits = (step) => Math.ceil(high / step) - Math.floor(low / step) <= 6;
  let step = 0.01;
  for (let turn = 0; !fits(step); turn += 1) step *= turn % 3 === 1 ? 2.5 : 2;
  return [Math.floor(low / step) * step, Math.max(Math.ceil(high / step), Math.floor(low / step) + 1) * step, step];
}

// A line has its variant's colour, unless the chart has several lines of that variant.
function inkOf(one, part) {
  const variant = one.facets.variant ?? one.name;
  return colourOf(part.series.filter((other) => other.facets.variant === variant).length > 1 ? one.name : variant);
}

// How far the names at the ends of lines move, in pixels, so that none covers another; null where they do not fit.
function apart(series, least, most, height) {
  if (series.length * LINE > height) return null;
  const ends = series.map((one) => (most - one.points.at(-1).y) / (most - least) * height);
  const order = [...ends.keys()].sort((a, b) => ends[a] - ends[b]);
  const places = new Array(series.length);
  let last = -Infinity;
  for (const index of order) last = places[index] = Math.max(ends[index], last + LINE);
  last = height + LINE;
  for (const index of order.toReversed()) last = places[index] = Math.min(places[index], last - LINE);
  return places.map((place, index) => place - ends[index]);
}

const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "arrow", "pin", "emptyCircle"];

// A line, the band around it (an invisible lower edge with the interval stacked upon it), and its rings.
// The interval of a line that is a single point is a whisker.
function curveSeries(one, widest, part, shift) {
  const ink = inkOf(one, part);
  const colour = cssColour(ink);
  const dense = one.points.length > 12;
  const points = one.level ? [0, widest].map((x) => ({ ...one.points[0], x })) : one.points;
  const edge = { type: "line", stack: `band ${one.name}`, stackStrategy: "all", symbol: "none", silent: true, lineStyle: { opacity: 0 }, tooltip: { show: false } };
  const main = {
    type: "line", id: `line ${one.name}`, name: one.name, data: points.map((point) => [point.x, point.y]), color: colour, z: 3,
    symbol: one.level || dense ? "none" : SYMBOLS[+ink.slice(3)], symbolSize: 8, lineStyle: { width: 2, type: one.level ? "dashed" : "solid" },
    endLabel: { show: shift !== null, formatter: () => one.name, color: colour, offset: [4, shift ?? 0] },
    emphasis: { disabled: true },
  };
  if (part.spans.length && one === part.series[0]) {
    main.markArea = { silent: true, data: part.spans.map(([name, from, to], index) => [
      { xAxis: from, name, itemStyle: { color: cssColour("--soft"), opacity: index % 2 ? 0.05 : 0.12 }, label: { color: cssColour("--soft"), position: "insideTop" } }, { xAxis: to }]) };
  }
  const rings = one.points.filter((point) => point.ring);
  return [
    { ...edge, id: `low ${one.name}`, data: points.map((point) => [point.x, point.low]) },
    { ...edge, id: `high ${one.name}`, data: points.map((point) => [point.x, point.high - point.low]), areaStyle: { color: colour, opacity: 0.13 } },
    main,
    ...(points.length > 1 ? [] : [{ type: "line", id: `whisker ${one.name}`, silent: true, symbol: "rect", symbolSize: [9, 2], color: colour, lineStyle: { width: 1.5, color: colour },
      data: [[points[0].x, points[0].low], [points[0].x, points[0].high]], tooltip: { show: false } }]),
    { type: "scatter", id: `rings ${one.name}`, name: one.name, data: rings.map((point) => [point.x, point.y]), symbolSize: 17, z: 4, silent: true,
      itemStyle: { color: "transparent", borderColor: colour, borderWidth: 2 }, tooltip: { show: false } },
  ];
}

function curveTip(part, found, writeX, writeY) {
  const tip = element("div", { class: "tip" }, element("b", {}, `${part.x} ${writeX(found[0].axisValue)}`));
  for (const hit of found.filter((one) => one.seriesId.startsWith("line "))) {
    const one = part.series.find((series) => series.name === hit.seriesName);
    const point = one.level ? one.points[0] : one.points[hit.dataIndex];
    tip.append(element("div", {}, element("span", { class: "swatch", "--own": `var(${inkOf(one, part)})` }),
      `${one.name} ${writeY(point.y)} (${writeY(point.low)} to ${writeY(point.high)})${point.ring ? `, ${point.ring}` : ""}`));
  }
  return tip;
}

function drawFrontier(part) {
  const lines = (shown) => {
    const details = Object.keys(part.spots[0].details);
    return [["model", part.x, part.y, "on the frontier", ...details],
      ...part.spots.filter((spot) => shown(spot.facets)).map((spot) => [spot.name, spot.x, spot.y, spot.front ? "yes" : "no", ...details.map((name) => spot.details[name])])];
  };
  part.spots.forEach((spot) => colourOf(spot.facets.variant ?? spot.name));
  const options = (shown, width) => {
    const spots = part.spots.filter((spot) => shown(spot.facets));
    const front = spots.filter((spot) => spot.front).sort((a, b) => a.x - b.x);
    const item = (spot) => ({ value: [spot.x, spot.y], spot, itemStyle: { color: cssColour(colourOf(spot.facets.variant ?? spot.name)), opacity: spot.front ? 1 : 0.45 }, symbolSize: spot.front ? 12 : 8 });
    return {
      ...frame(24),
      tooltip: { ...tooltip((hit) => spotTip(part, hit.data.spot)), trigger: "item" },
      names: [...new Map(spots.map((spot) => [spot.facets.variant ?? spot.name, colourOf(spot.facets.variant ?? spot.name)]))],
      xAxis: axis(AXES[part.x_format]), yAxis: axis(AXES[part.y_format]),
      series: [
        { type: "line", id: "front", step: part.turn, silent: true, symbol: "none", data: front.map((spot) => [spot.x, spot.y]), lineStyle: { color: cssColour("--soft"), type: "dotted" } },
        { type: "scatter", id: "spots", data: spots.map(item), z: 3 },
      ],
    };
  };
  return chartFigure(part, `${part.y} against ${part.x}; the numbers are below`, options, lines);
}

function spotTip(part, spot) {
  return element("div", { class: "tip" }, element("b", {}, spot.name),
    element("div", {}, `${part.x} ${AXES[part.x_format](spot.x)}`), element("div", {}, `${part.y} ${AXES[part.y_format](spot.y)}`),
    ...Object.entries(spot.details).map(([name, value]) => element("div", {}, `${name} ${value}`)),
    spot.front ? element("div", { class: "soft" }, "on the frontier") : null);
}
