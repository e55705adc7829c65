/* report.html: one canvas for the flame graphs of all axes, chosen by tabs. */
import { Page } from './page.js';
import { Profile } from './profile.js';

/* Which tab a key leads to, of `count`; -1: it is no key for tabs. */
export function tabAfter(key, at, count) {
  switch (key) {
    case 'ArrowRight': return (at + 1) % count;
    case 'ArrowLeft': return (at + count - 1) % count;
    case 'Home': return 0;
    case 'End': return count - 1;
    default: return -1;
  }
}

export class RunPage {
  constructor(document) {
    this.document = document;
    this.window = document.defaultView;
    this.tabs = Array.from(document.querySelectorAll('button[data-graph]'));
    this.abouts = Array.from(document.querySelectorAll('div[data-about]'));
    this.viewer = document.getElementById('viewer');
    this.profiles = new Map(); // read when first shown
    const first = this.tabs.find((tab) => this.dataOf(tab)) || null;
    this.page = null;
    if (first) {
      this.page = new Page(document, JSON.parse(this.dataOf(first).textContent));
      this.profiles.set(first.dataset.graph, this.page.profile);
    }
    this.tabs.forEach((tab, at) => {
      tab.addEventListener('click', () => this.choose(tab, true));
      tab.addEventListener('keydown', (event) => this.onKey(event, at));
    });
    this.window.addEventListener('hashchange', () => this.followHash());
    if (this.page) this.addFinders();
    this.choose(first || this.tabs[0], false);
    this.followHash();
  }

  dataOf(tab) {
    return this.document.getElementById(`graph-${tab.dataset.graph}`);
  }

  /* The place of a hotspot finds its function in the picture it comes from. */
  addFinders() {
    for (const row of this.document.querySelectorAll('tr[data-find]')) {
      const tab = this.tabs.find((one) => one.dataset.graph === row.dataset.in);
      if (!row.dataset.find || !tab || !this.dataOf(tab)) continue;
      const cell = row.cells[1];
      const button = this.document.createElement('button');
      button.className = 'name';
      button.title = 'Find it in the flame graph';
      button.textContent = cell.textContent;
      button.addEventListener('click', () => {
        this.choose(tab, false);
        this.page.search(row.dataset.find);
        this.page.keepHash();
        this.page.flame.canvas.focus();
      });
      cell.replaceChildren(button);
    }
  }

  onKey(event, at) {
    const next = tabAfter(event.key, at, this.tabs.length);
    if (next < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    this.choose(this.tabs[next], true);
    this.tabs[next].focus();
    event.preventDefault();
  }

  /* An axis without a picture can be chosen, too: it says why there is none. */
  choose(tab, keep) {
    const name = tab.dataset.graph;
    this.chosen = name;
    for (const other of this.tabs) {
      other.setAttribute('aria-selected', String(other === tab));
      other.setAttribute('tabindex', other === tab ? '0' : '-1');
    }
    for (const about of this.abouts) about.hidden = about.dataset.about !== name;
    const data = this.dataOf(tab);
    this.viewer.hidden = !data;
    if (!this.page) return;
    this.page.hashHead = `graph=${name}`;
    if (data) {
      if (!this.profiles.has(name))
        this.profiles.set(name, new Profile(JSON.parse(data.textContent)));
      this.page.open(this.profiles.get(name));
    }
    if (keep) this.page.keepHash();
  }

  /* "#graph=io&find=read" chooses a picture, "#finding-2" opens a finding; both may come from
   * anywhere. */
  followHash() {
    const hash = this.window.location.hash.replace(/^#/, '');
    const asked = new URLSearchParams(hash).get('graph');
    const tab = this.tabs.find((one) => one.dataset.graph === asked);
    if (tab) {
      this.choose(tab, false);
      if (this.page) this.page.followHash();
    }
    const target = /^[\w-]+$/.test(hash) ? this.document.getElementById(hash) : null;
    if (target && target.tagName === 'DETAILS') target.open = true;
  }
}

if (typeof document !== 'undefined' && document.getElementById('graph-panel'))
  new RunPage(document);
