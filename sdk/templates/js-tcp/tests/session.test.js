// Native tests: a session on a server of which is said what it expects and sends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connector } from '../app.js';
import { Session, Wire, refused, texts } from './scripted.js';

const PLAIN = { ssl_mode: 'disable' };
const open = (...exchanges) => new Session(connector, PLAIN, new Wire(exchanges));

test('a reply arrives byte by byte', () => {
  const wire = new Wire([['*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$2\r\né\r\n', '*2\r\n$5\r\nhello\r\n$-1\r\n']], 1);
  assert.deepEqual(new Session(connector, PLAIN, wire).query('MGET a ?', texts('é')), [['hello'], [null]]);
});

test('nothing that writes is sent', () => {
  const session = open();
  for (const statement of ['SET a b', '', 'flushall']) assert.throws(() => session.query(statement), refused('unsupported'));
});

test('a value that is not bound is the fault of who asks', () => {
  assert.throws(() => open().query('GET ?'), refused('invalid-request'));
  assert.throws(() => open().query('GET ?', [{ tag: 'boolean', val: true }]), ({ error }) => error.parameter === 0);
});

test("a wrong password is the credentials' fault", () => {
  const wire = new Wire([['*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n', '-WRONGPASS invalid password\r\n']]);
  assert.throws(() => new Session(connector, { password: 'wrong', ...PLAIN }, wire), refused('authentication'));
});

test('TLS comes first', () => {
  const wire = new Wire([['*1\r\n$4\r\nPING\r\n', '+PONG\r\n']]);
  assert.deepEqual(new Session(connector, { ssl_mode: 'require' }, wire).ping(), [[null, null]]);
});

test('nonsense ends the session', () => {
  const get = '*2\r\n$3\r\nGET\r\n$1\r\na\r\n';
  for (const answer of ['!what\r\n', '$1000000000000\r\n', '$x\r\n', '$2\r\nabcd', '\r\n', Uint8Array.of(0x2b, 0xff, 0x0d, 0x0a)]) {
    assert.throws(() => open([get, answer]).query('GET a'), refused('source'));
  }
});
