/* What a page knows about a profile: frames with names, numbers and colours.
 *
 * The data is "whyslow.flame/1" (docs/flame.md): columns, one entry a frame or a function, so
 * that a hundred thousand frames stay small. The words here are those of the SVG's titles. */
import { Frames } from './frames.js';

const INVERTED_FRAMES_MAX = 300000;

/* Three significant digits, as whyslow prints them everywhere. */
function scaled(value, unit) {
  const size = Math.abs(value);
  return `${value.toFixed(size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : 2)} ${unit}`;
}

function formatBytes(value) {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let at = 0;
  while (Math.abs(value) >= 1023.5 && at + 1 < names.length) {
    value /= 1024;
    at++;
  }
  return at === 0 ? `${value.toFixed(0)} B` : scaled(value, names[at]);
}

function formatNs(value) {
  const size = Math.abs(value);
  if (size < 999.5) return `${value.toFixed(0)} ns`;
  if (size < 999.5e3) return scaled(value / 1e3, 'us');
  if (size < 999.5e6) return scaled(value / 1e6, 'ms');
  return scaled(value / 1e9, 's');
}

export function formatCount(value) {
  return value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function formatWeight(value, unit) {
  if (unit === 'ns') return formatNs(value);
  if (unit === 'bytes') return formatBytes(value);
  return formatCount(value);
}

export class Profile {
  constructor(data) {
    this.data = data;
    this.unit = data.unit;
    this.counted = data.counted ?? 'sample';
    this.all = data.frames.weight[0];
    this.lower = data.strings.map((text) => text.toLowerCase());
    this.calls = this.fromData();
    this.inverted = null;
  }

  fromData() {
    const { function: functions, self, count, self_count, color, inlined } = this.data.frames;
    return {
      shape: new Frames(this.data.frames.depth, this.data.frames.weight),
      functions, self, count, self_count, color, inlined, inverted: this.data.inverted,
      change: this.data.diff ? this.data.diff.change_pct : null,
      before: this.data.diff ? this.data.diff.before_pct : null,
    };
  }

  /* Leaf first: which functions burn the time themselves, and then who called them. What was
   * too narrow to draw has no leaf here, and stands as a frame of its own. */
  invert() {
    if (!this.inverted) this.inverted = invert(this.calls, this.data);
    return this.inverted;
  }

  name(view, frame) {
    const text = this.data.strings[this.data.functions.name[view.functions[frame]]];
    return view.change ? `${signed(view.change[frame])}% ${text}` : text;
  }

  matches(view, needle) {
    const found = this.lower.map((text) => text.includes(needle));
    return (frame) => frame > 0 && found[this.data.functions.name[view.functions[frame]]];
  }

  /* Lines about a frame: its cost, then where it is. */
  describe(view, frame) {
    const { functions, strings } = this.data;
    const of = view.functions[frame];
    const weight = view.shape.weight[frame];
    const share = (value) => `${((value / this.all) * 100).toFixed(2)}%`;
    const count = view.count[frame];
    const lines = [
      `${formatWeight(weight, this.unit)}, ${share(weight)} of all, ${formatCount(count)} ` +
      `${this.counted}${count === 1 ? '' : 's'}`,
    ];
    if (!view.inverted)
      lines[0] += `; itself ${formatWeight(view.self[frame], this.unit)}, ${share(view.self[frame])}`;
    if (view.before)
      lines.push(view.before[frame] > 0
        ? `before: ${view.before[frame].toFixed(2)}% of all` : 'before: not there');
    const file = strings[functions.file[of]];
    if (file) lines.push(functions.line[of] ? `${file}:${functions.line[of]}` : file);
    const image = strings[functions.image[of]];
    if (image) lines.push(image);
    const kind = functions.kind[of];
    if (kind !== 'program' && kind !== 'all') lines.push(kind);
    if (view.inlined[frame]) lines.push('inlined');
    return lines;
  }
}

function signed(value) {
  return (value < 0 ? '' : '+') + value.toFixed(2);
}

/* A tree under construction: children are found by function, weights are added on the way. */
class Merge {
  constructor() {
    this.function = [0];
    this.weight = [0];
    this.count = [0];
    this.color = [0];
    this.inlined = [0];
    this.children = [new Map()];
  }

  child(parent, of, color, inlined) {
    const key = inlined ? -1 - of : of;
    let at = this.children[parent].get(key);
    if (at === undefined) {
      at = this.function.length;
      this.children[parent].set(key, at);
      this.function.push(of);
      this.weight.push(0);
      this.count.push(0);
      this.color.push(color);
      this.inlined.push(inlined);
      this.children.push(new Map());
    }
    return at;
  }

  add(at, weight, count) {
    this.weight[at] += weight;
    this.count[at] += count;
  }
}

function invert(view, data) {
  const { shape } = view;
  const merge = new Merge();
  const counts = view.self_count;
  const leaves = [];
  for (let i = 0; i < shape.count; i++) if (view.self[i] > 0) leaves.push(i);
  leaves.sort((a, b) => view.self[b] - view.self[a]);
  for (const leaf of leaves) {
    let at = 0;
    merge.add(0, view.self[leaf], counts[leaf]);
    // The heaviest come first, so that a limit cuts the callers of the lightest.
    for (let i = leaf; i > 0 && merge.function.length < INVERTED_FRAMES_MAX; i = shape.parent[i]) {
      at = merge.child(at, view.functions[i], view.color[i], view.inlined[i]);
      merge.add(at, view.self[leaf], counts[leaf]);
    }
  }
  const missing = shape.weight[0] - merge.weight[0];
  if (missing > 0 && data.left_out.function >= 0) {
    const at = merge.child(0, data.left_out.function, data.left_out.color, 0);
    merge.add(at, missing, Math.max(view.count[0] - merge.count[0], 0));
    merge.add(0, missing, Math.max(view.count[0] - merge.count[0], 0));
  }
  return flatten(merge, view);
}

/* The merged tree in preorder, heaviest children first. */
function flatten(merge, view) {
  const order = [];
  const depth = [];
  const stack = [[0, 0]];
  while (stack.length > 0) {
    const [at, level] = stack.pop();
    order.push(at);
    depth.push(level);
    const children = Array.from(merge.children[at].values());
    children.sort((a, b) => merge.weight[a] - merge.weight[b] || b - a);
    for (const child of children) stack.push([child, level + 1]);
  }
  const column = (name) => order.map((at) => merge[name][at]);
  const functions = column('function');
  functions[0] = view.functions[0];
  return {
    shape: new Frames(depth, column('weight')),
    functions, count: column('count'),
    color: [view.color[0], ...column('color').slice(1)], inlined: column('inlined'),
    inverted: true, change: null, before: null,
  };
}
