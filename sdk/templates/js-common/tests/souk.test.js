// Native tests of what souk.js does for every connector.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SoukError, classified, defineConnector, json, ledTo, pause, request } from '../souk.js';
import { Origin, Refused, Session, Wire, refused } from './scripted.js';

const made = (app, need = 'http', schema = {}) =>
  defineConnector({ describe: () => ({ need, settingsSchema: JSON.stringify(schema) }), open: () => undefined, ...app });

test('values arrive in their columns', () => {
  const kinds = ['int64', 'float64', 'decimal', 'boolean', 'text', 'date', 'timestamp', 'bytes'];
  const row = [7, 0.5, '1.50', true, 'é', 3, 9n, [104, 105]];
  const connector = made({
    query(session, query, rows) {
      rows.columns(kinds.map((kind) => [kind, kind]));
      rows.push(row);
      rows.push(row.map(() => null));
    },
  });
  const rows = new Session(connector, {}, new Origin({})).query('');
  assert.deepEqual(rows, [[7n, 0.5, '1.50', true, 'é', 3, 9n, 'hi'], row.map(() => null)]);
});

test('a value of another kind is the fault of the source', () => {
  for (const [kind, value] of [['int64', 'seven'], ['decimal', '1,50'], ['decimal', '1.5x'], ['decimal', {}]]) {
    const connector = made({
      query(session, query, rows) {
        rows.columns([['value', kind]]);
        rows.push([value]);
      },
    });
    assert.throws(() => new Session(connector, {}, new Origin({})).query(''), refused('source'), `${kind} ${value}`);
  }
});

test('a source leads below its own address', () => {
  for (const path of ['/', '/items?page=2', '/.well-known/b..c?d=/../e', '/a%20b']) assert.equal(ledTo(path), path);
  const elsewhere = ['', 'items', 'https://elsewhere/', '/..', '/a/./b', '/%2E%2e/b', '/a/..%2fb', '/..;a/b'];
  const unsent = ['/a b', '/a\nb', '/a\x7f', '/a#b', '/a\\b', '/a<b', '/a'.repeat(8 << 10), '/' + 'ä'.repeat(4 << 10), 7, null];
  for (const path of [...elsewhere, ...unsent]) {
    assert.throws(() => ledTo(path), ({ error }) => error.class === 'source' && error.code === 'bad_path', String(path));
  }
});

test('requests and pauses are answered', () => {
  const connector = made({
    *query(session, query, rows) {
      yield pause(5);
      const { name } = json(classified(yield request('GET', '/name')));
      rows.columns([['name', 'text']]);
      rows.push([name]);
    },
  });
  const session = (...answer) => new Session(connector, {}, new Origin({ '/name': answer }));
  assert.deepEqual(session(200, '{"name": "pear"}').query(''), [['pear']]);
  assert.throws(() => session(200, 'pear').query(''), refused('source'));
  assert.throws(() => session(429, '', { 'retry-after': '3' }).query(''), ({ kind, error }) => kind === 'rate-limited' && error.retryAfterMs === 3_000n);
});

test('what would wait is told what to do instead', () => {
  const query = [
    async (session, query, rows) => rows.columns([['name', 'text']]),
    async function* (session, query, rows) {
      rows.columns([['name', 'text']]);
    },
  ];
  for (const waits of query) {
    const session = new Session(made({ query: waits }), {}, new Origin({}));
    assert.throws(() => session.query(''), ({ kind, error }) => kind === 'internal' && error.code === 'async');
  }
  const early = made({ query: (session, query, rows) => rows.push([1]) });
  assert.throws(() => new Session(early, {}, new Origin({})).query(''), ({ error }) => error.code === 'row_length');
});

test('settings are as the schema says', () => {
  const schema = { required: ['key'], properties: { key: { type: 'string' }, mode: { type: 'string', enum: ['a', 'b'] } } };
  const open = (settings) => new Session(made({}, 'http', schema), settings, new Origin({}));
  open({ key: 'x', mode: 'a' });
  for (const settings of [{}, { key: 7 }, { key: null }, { key: 'x', mode: 'c' }]) assert.throws(() => open(settings), refused('configuration'));
});

test('limits are kept, and what is not written is unsupported', () => {
  const connector = made({
    query(session, query, rows) {
      rows.columns([['at', 'int64']]);
      for (let at = 0; at < 3; at += 1) rows.push([at]);
    },
  });
  const session = new Session(connector, {}, new Origin({}));
  assert.equal(session.query('', [], { rowsMax: 3 }).length, 3);
  assert.throws(() => session.query('', [], { rowsMax: 2 }), refused('limit-exceeded'));
  assert.throws(() => session.ping(), refused('unsupported'));
});

test('what fails amid an exchange ends a session on a wire, and no other', () => {
  const app = { *query() { throw new TypeError('a mistake'); } };
  const query = (need) => {
    const { session } = new Session(made(app, need), {}, new Wire());
    return () => session.submit(1, { tag: 'query', val: { limits: {} } }, 0n);
  };
  assert.throws(query('tcp'), ({ class: kind, detail }) => kind === 'internal' && detail.includes('a mistake'));
  assert.equal(query('http')().events[0].tag, 'failed');
});

test('a wire is read in any pieces, and its end is told', () => {
  const connector = made({
    *open(settings, wire) {
      wire.write('hello');
      const line = new TextDecoder().decode(yield* wire.line());
      return { wire, said: [line, (yield* wire.readExact(3)).length] };
    },
    *query({ wire, said }, query, rows) {
      rows.columns([['line', 'text'], ['bytes', 'int64']]);
      rows.push(said);
      if (query.text) yield* wire.line();
    },
  }, 'tcp');
  for (const pieces of [1, 2, 1_000]) {
    const session = new Session(connector, {}, new Wire([['hello', 'a\nline\r\nabc']], pieces));
    assert.deepEqual(session.query(''), [['a\nline', 3n]]);
    const step = session.session.submit(2, { tag: 'query', val: { text: 'more', limits: { rowsMax: 9, bytesMax: 99n } } }, 0n);
    assert.deepEqual(step, { commands: [], events: [] });
    assert.throws(() => session.session.receive({ tag: 'closed' }), { class: 'unavailable' });
  }
});

test('a request that is cancelled ends, and a wire with it', () => {
  const asked = (need, work) => {
    const { session } = new Session(made({ query: work }, need), {}, new Wire());
    session.submit(1, { tag: 'query', val: { limits: {} } }, 0n);
    return session;
  };
  const session = asked('http', function* () { yield pause(1); });
  assert.equal(session.cancel(1).events[0].tag, 'failed');
  assert.deepEqual(session.receive({ tag: 'woken', val: 1 }), { commands: [], events: [] });
  assert.throws(() => asked('tcp', function* () { yield pause(1); }).cancel(1), { class: 'timeout' });
});

test('what was given up is under way until the source answers it', () => {
  const connector = made({
    *query(session, query, rows) {
      rows.columns([['status', 'int64']]);
      rows.push([(yield request('GET', '/slow')).status]);
    },
  });
  const { session } = new Session(connector, {}, new Origin({}));
  const ask = (id) => session.submit(id, { tag: 'query', val: { limits: { rowsMax: 9, bytesMax: 99n } } }, 0n);
  const givenUp = [];
  for (let id = 1; id <= 128; id += 1) {
    givenUp.push(ask(id).commands[0].val.id);
    assert.equal(session.cancel(id).events[0].val.error.code, 'cancelled');
  }
  // One more would be refused by the host: it is not asked for.
  const { commands, events } = ask(129);
  assert.deepEqual(commands, []);
  assert.deepEqual(events.map(({ tag, val }) => [tag, val.id, val.error.class]), [['failed', 129, 'unavailable']]);
  // As one is answered, or fails, another one may be asked.
  const response = (id) => session.receive({ tag: 'response', val: { id, status: 200, headers: [], body: new Uint8Array() } });
  assert.deepEqual(response(givenUp[0]), { commands: [], events: [] });
  const [{ val: http }] = ask(130).commands;
  assert.deepEqual(ask(131).commands, []);
  session.receive({ tag: 'request-failed', val: { id: givenUp[1], fault: 'timeout', message: '' } });
  assert.equal(ask(132).commands.length, 1);
  assert.equal(response(http.id).events.at(-1).val, 130);
});

test('errors are those of the contract', () => {
  const error = new Refused(new SoukError('source', 'code', 'message', { detail: 'why' }).error);
  assert.match(error.message, /why/);
});
