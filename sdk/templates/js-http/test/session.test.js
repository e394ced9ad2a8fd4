// Native tests: the state machine by hand, on an API of which is said what it answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connector } from '../app.js';

const LIMITS = { rowsMax: 10, bytesMax: 1000n, timeoutMs: 500 };

function ask(session, text, answers) {
  let step = session.submit(1, { tag: 'query', val: { text, parameters: [], limits: LIMITS } }, 1_767_225_600n);
  while (step.commands.length > 0) {
    const { id, path } = step.commands[0].val;
    const [status, body] = answers[path] ?? [404, ''];
    step = session.receive({ tag: 'response', val: { id, status, headers: [], body: new TextEncoder().encode(body) } });
  }
  return step.events;
}

test('pages follow each other', () => {
  const session = connector.Session.open({ engine: 'x', json: '{"api_key": "secret"}' });
  const events = ask(session, '/items', {
    '/items': [200, '{"items": [{"id": 1, "name": "pear", "price": "1.50", "at": null}], "next": "/more"}'],
    '/more': [200, '{"items": [{"id": 2, "name": "fig", "price": null, "at": "1970-01-01T00:00:01Z"}], "next": null}'],
  });
  assert.deepEqual(events.map((event) => event.tag), ['columns', 'batch', 'done']);
  const { chunks } = events[1].val.batch;
  assert.deepEqual([...chunks[0].data.val], [1n, 2n]);
  assert.deepEqual([...chunks[2].validity], [1]);
  assert.deepEqual([...chunks[3].data.val], [0n, 1_000_000n]);
});

test('refusals have classes', () => {
  const session = connector.Session.open({ engine: 'x', json: '{"api_key": "secret"}' });
  const [event] = ask(session, '/items', { '/items': [401, 'no'] });
  assert.equal(event.val.error.class, 'authentication');
});
