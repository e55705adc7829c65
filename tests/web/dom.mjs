/* As much of a document as the scripts in web/ touch, made from a file that whyslow wrote.
 *
 * A real browser is asked too where there is one (in_browser.py); this one is everywhere, and
 * it fails loudly on what it does not know. */

const VOID = new Set(['meta', 'input', 'br']);
const RAW = new Set(['script', 'style']);

class Events {
  listeners = new Map();

  addEventListener(type, listener) {
    if (!this.listeners.has(type)) this.listeners.set(type, []);
    this.listeners.get(type).push(listener);
  }

  /* Bubbles up through parents to the document; returns the event. */
  fire(type, fields = {}) {
    const event = { type, target: this, defaultPrevented: false, ...fields,
      preventDefault() { this.defaultPrevented = true; } };
    for (let at = this; at; at = at.parent || (at.ownerDocument !== at && at.ownerDocument))
      for (const listener of at.listeners.get(type) || []) listener(event);
    return event;
  }
}

export class Element extends Events {
  constructor(document, tag) {
    super();
    this.ownerDocument = document;
    this.tag = tag;
    this.tagName = tag.toUpperCase();
    this.attributes = new Map();
    this.nodes = [];
    this.parent = null;
    this.style = {};
    this.value = '';
    this.disabled = false;
    this.hidden = false;
    this.scrolled = 0;
    this.clientWidth = 800;
    this.clientHeight = 300;
    const self = this;
    this.dataset = new Proxy({}, {
      get: (_, name) => self.attributes.get(`data-${String(name)}`),
    });
    this.classList = {
      has: (name) => self.classes().includes(name),
      toggle(name, on) {
        const rest = self.classes().filter((other) => other !== name);
        self.setAttribute('class', (on ? [...rest, name] : rest).join(' '));
      },
    };
  }

  classes() { return (this.getAttribute('class') || '').split(' ').filter(Boolean); }
  set className(text) { this.setAttribute('class', text); }
  getAttribute(name) { return this.attributes.has(name) ? this.attributes.get(name) : null; }
  setAttribute(name, value) { this.attributes.set(name, String(value)); }
  removeAttribute(name) { this.attributes.delete(name); }
  get children() { return this.nodes.filter((node) => node instanceof Element); }
  get textContent() {
    return this.nodes.map((node) => (typeof node === 'string' ? node : node.textContent)).join('');
  }
  set textContent(text) { this.nodes = [String(text)]; }
  get scrollHeight() { return parseFloat(this.children[0]?.style.height || '0'); }
  get scrollTop() { return this.scrolled; }
  set scrollTop(to) {
    this.scrolled = Math.max(0, Math.min(to, this.scrollHeight - this.clientHeight));
  }
  append(...nodes) {
    for (const node of nodes) {
      if (node instanceof Element) {
        node.remove();
        node.parent = this;
      }
      this.nodes.push(node);
    }
  }
  remove() {
    if (this.parent) this.parent.nodes = this.parent.nodes.filter((node) => node !== this);
    this.parent = null;
  }
  replaceChildren(...nodes) {
    this.nodes = [];
    this.append(...nodes);
  }
  replaceWith(node) {
    node.parent = this.parent;
    this.parent.nodes[this.parent.nodes.indexOf(this)] = node;
    this.parent = null;
  }
  focus() {
    this.ownerDocument.activeElement = this;
    for (const listener of this.listeners.get('focus') || []) listener({ target: this });
  }
  select() {}
  *walk() {
    for (const child of this.children) {
      yield child;
      yield* child.walk();
    }
  }
  matches(selector) {
    const parts = /^(\w*)(?:#([\w-]+))?(?:\.([\w-]+))?(?:\[([\w-]+)\])?$/.exec(selector);
    if (!parts) throw new Error(`unknown selector ${selector}`);
    const [, tag, id, name, attribute] = parts;
    return (!tag || this.tag === tag) && (!id || this.getAttribute('id') === id) &&
      (!name || this.classes().includes(name)) && (!attribute || this.attributes.has(attribute));
  }
  querySelectorAll(selector) {
    const [last, ...above] = selector.split(' ').reverse();
    const under = (element) => above.every((part) => element.parent && element.parent.closest(part));
    return Array.from(this.walk()).filter((element) => element.matches(last) && under(element));
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] || null; }
  closest(selector) {
    for (let at = this; at; at = at.parent) if (at.matches(selector)) return at;
    return null;
  }
  /* Tables. */
  get tHead() { return this.querySelector('thead'); }
  get tBodies() { return this.querySelectorAll('tbody'); }
  get rows() { return this.querySelectorAll('tr'); }
  get cells() { return this.children; }
  /* The canvas: keeps what was drawn. */
  getContext() {
    const drawn = this.drawn = { rects: [], texts: [], rings: [] };
    return this.context ||= {
      setTransform() {},
      clearRect() { drawn.rects = []; drawn.texts = []; drawn.rings = []; },
      measureText: (text) => ({ width: text.length * 7.2 }),
      fillRect(x, y, width, height) { drawn.rects.push({ x, y, width, height, fill: this.fillStyle }); },
      fillText(text, x, y) { if (text) drawn.texts.push({ text, x, y }); },
      strokeRect(x, y, width) { drawn.rings.push({ x, y, width }); },
    };
  }
  getBoundingClientRect() {
    return { left: 0, top: 0, width: parseFloat(this.style.width || '0') };
  }
}

function unescape(text) {
  const named = { lt: '<', gt: '>', amp: '&', quot: '"' };
  return text.replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) =>
    (code ? String.fromCodePoint(Number(code)) : named[name]));
}

function makeWindow(hash) {
  const window = new Events();
  Object.assign(window, {
    innerWidth: 1016, devicePixelRatio: 1, location: { hash }, frames: [], scrollY: 0,
    history: { replaceState: (_, __, to) => { window.location.hash = to; } },
    requestAnimationFrame: (draw) => { draw(); },
    scrollTo: (x, y) => { window.scrollY = y; window.fire('scroll'); },
    matchMedia: () => ({ addEventListener() {} }),
    getComputedStyle: () => ({
      color: 'ink', backgroundColor: 'paper', fontFamily: 'mono',
      getPropertyValue: (name) => (Number(name.slice(3)) < 35 ? ` ${name}` : ''),
    }),
  });
  return window;
}

/* The document of an SVG or HTML text. */
export function parse(text, hash = '') {
  const document = new Events();
  document.ownerDocument = document;
  document.defaultView = makeWindow(hash);
  document.activeElement = null;
  document.createElement = (tag) => new Element(document, tag);
  document.createElementNS = (_, tag) => new Element(document, tag);
  const top = new Element(document, 'top');
  let open = top;
  const token = /<!\[CDATA\[([\s\S]*?)\]\]>|<[!?][^>]*>|<(\/?)([\w-]+)((?:\s+[\w:-]+(?:="[^"]*")?)*)\s*(\/?)>|([^<]+)/y;
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (!match) throw new Error(`cannot read ${JSON.stringify(text.slice(at, at + 60))}`);
    const [, cdata, closes, tag, attributes, empty, words] = match;
    if (cdata !== undefined) open.append(cdata);
    else if (words !== undefined) open.append(unescape(words));
    else if (tag && closes) {
      if (open.tag !== tag) throw new Error(`</${tag}> ends <${open.tag}>`);
      open = open.parent;
    } else if (tag) {
      const element = new Element(document, tag);
      for (const [, name, value] of attributes.matchAll(/([\w:-]+)(?:="([^"]*)")?/g))
        element.setAttribute(name, unescape(value || ''));
      element.disabled = element.attributes.has('disabled');
      open.append(element);
      if (!empty && !VOID.has(tag)) open = element;
      if (RAW.has(tag) && !empty && !text.startsWith('<![CDATA[', token.lastIndex + 1)) {
        const end = text.indexOf(`</${tag}>`, token.lastIndex);
        element.append(text.slice(token.lastIndex, end));
        token.lastIndex = end;
      }
    }
  }
  [document.documentElement] = top.children;
  document.documentElement.parent = null;
  document.getElementById = (id) => document.documentElement.querySelector(`#${id}`);
  document.querySelectorAll = (selector) => document.documentElement.querySelectorAll(selector);
  return document;
}
