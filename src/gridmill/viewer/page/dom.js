// Small helpers to build the page. Text only ever goes in as text nodes: nothing here, or anywhere in the viewer, parses
// markup, so a hostile name in a file is shown and never run.

const SVG = "http://www.w3.org/2000/svg";
const NOTHING = 1e-6; // what a sum of rewards is away from zero by rounding alone

/** An element: `el("button", {class: "x", title: "y", onclick: f}, "text", child, ...)`. */
export function el(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same in SVG, for icons of buttons. */
export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put these children in place of what was there. */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** Change text only if it differs: panels are brought up to date sixty times a second. */
export function say(node, text) {
  const said = String(text);
  if (node.textContent !== said) node.textContent = said;
}

export function show(node, wanted) {
  if (node.hidden === wanted) node.hidden = !wanted;
}

/** A name of any length and kind, short enough for a label; control and direction marks are made visible. */
export function plain(name, most = 60) {
  const text = String(name).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, "\ufffd");
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A name that may go on in the next line behind its underscores, dots and slashes, not inside a word. */
export function breakable(name, most = 60) {
  return plain(name, most).split(/(?<=[_./])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

/** Numbers for people: thin groups of thousands, few digits. */
export function figure(value, digits = 3) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < NOTHING) return "0";
  if (size < 1e-3 || size >= 1e9) return value.toExponential(1).replaceAll("-", "−");
  if (Number.isInteger(value)) return grouped(String(value));
  const shown = size >= 1000 ? value.toFixed(1) : value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : digits);
  const [whole, part] = shown.split(".");
  return part === undefined ? grouped(whole) : `${grouped(whole)}.${part}`;
}

function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f").replace("-", "−");
}

/** An icon of one path on a 24 x 24 field. */
export function icon(path, title = "") {
  return svg("svg", {viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true"}, title && svg("title", {}, title), svg("path", {d: path}));
}

/** A colour of the style sheet by name, read again when the theme changes. */
const colours = new Map();
export function css(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}
export function forgetColours() {
  colours.clear();
}

/** When the next picture has been drawn: what can wait for it does not delay it. */
export function afterPicture() {
  return new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
}

/** A canvas that fits its element in device pixels; returns its 2d context in CSS pixels. */
export function fitted(canvas) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const width = Math.max(1, canvas.clientWidth);
  const height = Math.max(1, canvas.clientHeight);
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {context, width, height, ratio};
}
