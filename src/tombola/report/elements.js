"use strict";
// Elements, numbers and downloads. Text only ever enters the page as text, never as markup.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (value !== false && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

// Keeps numbers and percent signs on one line.
function unbroken(text) {
  return text.replaceAll(" %", "\u00a0%");
}

function button(label, press, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", press);
  return made;
}

// Rounds as Python does in the sentences of the page: the number as it is stored, and ties to even, so 86.25 is 86.2 in
// both, and 83.45, stored as a little more, 83.5. toFixed does the same, except that ties go away from zero.
function fixed(value, digits) {
  const halves = Math.abs(value) * 2 ** (digits + 1);
  const up = value.toFixed(digits);
  const even = halves % 2 === 1 && up.at(-1) % 2 === 1 ? (value - Math.sign(value) * 10 ** -(digits + 1)).toFixed(digits) : up;
  return +even === 0 ? even.replace("-", "") : even;
}

// Numbers that are not shares: three decimals, or three digits of a large one, such as the perplexity of a destroyed model.
function decimal(value) {
  if (Math.abs(value) < 10000) return fixed(value, 3);
  return value.toExponential(2).replace(/\.?0+e/, "e").replace(/e\+(\d)$/, "e+0$1");
}

const FORMATS = {
  text: (value) => String(value),
  prose: (value) => String(value),
  percent: (value) => fixed(100 * value, 1),
  sparsity: (value) => value === 0 ? "dense" : fixed(100 * value, 1),
  count: (value) => Math.round(value).toLocaleString("en-GB"),
  number: (value) => fixed(value, 1),
  correlation: (value) => decimal(value).replace("-", "−"),
  ratio: (value) => `${fixed(value, 2)} ×`,
  points: (value) => signed(value, fixed(Math.abs(100 * value), 1)),
  change: (value) => signed(value, decimal(Math.abs(value))),
};

function signed(value, text) {
  return (+text === 0 ? "" : value > 0 ? "+" : "−") + text;
}

// Spreadsheets take a leading =, +, - or @ for a formula: such text gets a quote in front.
function csvField(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function download(name, lines) {
  const text = lines.map((line) => line.map(csvField).join(",")).join("\r\n") + "\r\n";
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: address, download: `${name.replace(/[^\w.-]+/g, "-")}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
