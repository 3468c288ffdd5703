// Tables, heat maps, attacked sentences and listings.

function figure(name, body, { lines, note, wide, kind } = {}) {
  const caption = element("figcaption", {}, element("h3", { class: name === "scores" && "repeated" }, name));
  if (lines) caption.append(button("CSV", () => download(name, lines()), { class: "small", "aria-label": `Download ${name} as CSV` }));
  return element("figure", { class: wide && "wide", "data-kind": kind }, caption, body, note ? element("p", { class: "soft" }, unbroken(note)) : null);
}

// A box that scrolls sideways; it fades where there is more to see.
function scroll(table, name) {
  const box = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table);
  const look = () => box.toggleAttribute("data-more", box.scrollWidth - box.clientWidth - box.scrollLeft > 2);
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  return box;
}

// A few models with many figures each are read downwards.
function drawTable(part) {
  return part.rows.length <= 3 && part.columns.length > 7 ? drawTurned(part) : drawUpright(part);
}

function drawTurned(part) {
  const models = part.rows.map((row) => ({ row, cells: [element("th", { scope: "col" }, row.values[0])] }));
  const head = element("tr", {}, element("th", { scope: "col", class: "text" }, part.columns[0].name), ...models.map(({ cells }) => cells[0]));
  const body = element("tbody");
  part.columns.slice(1).forEach((column, index) => {
    const values = models.map(({ row }) => drawValue(row.values[index + 1], column));
    values.forEach((value, at) => models[at].cells.push(value));
    const group = column.group && !["size", "speed"].includes(column.group) ? element("small", {}, column.group) : null;
    body.append(element("tr", {}, element("th", { scope: "row" }, column.name, group), ...values));
  });
  const made = figure(part.name, scroll(element("table", { class: "turned" }, element("thead", {}, head), body), part.name), {
    lines: () => tableLines(part, models.filter(({ cells }) => !cells[0].hidden).map(({ row }) => row)),
    note: part.note, wide: true, kind: "table",
  });
  const filter = (shown) => models.forEach(({ row, cells }) => cells.forEach((cell) => { cell.hidden = !shown(row.facets); }));
  return { made, filter };
}

function drawUpright(part) {
  const body = element("tbody");
  const rows = part.rows.map((row) => {
    const made = element("tr", {}, ...row.values.map((value, index) => drawValue(value, part.columns[index])));
    body.append(made);
    return { made, row };
  });
  const wide = part.columns.length > 3;
  const made = figure(part.name, scroll(element("table", {}, drawHead(part.columns), body), part.name), {
    lines: () => tableLines(part, rows.filter(({ made }) => !made.hidden).map(({ row }) => row)),
    note: part.note, wide, kind: "table",
  });
  const filter = (shown) => rows.forEach(({ made, row }) => { made.hidden = !shown(row.facets); });
  return { made, filter };
}

function drawHead(columns) {
  const head = element("thead");
  if (columns.some((column) => column.group)) {
    const groups = element("tr", { class: "group" });
    for (let at = 0; at < columns.length;) {
      let end = at;
      while (end < columns.length && columns[end].group === columns[at].group) end += 1;
      groups.append(columns[at].group ? element("th", { colspan: end - at, scope: "colgroup" }, columns[at].group) : element("td", { colspan: end - at }));
      at = end;
    }
    head.append(groups);
  }
  head.append(element("tr", {}, ...columns.map((column) => element("th", { scope: "col", class: textClass(column) }, column.name))));
  return head;
}

function textClass(column) {
  return { text: "text", prose: "text prose" }[column.format] ?? false;
}

function drawValue(value, column) {
  if (value === null) return element("td", {}, "–");
  if (typeof value !== "object") return element("td", { class: textClass(column) }, FORMATS[column.format](value));
  const write = FORMATS[value.format ?? column.format];
  return element("td", { class: value.best && "best" }, write(value.value), element("small", {}, `${write(value.low)} to ${write(value.high)}`));
}

function tableLines(part, rows) {
  const ranged = part.columns.map((_, index) => part.rows.some((row) => row.values[index] !== null && typeof row.values[index] === "object"));
  const head = part.columns.flatMap((column, index) => ranged[index] ? [column.name, `${column.name} low`, `${column.name} high`] : [column.name]);
  const lines = rows.map((row) => row.values.flatMap((value, index) => {
    if (!ranged[index]) return [value];
    return value === null ? [null, null, null] : [value.value, value.low, value.high];
  }));
  return [head, ...lines];
}

function drawHeatmap(part) {
  const known = part.values.flat().filter((value) => value !== null).map(Math.abs);
  const most = part.signed ? Math.max(...known, 0) || 1 : 1;
  const cell = (value) => value === null ? element("td") : element("td",
    { "--share": Math.abs(value) / most, "--hue": part.signed && value < 0 ? "var(--warm)" : "var(--cool)" },
    part.signed ? signed(value, fixed(Math.abs(part.scale * value), part.digits)) : fixed(part.scale * value, part.digits));
  const head = element("tr", {}, ...[part.corner, ...part.columns].map((name) => element("th", { scope: "col" }, name)));
  const rows = part.rows.map((name, index) => element("tr", {}, element("th", { scope: "row" }, name), ...part.values[index].map(cell)));
  const table = element("table", { class: "heat" }, element("thead", {}, head), element("tbody", {}, ...rows));
  const made = figure(part.name, scroll(table, part.name), {
    lines: () => [[part.corner, ...part.columns], ...part.rows.map((name, index) => [name, ...part.values[index]])],
    note: part.note, wide: part.columns.length > 9, kind: "heatmap",
  });
  return { made, filter: (shown) => { made.hidden = !shown(part.facets); } };
}

// Scores with intervals, shares on one scale and all others on another: drawn as elements, so that names wrap and everything prints.
function drawIntervals(part) {
  const scales = new Map([...Map.groupBy(part.rows, (row) => row.format)].map(([format, rows]) =>
    [format, steps(Math.min(...rows.map((row) => row.low)), Math.max(...rows.map((row) => row.high)))]));
  const at = (value, format) => {
    const [least, most] = scales.get(format);
    return `${100 * (value - least) / (most - least)}%`;
  };
  const ruler = (format) => {
    const ends = scales.get(format).slice(0, 2).map((end) => element("span", {}, AXES[format](end)));
    return element("div", { class: "row scale soft", "aria-hidden": "true" }, element("span"), element("div", { class: "ends" }, ...ends), element("span"));
  };
  const body = element("div", { class: "intervals" });
  const groups = Map.groupBy(part.rows, (row) => row.on);
  const drawn = [];
  for (const [on, rows] of groups) {
    const heading = element("h4", {}, on);
    const lines = rows.map((row) => {
      const write = FORMATS[row.format];
      const own = `var(${colourOf(row.facets.variant ?? row.name)})`;
      const track = element("div", { class: "track", "aria-hidden": "true" },
        element("i", { class: "range", "--own": own, "--from": at(row.low, row.format), "--to": at(row.high, row.format) }), element("i", { class: "dot", "--own": own, "--at": at(row.value, row.format) }));
      const made = element("div", { class: "row" }, element("span", {}, row.name), track,
        element("span", { class: "figures" }, write(row.value), " ", element("small", {}, `${write(row.low)} to ${write(row.high)}`)));
      return { made, row };
    });
    body.append(element("div", { class: "group" }, heading, ...lines.map(({ made }) => made), ruler(rows[0].format)));
    drawn.push({ heading, lines });
  }
  const made = figure(part.name, body, {
    lines: () => [["on", "model", "score", "low", "high"], ...part.rows.map((row) => [row.on, row.name, row.value, row.low, row.high])],
    note: part.note, wide: true, kind: "intervals",
  });
  const filter = (shown) => {
    for (const { heading, lines } of drawn) {
      lines.forEach(({ made, row }) => { made.hidden = !shown(row.facets); });
      heading.hidden = lines.every(({ made }) => made.hidden);
      heading.parentElement.hidden = heading.hidden;
    }
    made.hidden = !shown(part.facets) || drawn.every(({ heading }) => heading.hidden);
  };
  return { made, filter };
}

function drawSentences(part) {
  const list = element("div");
  for (const sentence of part.sentences) {
    list.append(element("div", { class: "sentence" },
      element("p", { class: "title" }, `${sentence.title} · ${sentence.verdict}`),
      ...sentence.old.map(([name, pieces]) => drawText(name, pieces, "del", sentence.old.length > 1)),
      ...sentence.new.map(([name, pieces]) => drawText(name, pieces, "ins", sentence.new.length > 1))));
  }
  const text = (columns) => columns.map(([, pieces]) => pieces.map(([piece]) => piece).join("")).join(" | ");
  const made = figure(part.name, list, {
    lines: () => [["labels", "verdict", "before", "after"], ...part.sentences.map((one) => [one.title, one.verdict, text(one.old), text(one.new)])],
    kind: "sentences",
  });
  return { made, filter: (shown) => { made.hidden = !part.sentences.some((one) => shown(one.facets)); } };
}

function drawText(name, pieces, mark, named) {
  const words = pieces.map(([piece, changed]) => changed ? element(mark, {}, piece) : piece);
  return element("p", {}, named ? element("span", { class: "soft" }, `${name}: `) : null, ...words);
}

function drawListing(part) {
  return { made: figure(part.name, element("pre", {}, part.text), { kind: "listing" }), filter: () => {} };
}
