/* The HTML page: connects its data, the canvas, the search box and the table. */
import { fitText, readHash, writeHash } from './frames.js';
import { Profile, formatCount } from './profile.js';
import { FlameCanvas } from './flame.js';
import { SortableTable } from './table.js';

export class Page {
  /* data: of the picture to begin with. */
  constructor(document, data) {
    this.document = document;
    this.window = document.defaultView;
    this.hashHead = ''; // what a page with several pictures puts before ours
    const get = (id) => document.getElementById(id);
    this.profile = new Profile(data);
    this.parts = {
      find: get('find'), status: get('status'), reset: get('reset'),
      name: get('frame-name'), lines: get('frame-lines'), live: get('live'),
      views: Array.from(document.querySelectorAll('button[data-view]')),
    };
    this.viewName = 'flame';
    this.find = '';
    this.flame = new FlameCanvas(
      { canvas: get('canvas'), scroller: get('scroller'), spacer: get('spacer') },
      {
        label: (frame) => this.profile.name(this.view, frame),
        color: (frame) => this.view.color[frame],
        onPoint: (frame) => this.describe(frame >= 0 ? frame : this.flame.current),
        onWalk: (frame) => this.announce(frame),
        onZoom: () => this.afterZoom(),
      });
    this.view = this.profile.calls;
    this.flame.diff = !!this.view.change;
    this.listen();
    this.addTable(get('hotspots'), get('filter'), get('rows'));
    this.followHash();
  }

  /* Another picture in the place of this one. */
  open(profile) {
    this.profile = profile;
    this.flame.diff = !!profile.calls.change;
    this.show(this.viewName);
  }

  listen() {
    const { document, window, parts } = this;
    parts.views.forEach((button) => {
      button.addEventListener('click', () => {
        this.show(button.dataset.view);
        this.keepHash();
      });
    });
    parts.find.addEventListener('input', () => {
      this.search(parts.find.value);
      this.keepHash();
    });
    parts.reset.addEventListener('click', () => this.flame.zoomTo(0));
    document.addEventListener('keydown', (event) => this.onKey(event));
    window.addEventListener('resize', () => this.flame.resize());
    window.addEventListener('hashchange', () => this.followHash());
    window.matchMedia('(prefers-color-scheme: dark)')
      .addEventListener('change', () => this.flame.resize());
  }

  onKey(event) {
    const { find } = this.parts;
    const typing = event.target.tagName === 'INPUT';
    const wanted = ((event.ctrlKey || event.metaKey) && event.key === 'f') ||
      (event.key === '/' && !typing);
    if (wanted && this.document.activeElement !== find) {
      find.focus(); // a second Ctrl-F is the browser's own
      find.select();
    } else if (event.key === 'Escape' && (!typing || event.target === find)) {
      if (this.find) {
        this.search('');
        this.keepHash();
      } else this.flame.zoomTo(0);
      if (typing) this.flame.canvas.focus();
    } else return;
    event.preventDefault();
  }

  show(name) {
    this.viewName = name;
    this.view = name === 'inverted' ? this.profile.invert() : this.profile.calls;
    for (const button of this.parts.views)
      button.setAttribute('aria-pressed', String(button.dataset.view === name));
    this.flame.show(this.view.shape, name !== 'flame');
    this.describe(0);
    this.search(this.find);
  }

  search(text) {
    this.find = text;
    if (this.parts.find.value !== text) this.parts.find.value = text;
    const needle = text.toLowerCase();
    this.result = needle
      ? this.view.shape.search(this.profile.matches(this.view, needle)) : null;
    this.flame.highlight(this.result && this.result.hits);
    this.showStatus();
  }

  afterZoom() {
    this.describe(this.flame.current);
    this.showStatus();
    this.keepHash();
  }

  showStatus() {
    const words = [];
    if (this.result)
      words.push(`${formatCount(this.result.count)} found, ` +
        `${(this.result.share * 100).toFixed(2)}% of all`);
    const { zoom } = this.flame;
    if (zoom > 0) words.push(`zoomed into ${fitText(this.profile.name(this.view, zoom), 60)}`);
    this.parts.status.textContent = words.join(' · ');
    this.parts.reset.disabled = zoom === 0;
  }

  describe(frame) {
    this.parts.name.textContent = this.profile.name(this.view, frame);
    this.parts.lines.textContent = this.profile.describe(this.view, frame).join('\n');
  }

  /* For a screen reader, which cannot see the canvas. */
  announce(frame) {
    this.describe(frame);
    const level = this.view.shape.depth[frame] + 1;
    this.parts.live.textContent = `level ${level}: ${this.profile.name(this.view, frame)}, ` +
      this.profile.describe(this.view, frame).join(', ');
  }

  keepHash() {
    let hash = writeHash(this.flame.zoom, this.find);
    if (this.viewName !== 'flame') hash = `view=${this.viewName}${hash ? '&' : ''}${hash}`;
    hash = [this.hashHead, hash].filter(Boolean).join('&');
    try {
      this.window.history.replaceState(null, '', `#${hash}`);
    } catch {
      this.window.location.hash = hash; // some browsers refuse the former for files
    }
  }

  followHash() {
    let { hash } = this.window.location;
    if (!hash.includes('=')) { // a link within the page, not a view of ours
      if (hash && this.result !== undefined) return;
      hash = '';
    }
    const asked = new URLSearchParams(hash.replace(/^#/, '')).get('view');
    const button = this.parts.views.find((b) => b.dataset.view === asked && !b.disabled);
    this.find = readHash(hash, 0).find;
    this.show(button ? asked : 'flame');
    const { zoom } = readHash(hash, this.view.shape.count);
    if (zoom > 0) {
      this.flame.current = zoom;
      this.flame.zoomTo(zoom);
    }
  }

  /* A function's name in the table finds it in the picture. */
  addTable(table, filter, rows) {
    if (!table) return;
    const heads = Array.from(table.tHead.rows[0].cells);
    const column = heads.findIndex((head) => head.dataset.key === 'function');
    this.table = new SortableTable(table, filter, rows);
    if (column < 0) return;
    for (const row of this.table.rows) {
      const cell = row.cells[column];
      const button = this.document.createElement('button');
      button.className = 'name';
      button.title = 'Find it in the picture';
      button.textContent = cell.textContent;
      button.addEventListener('click', () => {
        this.search(button.textContent);
        this.keepHash();
        this.flame.canvas.focus();
      });
      cell.replaceChildren(button);
    }
  }
}

if (typeof document !== 'undefined' && document.getElementById('data'))
  new Page(document, JSON.parse(document.getElementById('data').textContent));
