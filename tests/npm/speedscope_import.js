// Reads a profile with speedscope's own import code and prints what it found as JSON:
//     node speedscope_import.js node_modules FILE
// The package has only the page's bundle. Its entry (drawing the page) is cut off and its
// import function kept; the few things of a browser that the bundle touches while loading
// are stand-ins.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const release = path.join(process.argv[2], 'speedscope', 'dist', 'release');
const bundle = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name));
let source = fs.readFileSync(path.join(release, bundle), 'utf8');
const entry = source.lastIndexOf('console.log(`speedscope v');
// "ns={}; all(ns,{…,importProfilesFromArrayBuffer:()=>f,…})", loaded by "(init(),ns)".
const table = source.match(/([\w$]+)=\{\};[\w$]+\(\1,\{[^}]*importProfilesFromArrayBuffer:/);
const load = table && source.match(
  new RegExp(`then\\(\\(\\)=>\\(([\\w$]+)\\(\\),${table[1].replace(/\$/g, '\\$')}\\)\\)`));
if (entry < 0 || !load)
  throw new Error('this version of speedscope is built in another way: adapt speedscope_import.js');
source = source.slice(0, entry) +
  `${load[1]}();globalThis.importProfile = ${table[1]}.importProfilesFromArrayBuffer;})();`;

const anything = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => '' : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
});
const context = {
  window: anything, document: anything, localStorage: anything, location: {hash: '', protocol: ''},
  navigator: {userAgent: ''}, console: {log() {}, warn: console.warn, error: console.error},
  TextDecoder, TextEncoder, Uint8Array, ArrayBuffer, Buffer, setTimeout, clearTimeout,
  requestAnimationFrame: anything, performance, FileReader: anything, File: anything,
  URL, URLSearchParams, HTMLElement: anything, Element: anything,
};
context.globalThis = context;
context.self = context;
vm.runInNewContext(source, context, {filename: bundle});

async function main() {
  const bytes = fs.readFileSync(process.argv[3]);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const group = await context.importProfile(path.basename(process.argv[3]), buffer);
  if (!group)
    throw new Error('speedscope does not know what this file is');
  const profiles = group.profiles.map(profile => {
    const frames = [];
    profile.forEachFrame(frame => frames.push({
      name: frame.name, file: frame.file, line: frame.line,
      self: frame.getSelfWeight(), total: frame.getTotalWeight(),
    }));
    return {name: profile.getName(), unit: profile.weightUnit || '', weight: profile.getTotalWeight(),
            frames};
  });
  process.stdout.write(JSON.stringify({name: group.name, profiles}));
}
main().catch(error => { console.error(String(error)); process.exit(1); });
