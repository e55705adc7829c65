/* A flame graph on a canvas. It knows shapes, labels and colours, not where they come from.
 *
 * The canvas shows only what is in its scroller's window, so that neither deep stacks nor many
 * frames make it slow: rows outside are skipped, frames outside are found by halving, and what
 * is narrower than a pixel is drawn once per pixel. */
import { fitText, lowerBound, wayOf } from './frames.js';

const ROW = 18;
const PADDING = 3;
const NARROW = 0.4; // pixels: below that a frame is not drawn of its own

export class FlameCanvas {
  /* parts: { canvas, scroller, spacer }; the spacer is as high as the whole picture.
   * hooks: { label(frame), color(frame), onPoint(frame), onWalk(frame), onZoom(frame) }. */
  constructor(parts, hooks) {
    Object.assign(this, parts);
    this.hooks = hooks;
    this.window = this.canvas.ownerDocument.defaultView;
    this.context = this.canvas.getContext('2d');
    this.shape = null;
    this.icicle = false;
    this.zoom = 0;
    this.current = 0;
    this.pointed = -1;
    this.hits = null;
    this.pending = false;
    this.listen();
  }

  /* Another shape begins unzoomed; the root is where reading starts. */
  show(shape, icicle) {
    this.shape = shape;
    this.icicle = icicle;
    this.zoom = 0;
    this.current = 0;
    this.pointed = -1;
    this.hits = null;
    this.resize();
    this.scroller.scrollTop = icicle ? 0 : this.scroller.scrollHeight;
  }

  listen() {
    const { canvas, scroller } = this;
    scroller.addEventListener('scroll', () => this.redraw());
    canvas.addEventListener('mousemove', (event) => this.point(this.frameAt(event)));
    canvas.addEventListener('mouseleave', () => this.point(-1));
    canvas.addEventListener('click', (event) => {
      const frame = this.frameAt(event);
      if (frame < 0) return;
      this.current = frame;
      this.zoomTo(frame);
      this.hooks.onWalk(frame);
    });
    canvas.addEventListener('keydown', (event) => this.onKey(event));
    canvas.addEventListener('focus', () => {
      this.hooks.onWalk(this.current);
      this.redraw();
    });
    canvas.addEventListener('blur', () => this.redraw());
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const way = wayOf(event.key, this.icicle);
    if (way) this.walkTo(this.shape.step(this.current, way, this.zoom));
    else if (event.key === 'Enter' || event.key === ' ') this.zoomTo(this.current);
    else if (event.key === 'Home') this.walkTo(0);
    else return;
    event.preventDefault();
  }

  walkTo(frame) {
    this.current = frame;
    this.reveal(frame);
    this.hooks.onWalk(frame);
    this.redraw();
  }

  zoomTo(frame) {
    this.zoom = frame;
    if (!this.shape.place(this.current, frame)) this.current = frame;
    this.hooks.onZoom(frame);
    this.redraw();
  }

  highlight(hits) {
    this.hits = hits;
    this.redraw();
  }

  point(frame) {
    if (frame === this.pointed) return;
    this.pointed = frame;
    this.hooks.onPoint(frame);
    this.redraw();
  }

  get height() {
    return this.shape.rows.length * ROW;
  }

  topOf(depth) {
    return (this.icicle ? depth : this.shape.rows.length - 1 - depth) * ROW;
  }

  frameAt(event) {
    if (!this.shape) return -1;
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW);
    const depth = this.icicle ? row : this.shape.rows.length - 1 - row;
    return this.shape.at(depth, (event.clientX - box.left) / box.width, this.zoom);
  }

  /* Scrolls a frame's row into the window. */
  reveal(frame) {
    const top = this.topOf(this.shape.depth[frame]);
    const { scroller } = this;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + ROW > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top + ROW - scroller.clientHeight;
  }

  resize() {
    if (!this.shape) return;
    this.spacer.style.height = `${this.height}px`;
    const ratio = this.window.devicePixelRatio || 1;
    this.width = this.scroller.clientWidth;
    this.visible = Math.min(this.scroller.clientHeight, this.height);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.visible}px`;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.visible * ratio));
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.readTheme();
    this.draw();
  }

  /* Colours are the page's: they follow its light or dark mode. */
  readTheme() {
    const style = this.window.getComputedStyle(this.canvas);
    this.colors = [];
    for (let i = 0; ; i++) {
      const color = style.getPropertyValue(`--f${i}`).trim();
      if (!color) break;
      this.colors.push(color);
    }
    this.hit = this.colors[this.colors.length - 1];
    this.ink = style.color;
    this.paper = style.backgroundColor;
    this.font = `12px ${style.fontFamily}`;
    this.context.font = this.font;
    this.column = this.context.measureText('MMMMMMMMMM').width / 10;
  }

  redraw() {
    if (this.pending || !this.shape) return;
    this.pending = true;
    this.window.requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    const { context, scroller, shape } = this;
    context.font = this.font;
    context.textBaseline = 'middle';
    context.clearRect(0, 0, this.width, this.visible);
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW));
    const last = Math.min(shape.rows.length - 1,
      Math.floor((scroller.scrollTop + this.visible) / ROW));
    for (let row = first; row <= last; row++)
      this.drawRow(this.icicle ? row : shape.rows.length - 1 - row);
    if (this.canvas.ownerDocument.activeElement === this.canvas) this.drawRing(this.current, 3);
    if (this.pointed >= 0) this.drawRing(this.pointed, 1.5);
  }

  drawRow(depth) {
    const { shape, zoom } = this;
    if (depth <= shape.depth[zoom]) {
      const frame = shape.at(depth, 0, zoom);
      this.context.globalAlpha = frame === zoom ? 1 : 0.55;
      this.drawFrame(frame, 0, this.width);
      this.context.globalAlpha = 1;
      return;
    }
    const row = shape.rows[depth];
    const scale = this.width / (shape.weight[zoom] || 1);
    // Frames above `zoom` are numbered after it, those left of it before.
    let drawn = -1; // the right edge of what is drawn so far
    for (let at = lowerBound(row, zoom); at < row.length && row[at] < shape.end[zoom]; at++) {
      const frame = row[at];
      const left = (shape.start[frame] - shape.start[zoom]) * scale;
      const width = shape.weight[frame] * scale;
      if (width < NARROW && left + width < drawn + NARROW) continue;
      this.drawFrame(frame, left, Math.max(width, NARROW));
      drawn = left + Math.max(width, NARROW);
    }
  }

  drawFrame(frame, left, width) {
    const { context } = this;
    const top = this.topOf(this.shape.depth[frame]) - this.scroller.scrollTop;
    const hit = this.hits && this.hits[frame];
    context.fillStyle = hit ? this.hit : this.colors[this.hooks.color(frame)];
    const gap = width > 2 ? 0.5 : 0;
    context.fillRect(left, top, width - gap, ROW - 0.5);
    const columns = Math.floor((width - 2 * PADDING) / this.column);
    if (columns < 3) return;
    context.fillStyle = this.ink;
    context.fillText(fitText(this.hooks.label(frame), columns), left + PADDING, top + ROW / 2);
  }

  drawRing(frame, thickness) {
    const place = this.shape.place(frame, this.zoom);
    if (!place) return;
    const { context } = this;
    const top = this.topOf(this.shape.depth[frame]) - this.scroller.scrollTop;
    context.strokeStyle = this.ink;
    context.lineWidth = thickness;
    const inset = thickness / 2;
    context.strokeRect(place.left * this.width + inset, top + inset,
      Math.max(place.width * this.width - thickness, 1), ROW - thickness);
  }
}
