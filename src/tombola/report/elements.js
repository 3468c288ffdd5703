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

function button(label, press, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", press);
  return made;
}

// Rounds ties to even, as Python does in the sentences of the page: 86.25 is 86.2 in both.
function fixed(value, digits) {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false, roundingMode: "halfEven" };
  return new Intl.NumberFormat("en-GB", options).format(value);
}

const FORMATS = {
  text: (value) => String(value),
  prose: (value) => String(value),
  percent: (value) => fixed(100 * value, 1),
  sparsity: (value) => value === 0 ? "dense" : fixed(100 * value, 1),
  count: (value) => Math.round(value).toLocaleString("en-GB"),
  number: (value) => fixed(value, 1),
  correlation: (value) => fixed(+value.toFixed(3) === 0 ? 0 : value, 3).replace("-", "−"),
  ratio: (value) => `${fixed(value, 2)} ×`,
  points: (value) => signed(100 * value, 1),
  change: (value) => signed(value, 3),
};

function signed(value, digits) {
  const text = fixed(Math.abs(value), digits);
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
