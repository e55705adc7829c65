/* Search, zoom and the keyboard for a flame graph that is an SVG file.
 *
 * The picture is complete without this. Frames are the groups below #frames, in preorder; the
 * first line of a frame's title is its full label. */
import { Frames, fitText, readHash, wayOf, writeHash } from './frames.js';

const SVG = 'http://www.w3.org/2000/svg';
const HTML = 'http://www.w3.org/1999/xhtml';
const PADDING = 3;

export class FlameSvg {
  constructor(svg) {
    this.svg = svg;
    this.document = svg.ownerDocument;
    this.window = this.document.defaultView;
    this.frames_group = svg.querySelector('#frames');
    const data = this.frames_group.dataset;
    this.row = Number(data.row);
    this.margin = Number(data.margin);
    this.column = Number(data.column);
    this.groups = Array.from(this.frames_group.children);
    this.rects = this.groups.map((group) => group.querySelector('rect'));
    this.labels = this.groups.map((group) => group.querySelector('title').textContent.split('\n')[0]);
    this.readShape();
    this.width = Number(svg.getAttribute('width'));
    this.zoom = 0;
    this.current = 0;
    this.find = '';
    this.result = null;
    this.addControls();
    this.addRoles();
    this.listen();
    this.followHash();
    this.resize();
  }

  /* The rectangles themselves say where a frame stands. */
  readShape() {
    const tops = this.rects.map((rect) => Number(rect.getAttribute('y')));
    const root = tops[0];
    this.icicle = tops.every((top) => top >= root);
    const number = (name) => Float64Array.from(this.rects, (rect) => Number(rect.getAttribute(name)));
    const depth = Int32Array.from(tops, (top) => Math.round(Math.abs(top - root) / this.row));
    this.frames = new Frames(depth, number('width'), number('x'));
  }

  addControls() {
    const hint = this.svg.querySelector('#hint');
    const box = this.document.createElementNS(SVG, 'foreignObject');
    box.setAttribute('x', String(this.margin));
    box.setAttribute('y', String(Number(hint.getAttribute('y')) - 17));
    box.setAttribute('height', '28');
    this.controls = box;
    const bar = this.document.createElementNS(HTML, 'div');
    this.input = this.document.createElementNS(HTML, 'input');
    this.input.setAttribute('type', 'search');
    this.input.setAttribute('placeholder', 'find (/)');
    this.input.setAttribute('aria-label', 'Find frames by a part of their name');
    this.reset = this.document.createElementNS(HTML, 'button');
    this.reset.textContent = 'Reset zoom (Esc)';
    this.status = this.document.createElementNS(HTML, 'span');
    this.status.setAttribute('role', 'status');
    this.status.style.marginLeft = '10px';
    this.status.style.font = '12px monospace';
    this.status.style.whiteSpace = 'nowrap';
    bar.style.whiteSpace = 'nowrap';
    bar.append(this.input, this.reset, this.status);
    box.append(bar);
    hint.replaceWith(box);
  }

  addRoles() {
    this.frames_group.setAttribute('role', 'tree');
    this.frames_group.setAttribute('aria-label', 'Frames: arrows walk, Enter zooms, Esc resets');
    this.groups.forEach((group, i) => {
      group.setAttribute('role', 'treeitem');
      group.setAttribute('aria-level', String(this.frames.depth[i] + 1));
      group.setAttribute('tabindex', i === 0 ? '0' : '-1');
    });
  }

  listen() {
    const index = (event) => {
      const group = event.target.closest ? event.target.closest('.r') : null;
      return group ? this.groups.indexOf(group) : -1;
    };
    this.frames_group.addEventListener('click', (event) => {
      const frame = index(event);
      if (frame < 0) return;
      this.walkTo(frame);
      this.zoomTo(frame);
    });
    this.frames_group.addEventListener('keydown', (event) => this.onFrameKey(event));
    this.document.addEventListener('keydown', (event) => this.onKey(event));
    this.input.addEventListener('input', () => this.search(this.input.value, true));
    this.reset.addEventListener('click', () => this.zoomTo(0));
    this.window.addEventListener('resize', () => this.resize());
    this.window.addEventListener('hashchange', () => this.followHash());
  }

  onFrameKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const way = wayOf(event.key, this.icicle);
    if (way) this.walkTo(this.frames.step(this.current, way, this.zoom));
    else if (event.key === 'Enter' || event.key === ' ') this.zoomTo(this.current);
    else if (event.key === 'Home') this.walkTo(0);
    else return;
    event.preventDefault();
  }

  onKey(event) {
    const typing = event.target === this.input;
    const find = ((event.ctrlKey || event.metaKey) && event.key === 'f') ||
      (event.key === '/' && !typing);
    if (find && this.document.activeElement !== this.input) {
      this.input.focus(); // a second Ctrl-F is the browser's own
      this.input.select();
    } else if (event.key === 'Escape') {
      if (this.find) this.search('', true);
      else this.zoomTo(0);
      if (typing) this.groups[this.current].focus();
    } else return;
    event.preventDefault();
  }

  /* One frame is in the tab order: the one that was visited last. */
  walkTo(frame) {
    this.groups[this.current].setAttribute('tabindex', '-1');
    this.current = frame;
    this.groups[frame].setAttribute('tabindex', '0');
    this.groups[frame].focus();
  }

  zoomTo(frame) {
    this.zoom = frame;
    if (!this.frames.place(this.current, frame)) this.walkTo(frame);
    this.draw();
    this.keepHash();
  }

  search(text, typed) {
    this.find = text;
    const needle = text.toLowerCase();
    this.result = needle
      ? this.frames.search((i) => i > 0 && this.labels[i].toLowerCase().includes(needle))
      : null;
    if (this.input.value !== text) this.input.value = text;
    this.groups.forEach((group, i) => {
      group.classList.toggle('hit', !!this.result && this.result.hits[i] === 1);
    });
    this.showStatus();
    if (typed) this.keepHash();
  }

  showStatus() {
    const parts = [];
    if (this.result)
      parts.push(`${this.result.count} found, ${(this.result.share * 100).toFixed(2)}% of all`);
    if (this.zoom > 0) parts.push(`zoomed into ${fitText(this.labels[this.zoom], 60)}`);
    this.status.textContent = parts.join(' · ');
    this.reset.disabled = this.zoom === 0;
  }

  keepHash() {
    const hash = writeHash(this.zoom, this.find);
    try {
      this.window.history.replaceState(null, '', `#${hash}`);
    } catch {
      this.window.location.hash = hash; // some browsers refuse the former for files
    }
  }

  followHash() {
    const { zoom, find } = readHash(this.window.location.hash, this.frames.count);
    this.zoom = zoom;
    this.search(find, false);
    this.draw();
  }

  /* On its own page the picture takes the window's width; inside another one it does not. */
  resize() {
    if (this.document.documentElement === this.svg) {
      this.width = Math.max(320, this.window.innerWidth - 16);
      this.svg.setAttribute('width', String(this.width));
      this.svg.setAttribute('viewBox', `0 0 ${this.width} ${this.svg.getAttribute('height')}`);
    }
    this.controls.setAttribute('width', String(this.width - 2 * this.margin));
    this.draw();
  }

  draw() {
    const room = this.width - 2 * this.margin;
    for (let i = 0; i < this.groups.length; i++) {
      const place = this.frames.place(i, this.zoom);
      const group = this.groups[i];
      group.style.display = place ? '' : 'none';
      if (!place) continue;
      group.classList.toggle('u', i < this.zoom);
      const left = this.margin + place.left * room;
      const width = place.width * room;
      this.rects[i].setAttribute('x', left.toFixed(2));
      this.rects[i].setAttribute('width', width.toFixed(2));
      this.drawLabel(i, left, Math.floor((width - 2 * PADDING) / this.column));
    }
    this.showStatus();
  }

  drawLabel(i, left, columns) {
    const group = this.groups[i];
    const label = fitText(this.labels[i], columns);
    let text = group.querySelector('text');
    if (!label) {
      if (text) text.remove();
      return;
    }
    if (!text) {
      text = this.document.createElementNS(SVG, 'text');
      text.setAttribute('y', String(Number(this.rects[i].getAttribute('y')) + 13));
      group.append(text);
    }
    text.setAttribute('x', (left + PADDING).toFixed(2));
    text.textContent = label;
  }
}

if (typeof document !== 'undefined') {
  const script = document.currentScript;
  new FlameSvg((script && script.closest('svg')) || document.documentElement);
}
