// Makes target/my-connector.wasm: app.js, what it imports and a JavaScript engine in one component.
import { componentize } from '@bytecodealliance/componentize-js';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';

// One file, since the engine in the component loads no modules: each one of this project becomes a function that gives what the module exports.
// Quotes and semicolons are a formatter's business.
const IMPORT = /^import (\{[^}]*\}) from (?:'\.\/([^'\n]+)'|"\.\/([^"\n]+)");?$/gm;
const EXPORT = /^export (?=(?:const|let|class|function\*?) (\w+))/gm;
const FROM_HOST = /^import .* from ['"]wasi:.*['"];?$/gm;
// What is none of those is not joined.
const OTHER = /^(?:import|export)\b.*$/m;
const parts = [];
const joined = new Set();
const join = async (path) => {
  if (joined.has(path)) return;
  joined.add(path);
  const text = numbered(path, await readFile(path, 'utf8'));
  for (const [, , imported, other] of text.matchAll(IMPORT)) await join(imported ?? other);
  const exported = [...text.matchAll(EXPORT)].map(([, name]) => name);
  const body = text
    .replace(IMPORT, (_, names, imported, other) => `const ${names.replaceAll(' as ', ': ')} = modules['${imported ?? other}'];`)
    .replace(EXPORT, '')
    .replace(FROM_HOST, '');
  const odd = body.match(OTHER);
  if (odd) {
    console.error(`${path}: build.js cannot join this line: ${odd[0]}`);
    console.error('It knows: import { … } from \'./….js\' of this project, export const, let, class, function. What else there is goes through a bundler first.');
    process.exit(1);
  }
  parts.push(...(text.match(FROM_HOST) ?? []), `modules['${path}'] = (() => {\n${body}\nreturn { ${exported.join(', ')} };\n})();`);
};

// `souk connector dev` gives each build a number, and with it a version of its own.
const number = process.env.SOUK_BUILD;
const numbered = (path, text) => (number && path === 'app.js' ? text.replace(/(version: (['"])[^'"]+)\2/, `$1-dev.${number}$2`) : text);

// A connector on files is granted the part of WASI that wit/files.wit has, and wasi.js calls it.
const isOnFiles = existsSync('wit/files.wit');
await join('app.js');
if (isOnFiles) await join('wasi.js');
const bundle = ['const modules = {};', ...parts, "export const connector = modules['app.js'].connector;", ''].join('\n');

await rm('target/wit', { recursive: true, force: true });
await mkdir('target/wit', { recursive: true });
await writeFile('target/bundle.js', bundle);
await cp('wit/v1', isOnFiles ? 'target/wit/deps/souk-connector' : 'target/wit', { recursive: true });
if (isOnFiles) await cp('wit/files.wit', 'target/wit/files.wit');
const { component } = await componentize({
  sourcePath: 'target/bundle.js',
  witPath: 'target/wit',
  worldName: isOnFiles ? 'guest' : 'wire-connector',
  // A connector reaches nothing by itself: what the engine would bring along for that is left out, and with it megabytes.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile('target/my-connector.wasm', component);
console.log(`target/my-connector.wasm: ${(component.length / 1e6).toFixed(1)} MB`);
