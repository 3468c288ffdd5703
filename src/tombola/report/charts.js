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
  const numbers = element("details", {}, element("summary", {}, "Numbers"));
  const made = figure(part.name, element("div", {}, canvas, numbers), { lines: () => lines(() => true), note: part.note, kind: part.kind });
  let chart = null;
  let shown = () => true;
  const draw = () => {
    if (made.hidden || !canvas.clientWidth) return;
    chart = chart || echarts.init(canvas, null, { renderer: "svg" });
    chart.setOption(options(shown, canvas.clientWidth, canvas.clientHeight), { notMerge: true });
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

function axis(name, write, extra = {}) {
  const soft = cssColour("--soft");
  return {
    type: "value", name, nameLocation: "middle", scale: true, nameTextStyle: { color: soft },
    axisLabel: { color: soft, formatter: write, hideOverlap: true }, axisLine: { lineStyle: { color: cssColour("--rule") } },
    splitLine: { lineStyle: { color: cssColour("--rule") } }, ...extra,
  };
}

function frame(width) {
  return {
    animation: false, textStyle: { fontFamily: "system-ui, sans-serif" },
    grid: { left: 44, right: width < 420 ? 84 : 116, top: 14, bottom: 44, outerBoundsMode: "none" },
  };
}

function tooltip(write) {
  return {
    backgroundColor: cssColour("--paper"), borderColor: cssColour("--rule"), textStyle: { color: cssColour("--ink") },
    confine: true, formatter: write,
  };
}

const share = (value) => `${+(100 * value).toFixed(1)} %`;
const AXES = { percent: share, correlation: (value) => String(+value.toFixed(3)).replace("-", "−"), count: (value) => String(value) };

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
    const shifts = apart(series, least, most, height - 58);
    return {
      ...frame(width),
      tooltip: { ...tooltip((found) => curveTip(part, found, writeX, writeY)), trigger: "axis" },
      xAxis: axis(part.x, writeX, { nameGap: 26, min: part.x_format === "percent" || part.ticks.length ? 0 : 1, max: widest, minInterval: part.x_format === "count" ? 1 : 0, interval: part.ticks.length ? 1 : undefined, splitLine: { show: false } }),
      yAxis: axis("", writeY, { min: least, max: most, interval }),
      series: series.flatMap((one, index) => curveSeries(one, widest, part, shifts[index], frame(width).grid.right - 10)),
    };
  };
  const names = part.series.map((one) => one.name).join(", ");
  return chartFigure(part, `${part.y} against ${part.x} of ${names}; the numbers are below`, options, lines);
}

// Round bounds around two values and the step between their ticks: the finest that needs no more than six.
function steps(low, high) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find((one) => Math.ceil(high / one) - Math.floor(low / one) <= 6) ?? 1;
  return [Math.floor(low / step) * step, Math.max(Math.ceil(high / step), Math.floor(low / step) + 1) * step, step];
}

// A line has its variant's colour, unless the chart has several lines of that variant.
function inkOf(one, part) {
  const variant = one.facets.variant ?? one.name;
  return colourOf(part.series.filter((other) => other.facets.variant === variant).length > 1 ? one.name : variant);
}

// How far the names at the ends of lines move, in pixels, so that none covers another.
function apart(series, least, most, height) {
  const ends = series.map((one) => (most - one.points.at(-1).y) / (most - least) * height);
  const shifts = new Array(series.length);
  let last = -Infinity;
  for (const index of [...ends.keys()].sort((a, b) => ends[a] - ends[b])) {
    last = Math.max(ends[index], last + 15);
    shifts[index] = last - ends[index];
  }
  return shifts;
}

// A line, the band around it (an invisible lower edge with the interval stacked upon it), and its rings.
function curveSeries(one, widest, part, shift, room) {
  const colour = cssColour(inkOf(one, part));
  const points = one.level ? [0, widest].map((x) => ({ ...one.points[0], x })) : one.points;
  const edge = { type: "line", stack: `band ${one.name}`, stackStrategy: "all", symbol: "none", silent: true, lineStyle: { opacity: 0 }, tooltip: { show: false } };
  const main = {
    type: "line", id: `line ${one.name}`, name: one.name, data: points.map((point) => [point.x, point.y]), color: colour, z: 3,
    symbol: one.level ? "none" : "circle", symbolSize: 7, lineStyle: { width: 2, type: one.level ? "dashed" : "solid" },
    endLabel: { show: true, formatter: () => one.name, color: colour, width: room, overflow: "truncate", offset: [4, shift] },
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
      ...frame(width), grid: { ...frame(width).grid, left: 64, right: 30 },
      tooltip: { ...tooltip((hit) => spotTip(part, hit.data.spot)), trigger: "item" },
      xAxis: axis(part.x, AXES[part.x_format], { nameGap: 26 }), yAxis: axis(part.y, AXES[part.y_format], { nameGap: 46 }),
      series: [
        { type: "line", id: "front", step: "end", silent: true, symbol: "none", data: front.map((spot) => [spot.x, spot.y]), lineStyle: { color: cssColour("--soft"), type: "dotted" } },
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
