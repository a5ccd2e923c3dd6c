// Drawn symbols: one for every kind of object, as vectors on a field of 100 x 100, and a monogram for kinds that only
// their author knows. Sprites are painted once per size and kept, so a map of thousands is cheap.

import {familyOf, shade, typeColour} from "./palette.js";

const TAU = Math.PI * 2;

function path(c, points, close = true) {
  c.beginPath();
  points.forEach(([x, y], i) => (i ? c.lineTo(x, y) : c.moveTo(x, y)));
  if (close) c.closePath();
}

function disc(c, x, y, r) {
  c.beginPath();
  c.arc(x, y, r, 0, TAU);
}

function box(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}

/** Fill with the colour, and a darker edge. */
function solid(c, colour, edge = 5) {
  c.fillStyle = colour;
  c.fill();
  if (edge) {
    c.lineWidth = edge;
    c.strokeStyle = shade(colour, -0.35);
    c.stroke();
  }
}

/** The plate that stations stand on: a soft square with light from above. */
function plate(c, colour) {
  box(c, 8, 8, 84, 84, 20);
  const light = c.createLinearGradient(0, 8, 0, 92);
  light.addColorStop(0, shade(colour, 0.16));
  light.addColorStop(1, shade(colour, -0.16));
  c.fillStyle = light;
  c.fill();
  c.lineWidth = 4;
  c.strokeStyle = shade(colour, -0.38);
  c.stroke();
}

const PALE = "#fffaf0";

export function heart(c, x, y, size, colour) {
  c.beginPath();
  c.moveTo(x, y + size * 0.75);
  c.bezierCurveTo(x - size * 1.35, y - size * 0.15, x - size * 0.7, y - size * 1.05, x, y - size * 0.35);
  c.bezierCurveTo(x + size * 0.7, y - size * 1.05, x + size * 1.35, y - size * 0.15, x, y + size * 0.75);
  c.fillStyle = colour;
  c.fill();
}

function bolt(c, x, y, s, colour) {
  path(c, [[x + s * 0.15, y - s], [x - s * 0.6, y + s * 0.15], [x - s * 0.02, y + s * 0.15], [x - s * 0.15, y + s], [x + s * 0.6, y - s * 0.2], [x + s * 0.04, y - s * 0.2]]);
  c.fillStyle = colour;
  c.fill();
}

function drop(c, x, y, s, colour) {
  c.beginPath();
  c.moveTo(x, y - s);
  c.bezierCurveTo(x + s * 0.9, y - s * 0.1, x + s * 0.75, y + s, x, y + s);
  c.bezierCurveTo(x - s * 0.75, y + s, x - s * 0.9, y - s * 0.1, x, y - s);
  c.fillStyle = colour;
  c.fill();
}

function hexagon(x, y, r, turn = 0) {
  return Array.from({length: 6}, (_, i) => [x + r * Math.cos(turn + (i * TAU) / 6), y + r * Math.sin(turn + (i * TAU) / 6)]);
}

function crystal(c, colour) {
  path(c, [[50, 20], [72, 42], [62, 80], [38, 80], [28, 42]]);
  c.fillStyle = colour;
  c.fill();
  c.lineWidth = 4;
  c.strokeStyle = "rgba(0,0,0,.28)";
  for (const points of [[[50, 20], [50, 80]], [[28, 42], [50, 50], [72, 42]]]) {
    path(c, points, false);
    c.stroke();
  }
}

const DRAWN = {
  __proto__: null, // kinds are a stranger's: `constructor` is none of these
  block(c, colour) {
    box(c, 6, 6, 88, 88, 8);
    solid(c, colour);
    c.lineWidth = 6;
    path(c, [[22, 22], [78, 78]], false);
    c.stroke();
    path(c, [[78, 22], [22, 78]], false);
    c.stroke();
    box(c, 18, 18, 64, 64, 4);
    c.stroke();
  },
  mine(c, colour) {
    path(c, [[10, 84], [24, 40], [44, 20], [64, 26], [84, 52], [92, 84]]);
    solid(c, colour, 5);
    path(c, [[24, 40], [44, 20], [54, 48], [38, 62]]);
    c.fillStyle = shade(colour, 0.25);
    c.fill();
    c.fillStyle = "#e8a06f";
    for (const [x, y, r] of [[62, 56, 7], [74, 70, 5], [34, 74, 5], [50, 72, 4]]) {
      disc(c, x, y, r);
      c.fill();
    }
  },
  generator(c, colour) {
    plate(c, colour);
    c.fillStyle = shade(colour, -0.35);
    for (let i = 0; i < 8; i += 1) {
      c.save();
      c.translate(50, 50);
      c.rotate((i * TAU) / 8);
      box(c, -6, -36, 12, 14, 3);
      c.fill();
      c.restore();
    }
    disc(c, 50, 50, 27);
    c.fill();
    bolt(c, 50, 50, 22, "#ffe27a");
  },
  altar(c, colour) {
    path(c, [[14, 88], [86, 88], [76, 68], [24, 68]]);
    solid(c, shade(colour, -0.18), 4);
    box(c, 22, 56, 56, 15, 4);
    solid(c, colour, 4);
    heart(c, 50, 36, 23, "#e0457b");
    heart(c, 47, 33, 10, "rgba(255,255,255,.35)");
  },
  lasery(c, colour) {
    plate(c, colour);
    path(c, [[22, 66], [64, 24], [76, 36], [34, 78]]);
    c.fillStyle = PALE;
    c.fill();
    disc(c, 71, 29, 11);
    c.fillStyle = "#ffd84d";
    c.fill();
    path(c, [[24, 60], [40, 76]], false);
    c.lineWidth = 6;
    c.strokeStyle = shade(colour, -0.4);
    c.stroke();
  },
  armory(c, colour) {
    plate(c, colour);
    c.beginPath();
    c.moveTo(50, 20);
    c.lineTo(76, 30);
    c.bezierCurveTo(76, 58, 68, 72, 50, 82);
    c.bezierCurveTo(32, 72, 24, 58, 24, 30);
    c.closePath();
    c.fillStyle = PALE;
    c.fill();
    path(c, [[50, 28], [50, 72]], false);
    c.lineWidth = 5;
    c.strokeStyle = colour;
    c.stroke();
  },
  chest(c, colour) {
    box(c, 12, 42, 76, 42, 6);
    solid(c, colour);
    c.beginPath();
    c.moveTo(12, 46);
    c.bezierCurveTo(12, 14, 88, 14, 88, 46);
    c.closePath();
    solid(c, shade(colour, 0.14));
    box(c, 42, 40, 16, 20, 4);
    solid(c, "#fff3cf", 4);
  },
  hub(c, colour) {
    path(c, hexagon(50, 50, 46, TAU / 12));
    solid(c, colour);
    path(c, hexagon(50, 50, 30, TAU / 12));
    c.fillStyle = shade(colour, -0.3);
    c.fill();
    heart(c, 50, 49, 20, PALE);
  },
  junction(c, colour) {
    c.lineWidth = 9;
    c.strokeStyle = shade(colour, -0.3);
    for (const [x, y] of [[14, 14], [86, 14], [14, 86], [86, 86]]) {
      path(c, [[50, 50], [x, y]], false);
      c.stroke();
      disc(c, x, y, 8);
      c.fillStyle = shade(colour, -0.3);
      c.fill();
    }
    disc(c, 50, 50, 27);
    solid(c, colour, 6);
    disc(c, 50, 50, 11);
    c.fillStyle = PALE;
    c.fill();
  },
  assembler(c, colour) {
    plate(c, colour);
    c.fillStyle = PALE;
    for (const [x, y, w, h] of [[24, 24, 22, 22], [54, 24, 22, 22], [24, 54, 22, 22]]) {
      box(c, x, y, w, h, 5);
      c.fill();
    }
    heart(c, 65, 64, 14, "#ff86ad");
  },
  charger(c, colour) {
    disc(c, 50, 50, 42);
    solid(c, colour, 6);
    bolt(c, 50, 50, 30, "#5b4300");
  },
  carbon(c, colour) {
    plate(c, colour);
    path(c, hexagon(50, 50, 26, TAU / 12));
    c.lineWidth = 8;
    c.strokeStyle = PALE;
    c.stroke();
  },
  oxygen(c, colour) {
    plate(c, colour);
    drop(c, 50, 50, 28, PALE);
  },
  germanium(c, colour) {
    plate(c, colour);
    crystal(c, PALE);
  },
  silicon(c, colour) {
    plate(c, colour);
    c.strokeStyle = PALE;
    c.lineWidth = 5;
    for (const at of [38, 50, 62]) {
      for (const points of [[[at, 20], [at, 80]], [[20, at], [80, at]]]) {
        path(c, points, false);
        c.stroke();
      }
    }
    box(c, 30, 30, 40, 40, 5);
    c.fillStyle = PALE;
    c.fill();
    box(c, 40, 40, 20, 20, 3);
    c.fillStyle = colour;
    c.fill();
  },
  aligner(c, colour) {
    plate(c, colour);
    c.strokeStyle = PALE;
    c.lineWidth = 8;
    path(c, [[50, 78], [50, 26]], false);
    c.stroke();
    path(c, [[30, 46], [50, 24], [70, 46]], false);
    c.stroke();
    path(c, [[30, 78], [70, 78]], false);
    c.stroke();
  },
  scrambler(c, colour) {
    plate(c, colour);
    c.strokeStyle = PALE;
    c.lineWidth = 7;
    for (const points of [[[24, 34], [42, 34], [60, 66], [78, 66]], [[24, 66], [42, 66], [60, 34], [78, 34]]]) {
      path(c, points, false);
      c.stroke();
    }
  },
  miner(c, colour) {
    plate(c, colour);
    c.strokeStyle = PALE;
    c.lineWidth = 8;
    path(c, [[30, 74], [64, 38]], false);
    c.stroke();
    c.beginPath();
    c.arc(48, 54, 34, -1.45, -0.1);
    c.stroke();
  },
  scout(c, colour) {
    plate(c, colour);
    c.beginPath();
    c.ellipse(50, 50, 30, 18, 0, 0, TAU);
    c.fillStyle = PALE;
    c.fill();
    disc(c, 50, 50, 12);
    c.fillStyle = shade(colour, -0.3);
    c.fill();
  },
};

/** A kind that is not known here: a plate of its own colour with one or two letters of its name. */
function monogram(c, colour, type) {
  plate(c, colour);
  const words = type.slice(type.lastIndexOf(":") + 1).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const letters = words.length > 1 ? [...words[0]][0] + [...words[1]][0] : [...(words[0] ?? "?")].slice(0, 2).join("");
  c.fillStyle = PALE;
  c.font = "700 42px system-ui, sans-serif";
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText(letters.toUpperCase(), 50, 53);
}

function wallTile(c, colour) {
  box(c, 0, 0, 100, 100, 10);
  c.fillStyle = colour;
  c.fill();
  c.fillStyle = shade(colour, 0.18);
  box(c, 0, 0, 100, 16, 8);
  c.fill();
}

/** Draw a symbol on a field of 100 x 100. */
export function drawSymbol(c, type, colour = typeColour(type)) {
  c.lineJoin = "round";
  c.lineCap = "round";
  if (type === "wall") wallTile(c, colour);
  else (DRAWN[familyOf(type)] ?? monogram)(c, colour, type);
}

const sprites = new Map();

/** A symbol as a picture of `pixels` device pixels, painted once. */
export function sprite(type, pixels, colour = undefined) {
  const key = `${type}|${pixels}|${colour ?? ""}`;
  let found = sprites.get(key);
  if (!found) {
    if (sprites.size > 600) sprites.clear();
    found = document.createElement("canvas");
    found.width = found.height = pixels;
    const c = found.getContext("2d");
    c.scale(pixels / 100, pixels / 100);
    drawSymbol(c, type, colour);
    sprites.set(key, found);
  }
  return found;
}
