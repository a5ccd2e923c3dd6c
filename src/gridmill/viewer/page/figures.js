// Drawn figures that live: agents, the small signs of what they hold, rings of machines that work, badges of amounts.

import {faded, resourceColour, shade} from "./palette.js";
import {heart} from "./symbols.js";

const TAU = Math.PI * 2;
const TOWARDS = {north: -Math.PI / 2, south: Math.PI / 2, west: Math.PI, east: 0, northwest: -2.356, northeast: -0.785, southwest: 2.356, southeast: 0.785};

/** An agent in a cell of `size` pixels around (x, y): a round body, a visor towards where it looks, ice if it is frozen. */
export function drawAgent(c, x, y, size, {colour, facing, frozen, label, selected, held}) {
  const r = size * 0.37;
  c.beginPath();
  c.ellipse(x, y + size * 0.32, r * 0.95, r * 0.34, 0, 0, TAU);
  c.fillStyle = "rgba(0,0,0,.22)";
  c.fill();
  c.beginPath();
  c.arc(x, y, r, 0, TAU);
  if (size > 14) {
    const light = c.createRadialGradient(x - r * 0.4, y - r * 0.5, r * 0.1, x, y, r * 1.15);
    light.addColorStop(0, shade(colour, 0.35));
    light.addColorStop(1, shade(colour, -0.12));
    c.fillStyle = light;
  } else c.fillStyle = colour;
  c.fill();
  c.lineWidth = Math.max(1, size * 0.055);
  c.strokeStyle = shade(colour, -0.5);
  c.stroke();
  if (size >= 9) visor(c, x, y, r, facing);
  if (frozen) ice(c, x, y, r);
  if (selected) ring(c, x, y, size);
  if (held && size >= 30) satchel(c, x, y, size, held);
  if (label !== undefined && size >= 26) tag(c, x, y - r - size * 0.1, label, Math.max(10, Math.min(13, size * 0.26)));
}

/** Two eyes on the side where it looks. */
function visor(c, x, y, r, facing) {
  const angle = TOWARDS[facing] ?? Math.PI / 2;
  const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
  for (const side of [-1, 1]) {
    const ex = x + dx * r * 0.42 - dy * side * r * 0.36;
    const ey = y + dy * r * 0.42 + dx * side * r * 0.36;
    c.beginPath();
    c.arc(ex, ey, r * 0.25, 0, TAU);
    c.fillStyle = "#fffdf6";
    c.fill();
    if (r < 6) continue;
    c.beginPath();
    c.arc(ex + dx * r * 0.09, ey + dy * r * 0.09, r * 0.13, 0, TAU);
    c.fillStyle = "#1b2230";
    c.fill();
  }
}

function ice(c, x, y, r) {
  c.beginPath();
  c.roundRect(x - r * 1.15, y - r * 1.15, r * 2.3, r * 2.3, r * 0.4);
  c.fillStyle = "rgba(150,215,255,.55)";
  c.fill();
  c.lineWidth = Math.max(1, r * 0.12);
  c.strokeStyle = "rgba(235,250,255,.95)";
  c.stroke();
  c.beginPath();
  c.moveTo(x - r * 0.8, y - r * 0.2);
  c.lineTo(x - r * 0.2, y - r * 0.8);
  c.stroke();
}

export function ring(c, x, y, size) {
  c.save();
  c.lineWidth = Math.max(1.5, size * 0.07);
  c.strokeStyle = "#ffd257";
  c.shadowColor = "rgba(255,200,60,.8)";
  c.shadowBlur = size * 0.25;
  c.beginPath();
  c.arc(x, y, size * 0.49, 0, TAU);
  c.stroke();
  c.restore();
}

/** Up to four kinds of things it holds, as small dots under it. */
function satchel(c, x, y, size, held) {
  const kinds = held.slice(0, 4);
  const r = size * 0.085;
  const from = x - ((kinds.length - 1) * r * 2.3) / 2;
  kinds.forEach(([name], i) => {
    const cx = from + i * r * 2.3;
    const cy = y + size * 0.41;
    c.beginPath();
    c.arc(cx, cy, r * 1.25, 0, TAU);
    c.fillStyle = "rgba(20,24,34,.85)";
    c.fill();
    if (name === "heart") heart(c, cx, cy, r * 0.85, resourceColour(name));
    else {
      c.beginPath();
      c.arc(cx, cy, r * 0.8, 0, TAU);
      c.fillStyle = resourceColour(name);
      c.fill();
    }
  });
}

export function tag(c, x, y, text, size) {
  c.font = `600 ${size}px system-ui, sans-serif`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  const width = c.measureText(text).width + size * 0.7;
  c.beginPath();
  c.roundRect(x - width / 2, y - size * 0.65, width, size * 1.3, size * 0.65);
  c.fillStyle = "rgba(20,24,34,.78)";
  c.fill();
  c.fillStyle = "#fffdf6";
  c.fillText(text, x, y + size * 0.06);
}

/** How far a machine has come: a ring around its cell. */
export function progress(c, x, y, size, share) {
  const r = size * 0.47;
  c.lineWidth = Math.max(1.5, size * 0.07);
  c.lineCap = "round";
  c.beginPath();
  c.arc(x, y, r, 0, TAU);
  c.strokeStyle = "rgba(0,0,0,.22)";
  c.stroke();
  c.beginPath();
  c.arc(x, y, r, -Math.PI / 2, -Math.PI / 2 + TAU * Math.max(0.02, Math.min(1, share)));
  c.strokeStyle = "#ffd257";
  c.stroke();
}

/** How much of something waits in a machine: a round badge at its corner. */
export function badge(c, x, y, size, amount, colour) {
  const hasText = size >= 24;
  const text = amount > 999 ? "…" : String(amount);
  const font = Math.max(10, size * 0.24);
  const r = hasText ? font * 0.72 : size * 0.2;
  const half = hasText ? Math.max(r, font * (0.3 * text.length + 0.3)) : r; // three digits are wider than high
  const [cx, cy] = [x + size * 0.32, y - size * 0.32];
  c.beginPath();
  c.roundRect(cx - half, cy - r, 2 * half, 2 * r, r);
  c.fillStyle = colour;
  c.fill();
  c.lineWidth = Math.max(1, size * 0.035);
  c.strokeStyle = "rgba(255,255,255,.9)";
  c.stroke();
  if (!hasText) return;
  c.fillStyle = "#fff";
  c.font = `700 ${font}px system-ui, sans-serif`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText(text, cx, cy + size * 0.015);
}

/** A team's colour under what belongs to it. */
export function standard(c, x, y, size, colour) {
  c.beginPath();
  c.roundRect(x - size * 0.49, y - size * 0.49, size * 0.98, size * 0.98, size * 0.24);
  c.fillStyle = faded(colour, 0.3);
  c.fill();
  c.lineWidth = Math.max(1, size * 0.06);
  c.strokeStyle = colour;
  c.stroke();
}

/** A line that rises and fades: what somebody just earned. `age` from 0 to 1. */
export function gain(c, x, y, size, text, age, good) {
  c.save();
  c.globalAlpha = 1 - age * age;
  c.font = `700 ${Math.max(12, size * 0.34)}px system-ui, sans-serif`;
  c.textAlign = "center";
  c.lineWidth = 3;
  c.strokeStyle = "rgba(10,12,18,.8)";
  const top = y - size * (0.55 + age * 0.6);
  c.strokeText(text, x, top);
  c.fillStyle = good ? "#8df0a8" : "#ff9a8a";
  c.fillText(text, x, top);
  c.restore();
}
