// A camera over a plane: pan by drag, zoom by wheel and pinch, keyboard too. Knows nothing of what is drawn.
// One unit of the world is one cell; `scale` is CSS pixels per cell.

const SLOWEST = 350; // ms: a tap is shorter
const TAP = 6; // pixels a tap may wander

export class Camera {
  constructor(canvas, {onchange, onpan, ontap, onhover}) {
    this.canvas = canvas;
    this.scale = 20;
    this.x = 0; // of the world, at the middle of the canvas
    this.y = 0;
    this.bounds = {width: 1, height: 1};
    this.auto = true; // fitted, until somebody moves it
    this.onchange = onchange;
    this.onpan = onpan;
    this.ontap = ontap;
    this.onhover = onhover;
    this.pointers = new Map();
    this.size = {width: 1, height: 1}; // of the canvas
    this.listen();
  }

  /** Look how large the canvas is, once a frame: every thing on the map asks for a place, and layout is slow to ask. */
  measure() {
    this.size = {width: this.canvas.clientWidth || 1, height: this.canvas.clientHeight || 1};
  }

  listen() {
    const {canvas} = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => this.onhover(null));
    canvas.addEventListener("dblclick", (event) => this.zoomAt(this.local(event), event.shiftKey ? 0.5 : 2));
  }

  local(event) {
    const box = this.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  toWorld({x, y}) {
    const {width, height} = this.size;
    return {x: this.x + (x - width / 2) / this.scale, y: this.y + (y - height / 2) / this.scale};
  }

  toScreen(x, y) {
    const {width, height} = this.size;
    return {x: (x - this.x) * this.scale + width / 2, y: (y - this.y) * this.scale + height / 2};
  }

  /** The whole world on the canvas, or the part of it that matters. */
  fit(bounds = this.bounds, focus = null) {
    this.bounds = bounds;
    this.auto = true;
    const shown = focus ?? {x: 0, y: 0, ...bounds};
    this.measure();
    const [w, h] = [Math.max(60, this.size.width), Math.max(60, this.size.height)];
    this.scale = Math.max(0.5, Math.min(56, (w - 20) / shown.width, (h - 20) / shown.height));
    this.x = shown.x + shown.width / 2;
    this.y = shown.y + shown.height / 2;
    this.onchange();
  }

  centre(x, y, scale = this.scale) {
    this.auto = false;
    this.x = x;
    this.y = y;
    this.scale = scale;
    this.onchange();
  }

  /** Come a part of the way towards a place, for following somebody smoothly. */
  drift(x, y, share) {
    this.auto = false;
    const dx = x - this.x;
    const dy = y - this.y;
    const far = Math.hypot(dx, dy) * this.scale;
    if (far < 0.3) return;
    const part = far > 1500 ? 1 : share;
    this.x += dx * part;
    this.y += dy * part;
    this.onchange();
  }

  zoomAt(point, factor) {
    const before = this.toWorld(point);
    const least = Math.min(4, 0.5 * Math.min(this.size.width / this.bounds.width, this.size.height / this.bounds.height));
    this.scale = Math.max(least, Math.min(160, this.scale * factor));
    const after = this.toWorld(point);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
    this.auto = false;
    this.clamp();
    this.onchange();
  }

  zoom(factor) {
    this.zoomAt({x: this.size.width / 2, y: this.size.height / 2}, factor);
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.auto = false;
    this.clamp();
    this.onpan();
    this.onchange();
  }

  /** Some of the world always stays in sight. */
  clamp() {
    this.x = Math.max(-1, Math.min(this.bounds.width + 1, this.x));
    this.y = Math.max(-1, Math.min(this.bounds.height + 1, this.y));
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 24 : 1;
    if (event.shiftKey && !event.ctrlKey) this.pan(-event.deltaY * lines, 0);
    else this.zoomAt(this.local(event), Math.exp((-event.deltaY * lines * (event.ctrlKey ? 4 : 1)) / 500));
  }

  down(event) {
    if (event.button > 1) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.local(event));
    this.began = {point: this.local(event), time: event.timeStamp, moved: this.pointers.size > 1};
  }

  move(event) {
    const point = this.local(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.onhover(this.toWorld(point));
      return;
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (others.length > 0) this.pinch(before, point, others[0][1]);
    else if (this.began.moved || Math.hypot(point.x - this.began.point.x, point.y - this.began.point.y) > TAP) {
      this.began.moved = true;
      this.pan(point.x - before.x, point.y - before.y);
      this.canvas.classList.add("dragging");
    } else return;
    this.pointers.set(event.pointerId, point);
  }

  pinch(before, now, other) {
    const size = (a, b) => Math.max(8, Math.hypot(a.x - b.x, a.y - b.y));
    const middle = {x: (now.x + other.x) / 2, y: (now.y + other.y) / 2};
    this.zoomAt(middle, size(now, other) / size(before, other));
    this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    this.began.moved = true;
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.canvas.classList.remove("dragging");
    if (event.type === "pointerup" && !this.began.moved && event.timeStamp - this.began.time < SLOWEST) this.ontap(this.toWorld(this.local(event)));
  }
}
