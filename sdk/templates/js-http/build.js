// Makes target/my-connector.wasm: app.js, souk.js and a JavaScript engine in one component.
import { componentize } from '@bytecodealliance/componentize-js';
import { mkdir, readFile, writeFile } from 'node:fs/promises';

// One file: the engine in the component loads no modules.
const join = async () => {
  const strip = (text) => text.replace(/^import .*;$/gm, '');
  const glue = (await readFile('souk.js', 'utf8')).replace(/^export /gm, '');
  // `souk connector dev` gives each build a number, and with it a version of its own.
  const number = process.env.SOUK_BUILD;
  const app = await readFile('app.js', 'utf8');
  const numbered = number ? app.replace(/(version: '[^']+)'/, `$1-dev.${number}'`) : app;
  return `${glue}\n${strip(numbered)}`;
};

await mkdir('target', { recursive: true });
await writeFile('target/bundle.js', await join());
const { component } = await componentize({
  sourcePath: 'target/bundle.js',
  witPath: 'wit/v1',
  worldName: 'wire-connector',
  // A connector reaches nothing by itself: what the engine would bring along for that is left out, and with it megabytes.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile('target/my-connector.wasm', component);
console.log(`target/my-connector.wasm: ${(component.length / 1e6).toFixed(1)} MB`);
