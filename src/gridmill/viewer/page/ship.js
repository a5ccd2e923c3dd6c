// Prospector's ship: gauges, cargo by kind, what it has in store, and the market as curves.

import {css, el, figure, fill, fitted, plain, say, show} from "./dom.js";
import {faded, resourceColour} from "./palette.js";

const GAUGES = [
  ["fuel", 1000, "#e0a52a"], ["hull", 100, "#43a86d"], ["heat", 100, "#e2603f"], ["tool", 100, "#5f83c4"], ["cargoTotal", 200, "#9a6bd1", "cargo"], ["alert", 100, "#d75f99"],
];

export class ShipPanel {
  constructor(app) {
    this.app = app;
    this.money = el("dl", {class: "tiles"});
    this.gauges = el("div", {class: "gauges"});
    this.cargo = el("div", {class: "cargo", "aria-hidden": "true"});
    this.goods = el("ul", {class: "held", id: "goods"});
    this.stores = el("p", {class: "soft"});
    this.market = el("canvas", {class: "market", role: "img", "aria-label": "Prices by tick"});
    this.node = el("div", {hidden: true}, this.money, this.gauges, el("h3", {}, "Cargo"), this.cargo, this.goods, this.stores, el("h3", {}, "Market"), this.market);
  }

  rebuild() {
    const {info} = this.app.track;
    show(this.node, info.kind === "prospector");
    if (info.kind !== "prospector") return;
    this.bars = GAUGES.map(([name, most, colour, title]) => {
      const bar = el("i");
      bar.style.background = colour;
      const text = el("b");
      return {name, most, bar, text, node: el("div", {class: "gauge"}, el("span", {}, title ?? name), el("span", {class: "bar"}, bar), text)};
    });
    fill(this.gauges, this.bars.map((bar) => bar.node));
  }

  update() {
    const {track, pane} = this.app;
    if (track.info.kind !== "prospector" || !pane.seen) return;
    const {ship, cargo, lastStep} = pane.seen;
    track.seenLast = lastStep;
    fill(this.money, [["credits", ship.credits], ["cargo worth", ship.cargoValue], ["time left", ship.timeRemaining]].map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, figure(Math.round(value))))));
    for (const {name, most, bar, text} of this.bars) {
      bar.style.width = `${Math.max(0, Math.min(100, (100 * ship[name]) / most))}%`;
      say(text, figure(Math.round(ship[name])));
    }
    const goods = Object.entries(cargo).filter(([, amount]) => amount > 0.05);
    fill(this.cargo, goods.map(([name, amount]) => {
      const part = el("i");
      part.style.flexGrow = String(amount);
      part.style.background = resourceColour(name);
      return part;
    }));
    fill(this.goods, goods.length === 0 && el("li", {class: "soft"}, "nothing"), goods.map(([name, amount]) => {
      const dot = el("i", {class: "dot"});
      dot.style.background = resourceColour(name);
      return el("li", {"data-name": name}, dot, el("span", {}, plain(name, 24)), el("b", {}, amount.toFixed(1)));
    }));
    say(this.stores, [[ship.repairKits, "repair kit"], [ship.stabilizers, "stabilizer"], [ship.decoys, "decoy"]].map(([count, name]) => `${count} ${name}${count === 1 ? "" : "s"}`).join(" · "));
    this.drawMarket(track);
  }

  drawMarket(track) {
    const {context: c, width, height} = fitted(this.market);
    c.clearRect(0, 0, width, height);
    const {goods, basePrice, lowPrice, highPrice} = track.info;
    const columns = 2;
    const cell = {width: (width - 8) / columns, height: height / Math.ceil(goods.length / columns)};
    goods.forEach((good, i) => {
      const box = {x: (i % columns) * (cell.width + 8), y: Math.floor(i / columns) * cell.height, width: cell.width, height: cell.height - 8};
      this.drawPrice(c, box, track, good, {base: basePrice[good], low: lowPrice[good], high: highPrice[good]});
    });
  }

  drawPrice(c, box, track, good, {base, low, high}) {
    const colour = resourceColour(good);
    const end = Math.max(1, track.branch.ticks);
    c.fillStyle = css("--card2");
    c.beginPath();
    c.roundRect(box.x, box.y, box.width, box.height, 6);
    c.fill();
    const y = (price) => box.y + box.height - 3 - ((price - low) / Math.max(1e-9, high - low)) * (box.height - 18);
    c.strokeStyle = faded(css("--ink"), 0.25);
    c.setLineDash([3, 3]);
    c.beginPath();
    c.moveTo(box.x, y(base));
    c.lineTo(box.x + box.width, y(base));
    c.stroke();
    c.setLineDash([]);
    c.beginPath();
    let begun = false;
    const points = Math.min(track.ledger.end, Math.floor(box.width));
    for (let i = 0; i <= points; i += 1) {
      const tick = Math.floor((track.ledger.end * i) / Math.max(1, points));
      const price = track.ledger.seriesAt(`price:${good}`, tick);
      if (price === undefined) continue;
      const x = box.x + (tick / end) * box.width;
      if (begun) c.lineTo(x, y(price));
      else c.moveTo(x, y(price));
      begun = true;
    }
    c.strokeStyle = colour;
    c.lineWidth = 1.6;
    c.stroke();
    const now = this.app.pane.seen.market.price[good];
    const x = box.x + (track.shownTick / end) * box.width;
    c.beginPath();
    c.arc(x, y(now), 3, 0, Math.PI * 2);
    c.fillStyle = colour;
    c.fill();
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "top";
    c.textAlign = "left";
    c.fillStyle = css("--ink");
    c.fillText(good.replaceAll("_", " "), box.x + 6, box.y + 3);
    c.textAlign = "right";
    c.fillText(now.toFixed(0), box.x + box.width - 6, box.y + 3);
  }
}
