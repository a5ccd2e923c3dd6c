// Where the sectors of a belt are drawn: the station in the middle, the others around it by the number of hops, then
// pushed and pulled until links are about as long as they take. The same belt always gets the same picture.

const STEPS = 260;
const SHAPE = 1.4; // width by height
const EDGE = 2.4; // room around it for the ship's surroundings

/** Places by sector id, in units of the camera's cells, and the size of the whole. */
export function layout(sectors, links) {
  const places = start(sectors, links);
  const edges = links.filter((link) => link.from < link.to).map((link) => ({...link, length: 1.9 + 0.16 * link.time}));
  for (let step = 0; step < STEPS; step += 1) relax(places, edges, 1 - step / STEPS);
  return centred(places);
}

function start(sectors, links) {
  const neighbours = new Map(sectors.map((sector) => [sector.id, []]));
  for (const link of links) neighbours.get(link.from)?.push(link.to);
  const angle = new Map([[0, 0]]);
  const order = [0];
  const share = new Map([[0, Math.PI * 2]]);
  for (let i = 0; i < order.length; i += 1) {
    const children = (neighbours.get(order[i]) ?? []).filter((next) => !angle.has(next));
    const wide = share.get(order[i]);
    children.forEach((next, k) => {
      if (angle.has(next)) return;
      angle.set(next, angle.get(order[i]) - wide / 2 + ((k + 0.5) * wide) / children.length);
      share.set(next, Math.max(0.25, wide / children.length));
      order.push(next);
    });
  }
  return sectors.map((sector) => {
    const turn = angle.get(sector.id) ?? sector.id;
    const far = 3 * Math.min(8, sector.hops ?? 1) + 0.15 * (sector.id % 5);
    return {id: sector.id, x: far * Math.cos(turn), y: far * Math.sin(turn)};
  });
}

function relax(places, edges, heat) {
  const pull = places.map(() => [0, 0]);
  for (let i = 0; i < places.length; i += 1) {
    for (let j = i + 1; j < places.length; j += 1) {
      const [dx, dy] = [places[i].x - places[j].x, places[i].y - places[j].y];
      const far = Math.max(0.2, Math.hypot(dx, dy));
      const force = 4.2 / (far * far);
      pull[i][0] += (dx / far) * force;
      pull[i][1] += (dy / far) * force;
      pull[j][0] -= (dx / far) * force;
      pull[j][1] -= (dy / far) * force;
    }
  }
  for (const {from, to, length} of edges) {
    const [dx, dy] = [places[to].x - places[from].x, places[to].y - places[from].y];
    const far = Math.max(0.1, Math.hypot(dx, dy));
    const force = 0.16 * (far - length);
    pull[from][0] += (dx / far) * force;
    pull[from][1] += (dy / far) * force;
    pull[to][0] -= (dx / far) * force;
    pull[to][1] -= (dy / far) * force;
  }
  places.forEach((place, i) => {
    const size = Math.hypot(...pull[i]);
    const step = Math.min(size, 0.05 + 0.7 * heat) / Math.max(1e-9, size);
    place.x += pull[i][0] * step;
    place.y += pull[i][1] * step;
  });
}

function centred(places) {
  const xs = places.map((place) => place.x);
  const ys = places.map((place) => place.y);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [wide, high] = [Math.max(1, Math.max(...xs) - left), Math.max(1, Math.max(...ys) - top)];
  // Screens are wider than high: the same area in their shape.
  const stretch = Math.max(0.75, Math.min(1.7, Math.sqrt((SHAPE * high) / wide)));
  const where = new Map(places.map((place) => [place.id, {x: EDGE + (place.x - left) * stretch, y: EDGE + (place.y - top) / stretch}]));
  return {where, width: wide * stretch + 2 * EDGE, height: high / stretch + 2 * EDGE};
}
