// A session for native tests, on a source of which is said beforehand what it answers.

const LIMITS = { rowsMax: 10_000, bytesMax: 16n << 20n, timeoutMs: 10_000 };
const NOW = 1_767_225_600n;

/** The error of the contract that a request, or the session, ended with. */
export class Refused extends Error {
  constructor(error) {
    super(`${error.class}: ${error.code}: ${error.message}: ${error.detail}`);
    this.error = error;
    this.kind = error.class;
  }
}

/** What `assert.throws` takes. */
export const refused = (kind) => ({ name: 'Error', kind });

/** Parameters that are texts. */
export const texts = (...values) => values.map((val) => ({ tag: 'text', val }));

/** An API: `{'/items': [200, '{"items": []}', {'retry-after': '3'}]}`, the headers if there are some. All else is 404. */
export class Origin {
  constructor(answers) {
    this.answers = answers;
    this.requests = [];
  }

  take({ tag, val }) {
    if (tag === 'wake') return [{ tag: 'woken', val: val.id }];
    if (tag !== 'request') throw new Error(`not expected: ${tag}`);
    this.requests.push(val);
    const [status, body, headers = {}] = this.answers[val.path] ?? [404, ''];
    const pairs = Object.entries(headers).map(([name, value]) => ({ name, value }));
    return [{ tag: 'response', val: { id: val.id, status, headers: pairs, body: new TextEncoder().encode(body) } }];
  }
}

/** A server: what it expects and what it says to that, `[expected, answer]`, in pieces of so many bytes. */
export class Wire {
  constructor(exchanges = [], pieces = 1 << 20) {
    this.exchanges = [...exchanges];
    this.pieces = pieces;
    this.sent = '';
  }

  take({ tag, val }) {
    if (tag === 'start-tls') return [{ tag: 'tls-established' }];
    this.sent += tag === 'send' ? new TextDecoder().decode(val) : tag;
    const [expected, answer] = this.exchanges[0] ?? [''];
    if (!expected.startsWith(this.sent)) throw new Error(`not expected: ${this.sent}`);
    if (expected !== this.sent) return [];
    this.exchanges.shift();
    this.sent = '';
    const bytes = typeof answer === 'string' ? new TextEncoder().encode(answer) : answer;
    const inputs = [];
    for (let at = 0; at < bytes.length; at += this.pieces) inputs.push({ tag: 'bytes', val: bytes.slice(at, at + this.pieces) });
    return inputs;
  }
}

/** A session of a connector. */
export class Session {
  constructor(connector, settings, source) {
    this.source = source;
    this.session = onItsWay(() => connector.Session.open({ engine: '', json: JSON.stringify(settings) }));
    const events = this.carryOut(() => this.session.start(NOW));
    if (events.map(({ tag }) => tag).join() !== 'ready') throw new Error('the session did not open');
  }

  /** The rows: texts, decimals and JSON as texts, whole numbers and times as BigInt. */
  query(text, parameters = [], limits = {}) {
    return this.ask({ tag: 'query', val: { text, parameters, limits: { ...LIMITS, ...limits } } });
  }

  ping() {
    return this.ask({ tag: 'ping', val: LIMITS });
  }

  ask(request) {
    const rows = [];
    const events = this.carryOut(() => this.session.submit(1, request, NOW));
    for (const { tag, val } of events) {
      if (tag === 'failed') throw new Refused(val.error);
      if (tag !== 'batch') continue;
      const columns = val.batch.chunks.map((chunk) => values(chunk, val.batch.rows));
      for (let at = 0; at < val.batch.rows; at += 1) rows.push(columns.map((column) => column[at]));
    }
    if (events.at(-1)?.tag !== 'done') throw new Error('the request did not end');
    return rows;
  }

  carryOut(call) {
    const events = [];
    for (const calls = [call]; calls.length > 0; ) {
      const step = onItsWay(calls.shift());
      events.push(...step.events);
      for (const command of step.commands) {
        for (const input of this.source.take(command)) calls.push(() => this.session.receive(input));
      }
    }
    return events;
  }
}

function onItsWay(call) {
  try {
    return call();
  } catch (error) {
    throw error.class ? new Refused(error) : error;
  }
}

/** What a chunk of a batch holds. */
export function values({ validity, data: { tag, val } }, rows) {
  const bit = (bytes, at) => ((bytes[at >> 3] >> (at & 7)) & 1) === 1;
  const value = (at) => {
    if (tag === 'bits') return bit(val, at);
    if (tag === 'var-len') return new TextDecoder('utf-8', { ignoreBOM: true }).decode(val.bytes.subarray(val.offsets[at], val.offsets[at + 1]));
    return val[at];
  };
  return Array.from({ length: rows }, (_, at) => (validity && !bit(validity, at) ? null : value(at)));
}
