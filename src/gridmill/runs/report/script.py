"""What moves in a report: the values under the pointer, in all its charts at once. The page is whole without it.

It reads what is drawn (a curve's points and the frame that says what they stand for), so no number is stored twice, and
it only ever sets text and numbers: a name cannot become markup.
"""

SCRIPT = """
(() => {
"use strict";
const UNITS = [["", 1], [" k", 1e3], [" M", 1e6], [" G", 1e9], [" T", 1e12]];
function count(value) {
  const [unit, step] = UNITS.find(([, step]) => Math.abs(value) < 999.5 * step) || UNITS[4];
  const scaled = value / step, size = Math.abs(scaled);
  const text = scaled.toFixed(!unit || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  return (text.includes(".") ? text.replace(/0+$/, "").replace(/[.]$/, "") : text) + unit;
}
function number(value) {
  const size = Math.abs(value);
  if (size >= 1e4) return count(value);
  for (const [least, digits] of [[100, 0], [10, 1], [1, 2], [0.1, 3], [0.001, 4]])
    if (size >= least) return value.toFixed(digits);
  return size < 1e-12 ? "0" : value.toExponential(1);
}
function made(name, facts, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in facts) element.setAttribute(key, facts[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}
class Chart {
  constructor(svg) {
    this.svg = svg;
    [this.left, this.right, this.top, this.bottom, this.most, this.low, this.high] =
      svg.dataset.frame.split(" ").map(Number);
    this.lines = [...svg.querySelectorAll("[data-name]")].map(element => ({
      name: element.dataset.name, colour: getComputedStyle(element).stroke,
      points: element.getAttribute("points").split(" ").map(pair => pair.split(",").map(Number))}));
    this.dots = [...svg.querySelectorAll(".dot")].map(dot => [+dot.getAttribute("cx"), dot.firstChild.textContent]);
    const figure = svg.closest("figure");
    this.shown = figure && figure.querySelector("figcaption span");
    this.last = this.shown && this.shown.textContent;
    this.layer = svg.appendChild(made("g", {class: "hover"}));
  }
  value(y) { return this.high - (y - this.top) / (this.bottom - this.top) * (this.high - this.low); }
  steps(x) { return (x - this.left) / (this.right - this.left) * this.most; }
  at(steps) { return this.left + steps / this.most * (this.right - this.left); }
  clear() {
    this.layer.replaceChildren();
    if (this.shown) this.shown.textContent = this.last;
  }
  show(steps, own) {
    this.clear();
    const x = this.at(steps);
    if (x < this.left - 1 || x > this.right + 1) return;
    const found = this.lines.map(line => ({...line, point: nearest(line.points, x)}))
      .filter(line => Math.abs(line.point[0] - x) < 0.1 * (this.right - this.left));
    if (!found.length) return;
    const at = found[0].point[0];
    this.layer.append(made("path", {class: "cross", d: `M${at} ${this.top}V${this.bottom}`}));
    for (const line of found)
      this.layer.append(made("circle", {cx: line.point[0], cy: line.point[1], r: 3, fill: line.colour}));
    if (this.shown && found.length === 1) this.shown.textContent = number(this.value(found[0].point[1]));
    if (own) this.box(at, found);
  }
  box(at, found) {
    const lines = [[`${count(this.steps(at))} steps`, ""]];
    for (const line of found) lines.push([`${line.name} ${number(this.value(line.point[1]))}`, line.colour]);
    for (const [x, said] of this.dots) if (Math.abs(x - at) < 7) lines.push([`evaluation ${said}`, ""]);
    const box = made("g", {class: "tip"}), back = box.appendChild(made("rect", {rx: 4}));
    lines.forEach(([text, colour], row) => {
      if (colour) box.append(made("circle", {cx: 12, cy: 14 + 14 * row - 3.5, r: 3, fill: colour}));
      box.append(made("text", {x: colour ? 20 : 8, y: 14 + 14 * row}, text));
    });
    this.layer.append(box);
    const size = box.getBBox(), width = size.width + 14, height = 14 * lines.length + 8;
    back.setAttribute("width", width);
    back.setAttribute("height", height);
    const left = at + 10 + width > this.right ? at - 10 - width : at + 10;
    box.setAttribute("transform", `translate(${Math.max(2, left)} ${this.top + 4})`);
  }
}
function nearest(points, x) {
  return points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
}
const charts = [...document.querySelectorAll("svg[data-frame]")].map(svg => new Chart(svg));
for (const chart of charts) {
  chart.svg.addEventListener("pointermove", event => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.svg.getScreenCTM().inverse());
    const steps = chart.steps(place.x);
    for (const other of charts) other.show(steps, other === chart);
  });
  chart.svg.addEventListener("pointerleave", () => charts.forEach(other => other.clear()));
}
})();
"""
