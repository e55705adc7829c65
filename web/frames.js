/* The shape of a flame graph and the walks over it, without any drawing.
 *
 * Frames are numbered in preorder: a parent comes before its children, and the frames above
 * frame i are those from i + 1 up to end[i]. Frame 0 is the root. The same class serves the
 * script inside an SVG file, the canvas of the HTML page and the viewer. Nothing here
 * recurses: stacks of a target may be deeper than the browser's. */

export class Frames {
  /* depth: of each frame. weight: of each frame. start: left edges in the unit of the
   * weights; left out, children tile their parent from the left. */
  constructor(depth, weight, start) {
    const count = depth.length;
    this.count = count;
    this.depth = depth;
    this.weight = weight;
    this.parent = new Int32Array(count);
    this.end = new Int32Array(count);
    this.start = start || new Float64Array(count);
    this.rows = []; // of each depth: its frames from left to right
    const filled = new Float64Array(count);
    let open = 0;
    for (let i = 0; i < count; i++) {
      if (i > 0) {
        while (depth[open] >= depth[i]) {
          this.end[open] = i;
          open = this.parent[open];
        }
        this.parent[i] = open;
        if (!start) {
          this.start[i] = this.start[open] + filled[open];
          filled[open] += weight[i];
        }
        open = i;
      }
      (this.rows[depth[i]] = this.rows[depth[i]] || []).push(i);
    }
    for (; open > 0; open = this.parent[open]) this.end[open] = count;
    if (count > 0) this.end[0] = count;
  }

  /* True for the frame itself too. */
  contains(above, frame) {
    return above <= frame && frame < this.end[above];
  }

  /* The left edge and the width of a frame, as shares of the picture, when `zoom` fills it;
   * null when it is out of the picture. Callers of the zoomed frame fill it too. */
  place(frame, zoom) {
    if (this.contains(frame, zoom)) return { left: 0, width: 1 };
    if (!this.contains(zoom, frame)) return null;
    const all = this.weight[zoom] || 1;
    return {
      left: (this.start[frame] - this.start[zoom]) / all,
      width: this.weight[frame] / all,
    };
  }

  /* Where a key leads: "in" to the heaviest child, "out" to the caller, "next" and
   * "previous" along the row. Stays where it is at the end of the way. */
  step(frame, way, zoom) {
    if (way === 'in') {
      const child = frame + 1;
      return child < this.end[frame] ? child : frame;
    }
    if (way === 'out') return this.parent[frame];
    const row = this.rows[this.depth[frame]];
    const at = lowerBound(row, frame);
    const next = row[way === 'next' ? at + 1 : at - 1];
    return next !== undefined && this.place(next, zoom) ? next : frame;
  }

  /* Frames for which `matches` is true, and how much of the root they take together: a
   * match above another one is not counted twice. */
  search(matches) {
    const hits = new Uint8Array(this.count);
    let count = 0;
    let weight = 0;
    let counted = 0; // up to here everything is part of a match
    for (let i = 0; i < this.count; i++) {
      if (!matches(i)) continue;
      hits[i] = 1;
      count++;
      if (i >= counted) {
        weight += this.weight[i];
        counted = this.end[i];
      }
    }
    return { hits, count, weight, share: this.count ? weight / (this.weight[0] || 1) : 0 };
  }

  /* The frame of a row at a place of the picture (a share from its left edge); -1: none. */
  at(depth, x, zoom) {
    const row = this.rows[depth];
    if (!row) return -1;
    if (depth <= this.depth[zoom]) {
      let frame = zoom;
      while (this.depth[frame] > depth) frame = this.parent[frame];
      return frame;
    }
    const position = this.start[zoom] + x * this.weight[zoom];
    let low = 0;
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[row[middle]] <= position) low = middle + 1;
      else high = middle;
    }
    const frame = low > 0 ? row[low - 1] : -1;
    const inside = frame >= 0 && this.contains(zoom, frame) &&
      position < this.start[frame] + this.weight[frame];
    return inside ? frame : -1;
  }
}

/* The first place in a sorted list whose value is not below `value`. */
export function lowerBound(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Columns of a monospaced font; what East Asian scripts write takes two. */
export function columnsOf(text) {
  let columns = 0;
  for (const letter of text) columns += letter.codePointAt(0) >= 0x1100 && letter !== '…' ? 2 : 1;
  return columns;
}

/* The text cut to so many columns with "…"; empty when too little of it would be left. */
export function fitText(text, columns) {
  if (columns < 3) return '';
  // No letter takes less than a column: of a huge name only the head is looked at.
  if (text.length <= columns * 2 && columnsOf(text) <= columns) return text;
  let used = 0;
  let fits = '';
  for (const letter of text) {
    used += columnsOf(letter);
    if (used > columns - 1) break;
    fits += letter;
  }
  return fits + '…';
}

/* Which way an arrow key leads in a picture whose root is at the top (icicle) or not. */
export function wayOf(key, icicle) {
  switch (key) {
    case 'ArrowUp': return icicle ? 'out' : 'in';
    case 'ArrowDown': return icicle ? 'in' : 'out';
    case 'ArrowRight': return 'next';
    case 'ArrowLeft': return 'previous';
    default: return '';
  }
}

/* "zoom=12&find=text" of an address's fragment, and back. Values out of range are ignored:
 * an address may come from anywhere. */
export function readHash(hash, count) {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const zoom = Number(fields.get('zoom'));
  return {
    zoom: Number.isInteger(zoom) && zoom > 0 && zoom < count ? zoom : 0,
    find: (fields.get('find') || '').slice(0, 200),
  };
}

export function writeHash(zoom, find) {
  const fields = new URLSearchParams();
  if (zoom > 0) fields.set('zoom', String(zoom));
  if (find) fields.set('find', find);
  return fields.toString();
}
