// Colours: of agents and teams, of object types and resources. Names that nobody knows get a colour of their own, the
// same in every page. What belongs to the page (paper, ink, lines) is in style.css, by theme.

export const AGENTS = ["#e2603f", "#3f86d6", "#3fa66b", "#e0a52a", "#9166c9", "#22a3ad", "#d75f99", "#8c7a55"];
export const TEAMS = ["#3f8ee0", "#e2603f", "#43a86d", "#dba32f", "#9a6bd1", "#22a3ad", "#d75f99", "#8c7a55"];

const TYPES = {
  __proto__: null, // names are a stranger's: `constructor` is none of these
  wall: "#667089", block: "#b28c63", mine: "#a85c44", generator: "#3f9a86", altar: "#b07fd6", lasery: "#d8524f",
  armory: "#5f83c4", chest: "#cf9a3b", hub: "#dba32f", junction: "#6f8fb5", assembler: "#a07bd0", charger: "#e0b52e",
  aligner: "#d89a2b", scrambler: "#c7549b", miner: "#4d94c9", scout: "#55a868", carbon: "#5b6573", oxygen: "#4aa8d8",
  germanium: "#8d6fd1", silicon: "#d2a24c", agent: "#e2603f",
};

const RESOURCES = {
  __proto__: null,
  ore: "#b5654a", battery: "#2fa58c", heart: "#e0457b", laser: "#e5484d", armor: "#5f83c4", energy: "#e0b52e", hp: "#e0457b",
  influence: "#9a6bd1", solar: "#f0b429", carbon: "#66707f", oxygen: "#4aa8d8", germanium: "#8d6fd1", silicon: "#d2a24c",
  aligner: "#d89a2b", scrambler: "#c7549b", miner: "#4d94c9", scout: "#55a868",
  iron: "#9c6b57", nickel: "#8c98a4", water_ice: "#55b5e0", pge: "#b7a26a", rare_isotopes: "#8ed04b", volatiles: "#c77fd0",
};

function hashOf(name) {
  let h = 2166136261;
  for (let i = 0; i < name.length; i += 1) h = Math.imul(h ^ name.charCodeAt(i), 16777619);
  return h >>> 0;
}

/** A colour of its own for every name. */
export function ownColour(name) {
  const h = hashOf(name);
  return `hsl(${h % 360} ${38 + ((h >>> 9) % 24)}% ${50 + ((h >>> 17) % 12)}%)`;
}

/** `c:miner` and `carbon_extractor` look like their kind. */
export function familyOf(type) {
  const bare = type.slice(type.lastIndexOf(":") + 1);
  if (bare.endsWith("_extractor")) return bare.slice(0, -"_extractor".length);
  return bare;
}

export function typeColour(type) {
  return TYPES[familyOf(type)] ?? ownColour(type);
}

export function resourceColour(name) {
  return RESOURCES[name] ?? ownColour(name);
}

export function agentColour(index) {
  return AGENTS[index % AGENTS.length];
}

export function teamColour(index) {
  return TEAMS[index % TEAMS.length];
}

/** A colour with another opacity, for fills on the canvas. */
export function faded(colour, alpha) {
  if (colour.startsWith("#")) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  }
  return colour.replace(")", ` / ${alpha})`);
}

/** Lighter (amount > 0) or darker. */
export function shade(colour, amount) {
  if (!colour.startsWith("#")) return colour;
  const part = (at) => {
    const value = parseInt(colour.slice(at, at + 2), 16);
    const next = amount > 0 ? value + (255 - value) * amount : value * (1 + amount);
    return Math.round(next).toString(16).padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`;
}

/** Who is drawn in which colour: by team if there are teams, by group if there are several, else each its own. */
export function colouring(objects, collectives) {
  const groups = new Set();
  for (const thing of objects) if (thing.agent !== null && thing.agent !== undefined) groups.add(thing.group);
  const teams = new Map(collectives.map((name, i) => [name, teamColour(i)]));
  return {
    agent(thing) {
      if (thing.collective && teams.has(thing.collective)) {
        return collectives.length > 1 || groups.size > 1 ? teams.get(thing.collective) : agentColour(thing.agent);
      }
      return groups.size > 1 ? agentColour(thing.group) : agentColour(thing.agent);
    },
    team: (name) => teams.get(name) ?? null,
  };
}
