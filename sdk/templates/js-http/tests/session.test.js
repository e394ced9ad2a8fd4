// Native tests: a session on an API of which is said what it answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connector } from '../app.js';
import { Origin, Session, refused, texts } from './scripted.js';

const open = (answers) => new Session(connector, { api_key: 'secret' }, new Origin(answers));

test('pages follow each other', () => {
  const session = open({
    '/items': [200, '{"items": [{"id": 1, "name": "pear", "price": "1.50", "at": null}], "next": "/more"}'],
    '/more': [200, '{"items": [{"id": 2, "name": "fig", "price": null, "at": "1970-01-01T00:00:01Z"}], "next": null}'],
  });
  assert.deepEqual(session.query('/items'), [[1n, 'pear', '1.50', null], [2n, 'fig', null, 1_000_000n]]);
  const [{ headers }] = session.source.requests;
  assert.deepEqual(headers, [{ name: 'authorization', value: 'Bearer secret' }]);
});

test('a parameter is one value, or is left out', () => {
  const none = [200, '{"items": [], "next": null}'];
  const session = open({ '/items?q=a%26b': none, '/items': none });
  assert.deepEqual(session.query('/items', texts('a&b')), []);
  assert.deepEqual(session.query('/items', [{ tag: 'null' }]), []);
  assert.throws(() => session.query('/items', [{ tag: 'int64', val: 1n }]), refused('invalid-request'));
});

test('a source leads to its own paths', () => {
  assert.throws(() => open({ '/items': [200, '{"items": [], "next": "/items page=2"}'] }).query('/items'), refused('source'));
});

test('refusals have classes', () => {
  assert.throws(() => open({ '/items': [401, 'no'] }).query('/items'), refused('authentication'));
  assert.throws(() => open({ '/items': [200, '[]'] }).query('/items'), refused('source'));
  assert.throws(() => open({}).query('DELETE /items'), refused('invalid-request'));
  assert.throws(() => new Session(connector, {}, new Origin({})), refused('configuration'));
});

test('who leaves ends what he asked, and no other', () => {
  const item = '{"items": [{"id": 1, "name": "pear", "price": "1.50", "at": null}], "next": null}';
  const session = open({ '/items': [200, item] });
  assert.ok(connector.describe().abilities.includes('cancel'));
  const query = { tag: 'query', val: { text: '/items', parameters: [], limits: { rowsMax: 9, bytesMax: 99n } } };
  const ask = (id) => session.session.submit(id, query, 0n).commands[0];
  const [leaving, staying] = [ask(11), ask(12)];
  assert.deepEqual(session.session.cancel(11).events.map(({ tag, val }) => [tag, val.id]), [['failed', 11]]);
  // The source goes on with it, and answers nobody.
  const heard = (command) => session.session.receive(...session.source.take(command)).events.map(({ tag }) => tag);
  assert.deepEqual(heard(leaving), []);
  assert.deepEqual(heard(staying), ['columns', 'batch', 'done']);
});
