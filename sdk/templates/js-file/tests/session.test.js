// Native tests: a session on files of this project, and on some that are written for it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connector } from '../app.js';
import { mount } from './files.js';
import { Session, refused, texts } from './scripted.js';

const people = (file = 'people.csv') => {
  mount(fileURLToPath(new URL('../data', import.meta.url)));
  return new Session(connector, { database: file });
};

const written = (content, statement = '*') => {
  const directory = mkdtempSync(join(tmpdir(), 'my-connector-'));
  try {
    mount(directory);
    writeFileSync(join(directory, 'some.csv'), content);
    return new Session(connector, { database: 'some.csv' }).query(statement);
  } finally {
    rmSync(directory, { recursive: true });
  }
};

test('columns are chosen and rows filtered', () => {
  assert.deepEqual(people().query('name, born', texts('city', 'Alexandria')), [['Hypatia', null]]);
  assert.equal(people().query('*').length, 4);
  assert.deepEqual(people().ping(), [[null, null]]);
});

test('what is not there is told', () => {
  for (const [file, kind] of [['absent.csv', 'unavailable'], ['../souk-test.toml', 'configuration']]) {
    assert.throws(() => people(file), refused(kind));
  }
  for (const [statement, parameters, kind] of [['age', [], 'not-found'], ['*', texts('city'), 'invalid-request']]) {
    assert.throws(() => people().query(statement, parameters), refused(kind));
  }
});

test('values are quoted, go over lines and are in any script', () => {
  assert.deepEqual(written('\ufeffa,b\r\n"x, ""y""","one\r\ntwo"\r\né,\n'), [['x, "y"', 'one\r\ntwo'], ['é', null]]);
  assert.deepEqual(written('a\n""', 'a'), [[null]]);
});

test('a file longer than a piece is read whole', () => {
  const rows = Array.from({ length: 9_000 }, (_, at) => [`${at}`, 'é'.repeat(10)]);
  assert.deepEqual(written(['id,name', ...rows.map((row) => row.join())].join('\n')), rows);
});

test('what is no CSV is the fault of the source', () => {
  for (const content of ['', 'a,b\n1\n', 'a\n"x"y\n', 'a\nx"y"\n', 'a\n"x\n', Uint8Array.of(0x61, 0x0a, 0xff), `a\n${'x'.repeat(2 << 20)}`]) {
    assert.throws(() => written(content), refused('source'));
  }
});
