// The page: sections from the content, filters that all of them obey, and the theme.

const DRAW = { table: drawTable, heatmap: drawHeatmap, sentences: drawSentences, listing: drawListing, intervals: drawIntervals, curves: drawCurves, frontier: drawFrontier };

function start() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const drawn = [];
  const sections = content.sections.map((section) => {
    const parts = section.parts.map((part) => DRAW[part.kind](part));
    const remarks = section.remarks.length ? element("ul", { class: "remarks" }, ...section.remarks.map((one) => element("li", {}, one))) : null;
    const made = element("section", { class: section.title === "At a glance" && "glance" }, element("h2", {}, section.title), section.note ? element("p", { class: "soft" }, unbroken(section.note)) : null, remarks,
      element("div", { class: "parts" }, ...parts.map((part) => part.made)));
    drawn.push(...parts);
    return { made, parts };
  });
  document.getElementById("sections").replaceChildren(...sections.map((section) => section.made));

  const hidden = new Set();
  const key = (facet, value) => JSON.stringify([facet, value]);
  const shown = (facets) => Object.entries(facets).every(([facet, value]) => !hidden.has(key(facet, value)));
  const refresh = () => {
    drawn.forEach((part) => part.filter(shown));
    sections.forEach(({ made, parts }) => { made.hidden = parts.length > 0 && parts.every((part) => part.made.hidden); });
    drawn.forEach((part) => part.draw?.());
  };
  drawFilters(content.facets, (facet, value) => {
    const one = key(facet, value);
    hidden.has(one) ? hidden.delete(one) : hidden.add(one);
    refresh();
    return !hidden.has(one);
  });
  setTheme(() => drawn.forEach((part) => part.draw?.()));
  refresh();
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => drawn.forEach((part) => part.draw?.()), 100); });
}

// The legend of all charts is the filter of everything: a press on a name hides it, another brings it back.
function drawFilters(facets, toggle) {
  const bar = document.getElementById("filters");
  for (const [facet, values] of Object.entries(facets)) {
    bar.append(element("span", { class: "name" }, facet.split(".").pop()));
    for (const value of values) {
      const chip = button("", () => chip.setAttribute("aria-pressed", toggle(facet, value)), { "aria-pressed": "true" });
      if (facet === "variant") chip.append(element("span", { class: "swatch", "--own": `var(${colourOf(value)})` }));
      chip.append(value);
      bar.append(chip);
    }
  }
}

function setTheme(redraw) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (theme) => { document.documentElement.dataset.theme = theme; redraw(); };
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
  dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
  let before = "light";
  addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; set("light"); });
  addEventListener("afterprint", () => set(before));
  document.getElementById("theme").addEventListener("click", () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

start();
