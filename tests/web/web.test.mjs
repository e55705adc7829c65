/* Search, zoom and keyboard of pictures, run on what whyslow wrote:  PICTURE=… node --test */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';

import { FlameSvg } from '../../web/flame_svg.js';
import { Frames, fitText, readHash, wrapText, writeHash } from '../../web/frames.js';
import { Page } from '../../web/page.js';
import { formatCount, formatWeight } from '../../web/profile.js';
import { compareKeys } from '../../web/table.js';
import { parse } from './dom.mjs';

const written = new Map();
function picture(tree, form) {
  const key = `${tree} ${form}`;
  if (!written.has(key))
    written.set(key, execFileSync(process.env.PICTURE, [tree, form], { maxBuffer: 1 << 28 }).toString());
  return written.get(key);
}

function openSvg(tree, form, hash) {
  const document = parse(picture(tree, form), hash);
  return { document, window: document.defaultView, flame: new FlameSvg(document.documentElement) };
}

function openPage(tree, hash) {
  const document = parse(picture(tree, 'html'), hash);
  return { document, window: document.defaultView, page: new Page(document, JSON.parse(document.getElementById('data').textContent)) };
}

const type = (input, text) => {
  input.value = text;
  input.fire('input');
};
const indexOf = (flame, name) => flame.labels.findIndex((label) => label.includes(name));

/* all ─┬─ a (6) ─┬─ b (4) ── a (1)
 *      │         └─ c (1)
 *      └─ d (3)                      root's own: 1 */
const small = () => new Frames([0, 1, 2, 3, 2, 1], [10, 6, 4, 1, 1, 3]);

test('children tile their parent, and subtrees are ranges', () => {
  const frames = small();
  assert.deepEqual(Array.from(frames.start), [0, 0, 0, 0, 4, 6]);
  assert.deepEqual(Array.from(frames.end), [6, 5, 4, 4, 5, 6]);
  assert.deepEqual(Array.from(frames.parent), [0, 0, 1, 2, 1, 0]);
});

test('a zoomed frame and its callers fill the picture, the rest is scaled or gone', () => {
  const frames = small();
  assert.deepEqual(frames.place(0, 2), { left: 0, width: 1 });
  assert.deepEqual(frames.place(2, 2), { left: 0, width: 1 });
  assert.deepEqual(frames.place(3, 2), { left: 0, width: 0.25 });
  assert.equal(frames.place(4, 2), null);
  assert.deepEqual(frames.place(4, 1), { left: 4 / 6, width: 1 / 6 });
});

test('a match above a match is not counted twice', () => {
  const result = small().search((i) => [1, 3, 5].includes(i));
  assert.equal(result.count, 3);
  assert.equal(result.weight, 9);
  assert.equal(result.share, 0.9);
});

test('keys lead in, out and along the row, and stop at the end', () => {
  const frames = small();
  assert.equal(frames.step(0, 'in', 0), 1);
  assert.equal(frames.step(3, 'in', 0), 3);
  assert.equal(frames.step(0, 'out', 0), 0);
  assert.equal(frames.step(4, 'out', 0), 1);
  assert.equal(frames.step(1, 'next', 0), 5);
  assert.equal(frames.step(5, 'next', 0), 5);
  assert.equal(frames.step(4, 'previous', 0), 2);
  assert.equal(frames.step(1, 'next', 1), 1, 'what is out of the picture is not walked to');
});

test('a place of the picture leads to its frame', () => {
  const frames = small();
  assert.equal(frames.at(1, 0.59, 0), 1);
  assert.equal(frames.at(1, 0.61, 0), 5);
  assert.equal(frames.at(1, 0.95, 0), -1, "the root's own time");
  assert.equal(frames.at(2, 0.99, 1), -1);
  assert.equal(frames.at(2, 0.7, 1), 4);
  assert.equal(frames.at(0, 0.99, 2), 0);
  assert.equal(frames.at(9, 0.1, 0), -1);
});

test('two hundred thousand levels need no deep stack', () => {
  const depth = Int32Array.from({ length: 200000 }, (_, i) => i);
  const frames = new Frames(depth, new Float64Array(200000).fill(1));
  assert.equal(frames.end[0], 200000);
  assert.equal(frames.place(199999, 100000).width, 1);
  assert.equal(frames.search(() => true).weight, 1);
});

test('labels are cut with an ellipsis, never inside a letter', () => {
  assert.equal(fitText('function', 8), 'function');
  assert.equal(fitText('function', 7), 'functi…');
  assert.equal(fitText('function', 2), '');
  assert.equal(fitText('数字関数', 8), '数字関数');
  assert.equal(fitText('数字関数', 6), '数字…');
  assert.equal(fitText('😀😀😀😀', 5), '😀😀…');
  assert.equal(fitText('+3.20% f', 5, 8), '');
  assert.ok(fitText('h'.repeat(1e6), 20).length === 20);
  assert.deepEqual(wrapText('one two three', 7), ['one two', 'three']);
});

test('an address from anywhere zooms only into frames that exist', () => {
  assert.deepEqual(readHash('#zoom=3&find=a%26b', 5), { zoom: 3, find: 'a&b' });
  for (const hash of ['', '#', '#zoom=9', '#zoom=-1', '#zoom=1.5', '#zoom=x', '#zoom='])
    assert.equal(readHash(hash, 5).zoom, 0, hash);
  assert.equal(readHash(`#find=${'x'.repeat(5000)}`, 5).find.length, 200);
  assert.equal(writeHash(3, 'a&b c'), 'zoom=3&find=a%26b+c');
  assert.equal(writeHash(0, ''), '');
});

test('numbers are written as whyslow writes them', () => {
  assert.equal(formatWeight(0, 'ns'), '0 ns');
  assert.equal(formatWeight(1.5e9, 'ns'), '1.50 s');
  assert.equal(formatWeight(999600, 'ns'), '1.00 ms');
  assert.equal(formatWeight(1536, 'bytes'), '1.50 KiB');
  assert.equal(formatWeight(1234567, 'count'), '1,234,567');
  assert.equal(formatCount(999), '999');
});

test('svg: the file says by itself which frames there are', () => {
  for (const form of ['flame', 'icicle']) {
    const { flame } = openSvg('plain', form);
    assert.equal(flame.icicle, form === 'icicle');
    assert.equal(flame.frames.count, 33);
    assert.equal(flame.labels[0], 'all');
    assert.equal(flame.frames.parent[indexOf(flame, 'worker_main')], indexOf(flame, 'start_thread'));
  }
});

test('svg: search ignores case, shows the share, and Esc clears it', () => {
  const { document, window, flame } = openSvg('plain', 'flame');
  type(flame.input, 'LEDGER::book');
  assert.match(flame.status.textContent, /^2 found, 70\.12% of all$/);
  const hits = flame.groups.filter((group) => group.classList.has('hit'));
  assert.equal(hits.length, 2);
  assert.equal(window.location.hash, '#find=LEDGER%3A%3Abook');
  type(flame.input, '.*');
  assert.match(flame.status.textContent, /^0 found/, 'no regular expressions');
  flame.input.fire('keydown', { key: 'Escape' });
  assert.equal(flame.input.value, '');
  assert.equal(flame.status.textContent, '');
  assert.equal(document.activeElement, flame.groups[0]);
});

test('svg: Ctrl-F and / go to the search box, a second Ctrl-F to the browser', () => {
  for (const keys of [{ key: 'f', ctrlKey: true }, { key: '/' }]) {
    const { document, flame } = openSvg('plain', 'flame');
    assert.ok(flame.groups[0].fire('keydown', keys).defaultPrevented);
    assert.equal(document.activeElement, flame.input);
    if (keys.ctrlKey) assert.ok(!flame.input.fire('keydown', keys).defaultPrevented);
  }
});

test('svg: a click zooms, labels are fitted anew, the address keeps it, Esc resets', () => {
  const { window, flame } = openSvg('plain', 'flame');
  const kernel = indexOf(flame, 'ksys_write');
  assert.equal(flame.groups[kernel].querySelector('text'), null, 'too narrow for a label');
  flame.rects[kernel].fire('click');
  assert.equal(flame.rects[kernel].getAttribute('width'), '980.00');
  assert.equal(flame.groups[kernel].querySelector('text').textContent, 'ksys_write');
  assert.equal(flame.groups[indexOf(flame, 'crc32_z')].style.display, 'none');
  assert.ok(flame.groups[0].classList.has('u'), 'callers are dimmed');
  assert.equal(window.location.hash, `#zoom=${kernel}`);
  const again = openSvg('plain', 'flame', window.location.hash);
  assert.equal(again.flame.zoom, kernel);
  flame.groups[kernel].fire('keydown', { key: 'Escape' });
  assert.equal(flame.zoom, 0);
  assert.equal(flame.groups[indexOf(flame, 'crc32_z')].style.display, '');
  assert.equal(flame.groups[kernel].querySelector('text'), null);
});

test('svg: arrows walk as they look, one frame is in the tab order, Enter zooms', () => {
  for (const [form, inward] of [['flame', 'ArrowUp'], ['icicle', 'ArrowDown']]) {
    const { document, flame } = openSvg('plain', form);
    const press = (key) => document.activeElement.fire('keydown', { key });
    flame.groups[0].focus();
    press(inward);
    press('ArrowRight');
    assert.equal(flame.labels[flame.current], 'clone3');
    assert.equal(document.activeElement, flame.groups[flame.current]);
    const inOrder = flame.groups.filter((group) => group.getAttribute('tabindex') === '0');
    assert.deepEqual(inOrder, [flame.groups[flame.current]]);
    press('Enter');
    assert.equal(flame.zoom, flame.current);
    press('Home');
    assert.equal(flame.current, 0);
    assert.equal(flame.groups[5].getAttribute('role'), 'treeitem');
  }
});

test('svg: a narrow window breaks the header, frames move down and stay in the window', () => {
  const { window, flame } = openSvg('diff', 'flame');
  const height = Number(flame.svg.getAttribute('height'));
  window.innerWidth = 416;
  window.fire('resize');
  assert.ok(Number(flame.svg.getAttribute('height')) > height);
  assert.equal(flame.svg.getAttribute('width'), '400');
  assert.match(flame.frames_group.getAttribute('transform'), /^translate\(0 [1-9]/);
  for (const rect of flame.rects)
    assert.ok(Number(rect.getAttribute('x')) + Number(rect.getAttribute('width')) <= 390.02);
  for (const text of flame.svg.querySelectorAll('.p text'))
    assert.ok(text.textContent.length * 7.225 <= 381, text.textContent);
});

test('svg: a tall picture begins at its root, and the search box comes along', () => {
  const { window, flame } = openSvg('deep', 'flame');
  const y = () => Number(flame.controls.getAttribute('y'));
  assert.equal(window.scrollY, flame.height);
  assert.equal(y(), flame.height);
  window.scrollTo(0, 0);
  assert.ok(y() > 50 && y() < 150);
  assert.equal(openSvg('deep', 'icicle').window.scrollY, 0);
});

test('svg: a differential label never shows half a number', () => {
  const { flame } = openSvg('diff', 'flame');
  for (const text of flame.frames_group.querySelectorAll('text'))
    assert.match(text.textContent, /^[+-]\d+\.\d\d%/);
});

test('page: its words are those of the SVG', () => {
  for (const tree of ['plain', 'diff', 'hostile']) {
    const { page } = openPage(tree);
    const { flame } = openSvg(tree, 'flame');
    const shown = new Map(flame.groups.map((group) => {
      const [label, ...lines] = group.querySelector('title').textContent.split('\n');
      return [label, lines];
    }));
    let compared = 0;
    for (let i = 0; i < page.view.shape.count; i++) {
      const lines = shown.get(page.profile.name(page.view, i));
      if (!lines) continue; // narrow in the SVG
      assert.deepEqual(page.profile.describe(page.view, i), lines);
      compared++;
    }
    assert.ok(compared >= shown.size, tree);
  }
});

test('page: draws, finds, zooms by click and tells a screen reader', () => {
  const { document, window, page } = openPage('plain');
  const { canvas } = page.flame;
  assert.ok(canvas.drawn.texts.some(({ text }) => text === 'main'));
  type(page.parts.find, 'MAIN');
  assert.match(page.parts.status.textContent, /^3 found, 100\.00% of all$/);
  assert.equal(canvas.drawn.rects.filter(({ fill }) => fill === '--f34').length, 3);
  // The last row is the root's: 12 rows of 18 pixels, of which all are in the window.
  canvas.fire('mousemove', { clientX: 790, clientY: 11 * 18 - 5 });
  assert.equal(page.parts.name.textContent, 'clone3');
  canvas.fire('click', { clientX: 790, clientY: 11 * 18 - 5 });
  assert.match(page.parts.live.textContent, /^level 2: clone3, 228 ms, 9\.06% of all/);
  assert.equal(window.location.hash, `#zoom=${page.flame.zoom}&find=MAIN`);
  assert.ok(!canvas.drawn.texts.some(({ text }) => text === 'main'));
  document.documentElement.fire('keydown', { key: 'Escape' });
  assert.equal(page.find, '', 'the first Esc clears the search');
  document.documentElement.fire('keydown', { key: 'Escape' });
  assert.equal(page.flame.zoom, 0);
});

test('page: arrows walk, Enter zooms, the ring follows the focus', () => {
  const { page } = openPage('plain', '#view=icicle');
  const { canvas } = page.flame;
  canvas.focus();
  for (const key of ['ArrowDown', 'ArrowRight', 'ArrowDown']) canvas.fire('keydown', { key });
  assert.equal(page.profile.name(page.view, page.flame.current), 'start_thread');
  assert.match(page.parts.live.textContent, /^level 3: start_thread/);
  assert.equal(canvas.drawn.rings.length, 1);
  assert.ok(canvas.fire('keydown', { key: 'Enter' }).defaultPrevented);
  assert.equal(page.flame.zoom, page.flame.current);
  assert.ok(!canvas.fire('keydown', { key: 'ArrowDown', ctrlKey: true }).defaultPrevented);
});

test('page: the inverted view has the same total, and leaves are what burns', () => {
  const { page } = openPage('plain');
  const [, , inverted] = page.parts.views;
  inverted.fire('click');
  assert.equal(page.viewName, 'inverted');
  const { shape } = page.view;
  assert.equal(shape.weight[0], page.profile.calls.shape.weight[0]);
  const top = shape.rows[1].map((i) => [page.profile.name(page.view, i), shape.weight[i]]);
  assert.deepEqual(top[0], ['ledger::Book::balance(ledger::Account const&)', 420e6]);
  assert.equal(top.reduce((sum, [, weight]) => sum + weight, 0), shape.weight[0]);
  for (let i = 1; i < shape.count; i++)
    assert.ok(shape.start[i] + shape.weight[i] <= shape.start[shape.parent[i]] + shape.weight[shape.parent[i]]);
  assert.ok(!page.profile.describe(page.view, 1)[0].includes('itself'));
});

test('page: what was not drawn is a frame of its own in the inverted view', () => {
  const { page } = openPage('large');
  page.show('inverted');
  const { shape } = page.view;
  assert.ok(Math.abs(shape.weight[0] - page.profile.all) < 1);
  const rest = shape.rows[1].find((i) => page.profile.name(page.view, i) === '[not drawn]');
  assert.ok(Math.abs(shape.weight[rest] - page.profile.data.left_out.weight) < 1);
});

test('page: a differential picture has no inverted view and says why', () => {
  const { page } = openPage('diff', '#view=inverted');
  assert.equal(page.viewName, 'flame');
  assert.ok(page.parts.views[2].disabled);
  assert.match(page.parts.views[2].getAttribute('title'), /gone/);
});

test('page: the table sorts by number, filters, and finds its functions in the picture', () => {
  const { document, page } = openPage('plain');
  const table = document.getElementById('hotspots');
  const column = (at) => table.querySelector('tbody').rows.filter((row) => !row.hidden)
    .map((row) => row.cells[at].textContent);
  const heads = table.tHead.rows[0].cells;
  const click = (at) => heads[at].children[0].fire('click');
  click(1);
  assert.equal(column(1)[0], '420 ms');
  assert.equal(heads[1].getAttribute('aria-sort'), 'descending');
  click(1);
  assert.equal(column(1)[0], '0 ns');
  click(4);
  assert.deepEqual(column(4), [...column(4)].sort());
  type(document.getElementById('filter'), 'LEDGER');
  assert.equal(column(0).length, 4);
  assert.equal(document.getElementById('rows').textContent, '4 of 33 rows');
  const cell = table.querySelector('tbody').rows.find((row) => !row.hidden).cells[4];
  cell.children[0].fire('click');
  assert.equal(page.find, cell.textContent);
  assert.match(page.parts.status.textContent, /^1 found/);
  assert.equal(document.activeElement, page.flame.canvas);
});

test('keys of different kinds: numbers stand before "n/a"', () => {
  assert.ok(compareKeys(1, 'n/a: x') < 0);
  assert.ok(compareKeys('a', 'b') < 0);
  assert.ok(compareKeys(2, 1) > 0);
});

test('page: rows out of the window are not drawn, walking scrolls to them', () => {
  const { page } = openPage('deep');
  const { canvas, scroller } = page.flame;
  assert.equal(page.view.shape.rows.length, 4096);
  assert.ok(canvas.drawn.rects.length <= 300 / 18 + 2);
  assert.equal(scroller.scrollTop, 4096 * 18 - 300, 'reading begins at the root');
  canvas.focus();
  for (let i = 0; i < 40; i++) canvas.fire('keydown', { key: 'ArrowUp' });
  assert.equal(scroller.scrollTop, (4095 - 40) * 18);
  assert.ok(canvas.drawn.rects.length <= 300 / 18 + 2);
});

test('page: a hundred thousand frames are drawn as pixels, not as a hundred thousand boxes', () => {
  const { page } = openPage('large');
  assert.equal(page.view.shape.count, 100000);
  const rows = page.view.shape.rows.length;
  assert.ok(page.flame.canvas.drawn.rects.length < rows * 2 * 800);
});
