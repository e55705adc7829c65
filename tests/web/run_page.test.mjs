/* Tabs and findings of report.html, run on what whyslow wrote:  RUN_PAGE=… node --test */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';

import { RunPage, tabAfter } from '../../web/run_page.js';
import { parse } from './dom.mjs';

function open(kind, hash = '') {
  const document = parse(execFileSync(process.env.RUN_PAGE, [kind]).toString(), hash);
  return { document, window: document.defaultView, run: new RunPage(document) };
}

const selected = (run) => run.tabs.filter((tab) => tab.getAttribute('aria-selected') === 'true')
  .map((tab) => tab.dataset.graph);
const drawn = (run) => run.page.flame.canvas.drawn.texts.map(({ text }) => text);

test('keys walk around the tabs', () => {
  assert.equal(tabAfter('ArrowRight', 3, 4), 0);
  assert.equal(tabAfter('ArrowLeft', 0, 4), 3);
  assert.equal(tabAfter('End', 1, 4), 3);
  assert.equal(tabAfter('Home', 1, 4), 0);
  assert.equal(tabAfter('Enter', 1, 4), -1);
});

test('the first picture is shown, a tab shows another with its own words', () => {
  const { run } = open('plain');
  assert.deepEqual(selected(run), ['cpu']);
  assert.ok(drawn(run).includes('burn'));
  run.tabs[1].fire('click');
  assert.deepEqual(selected(run), ['offcpu']);
  assert.ok(drawn(run).includes('disk: fsync of journal') && !drawn(run).includes('burn'));
  const shown = run.abouts.filter((about) => !about.hidden);
  assert.equal(shown.length, 1);
  assert.match(shown[0].textContent, /1,000 waits, 0 lost/);
  assert.equal(run.window.location.hash, '#graph=offcpu');
});

test('an axis without a picture says why, and the next one draws again', () => {
  const { run } = open('plain');
  run.tabs[3].fire('click');
  assert.ok(run.viewer.hidden);
  assert.match(run.abouts.find((about) => !about.hidden).textContent, /n\/a: not permitted here/);
  run.tabs[2].fire('click');
  assert.ok(!run.viewer.hidden);
  assert.ok(drawn(run).includes('malloc'));
});

test('one tab is in the tab order, arrows choose, focus follows', () => {
  const { document, run } = open('plain');
  run.tabs[0].focus();
  assert.ok(run.tabs[0].fire('keydown', { key: 'ArrowLeft' }).defaultPrevented);
  assert.deepEqual(selected(run), ['io']);
  assert.equal(document.activeElement, run.tabs[3]);
  assert.deepEqual(run.tabs.map((tab) => tab.getAttribute('tabindex')), ['-1', '-1', '-1', '0']);
  assert.ok(!run.tabs[3].fire('keydown', { key: 'ArrowLeft', altKey: true }).defaultPrevented);
});

test('an address chooses a picture with what is found in it, and opens a finding', () => {
  const { run } = open('plain', '#graph=alloc&view=icicle&find=MALLOC');
  assert.deepEqual(selected(run), ['alloc']);
  assert.equal(run.page.viewName, 'icicle');
  assert.match(run.page.parts.status.textContent, /^1 found, 75\.00% of all/);
  const { document, window, run: other } = open('plain', '#finding-2');
  assert.equal(document.getElementById('finding-2').open, true);
  assert.deepEqual(selected(other), ['cpu']);
  other.page.search('burn');
  window.location.hash = '#findings';
  window.fire('hashchange');
  assert.equal(other.page.find, 'burn', 'a link within the page leaves the picture alone');
  for (const hash of ['#graph=nowhere', '#graph=', '#constructor', '#%00'])
    assert.deepEqual(selected(open('plain', hash).run), ['cpu'], hash);
});

test('the place of a hotspot finds its function in the picture', () => {
  const { document, run } = open('plain');
  run.tabs[2].fire('click');
  const [row] = document.querySelectorAll('tr[data-find]');
  const button = row.cells[1].children[0];
  assert.equal(button.textContent, 'scan (scan.c:7)');
  button.fire('click');
  assert.deepEqual(selected(run), ['cpu']);
  assert.match(run.page.parts.status.textContent, /^1 found, 75\.00% of all/);
  assert.equal(document.activeElement, run.page.flame.canvas);
  assert.equal(run.window.location.hash, '#graph=cpu&find=burn');
});

test('a page without any picture works', () => {
  const { run } = open('nothing');
  assert.equal(run.page, null);
  assert.ok(run.viewer.hidden);
  run.tabs[1].fire('click');
  assert.deepEqual(selected(run), ['offcpu']);
});
