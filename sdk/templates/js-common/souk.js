// The contract (wit/v1/connector.wit) for JavaScript: a connector is a state machine that never waits, so what would be `await` is `yield`.
// What asks the source is a generator. It yields what `request()` or `pause()` makes and is resumed with the response, whose body it reads with
// `json()` or `text()`; on a wire it reads with `yield* wire.line()`.

/** An error of the contract. `kind` is one of its classes: 'invalid-request', 'not-found', 'source', 'rate-limited', … */
export class SoukError extends Error {
  constructor(kind, code, message, more = {}) {
    super(message);
    const { detail, sourceCode, retryAfterMs, parameter } = more;
    this.error = { class: kind, code, message, detail, sourceCode, retryAfterMs, parameter };
  }
}

/** One that ends a tcp session: nobody knows any more what the next byte on the wire belongs to. */
export class Broken extends SoukError {}

export const unsupported = (what) => new SoukError('unsupported', 'unsupported', `this connector does not support ${what}`);

// HTTP

/** A request to the connection's origin; `yield` it. */
export function request(method, path, headers = {}, body = '') {
  return {
    method,
    path,
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
    body: new TextEncoder().encode(body),
    timeoutMs: 30_000,
    // It is read within one call, which may compute for 250 ms, and 250 ms more for each MiB: an engine that interprets needs them for this.
    responseBytesMax: 1n << 20n,
  };
}

/**
 * A path that the source has led to, if a host sends requests to it: below the base URL, and encoded. Any other path a host takes for the connector's own
 * mistake, which ends the session; here it is the source's.
 */
export function ledTo(path) {
  const isPath = typeof path === 'string' && new TextEncoder().encode(path).length <= 8 << 10 && /^\/[^\0- \x7f\\#<>`"]*$/.test(path);
  const plain = isPath ? path.split('?')[0].toLowerCase().replaceAll('%2e', '.').replaceAll('%2f', '/').replaceAll('%5c', '/') : '..';
  if (!plain.split('/').some((part) => ['.', '..'].includes(part.split(';')[0]))) return path;
  throw new SoukError('source', 'bad_path', 'the source leads on to what is no path below its address', { detail: String(path).slice(0, 500) });
}

/** A pause of so many milliseconds; `yield` it. It ends with the request's deadline at the latest. */
export const pause = (ms) => ({ pause: ms });

// One byte after the other is what an interpreter has no time for. (The engine's own are of another realm, and no `instanceof` knows them.)
const bytes = (body) => (ArrayBuffer.isView(body) ? body : Uint8Array.from(body));
const text = (response) => new TextDecoder().decode(bytes(response.body));

const header = (response, name) =>
  response.headers.find((found) => found.name.toLowerCase() === name)?.value;

const CLASSES = {
  400: ['invalid-request', 'refused', 'the source refused the request'],
  401: ['authentication', 'credentials_refused', 'the source refused the credentials'],
  403: ['permission', 'forbidden', 'the source does not allow this request'],
  404: ['not-found', 'not_found', 'the source does not have what was asked for'],
  422: ['invalid-request', 'refused', 'the source refused the request'],
  429: ['rate-limited', 'rate_limited', 'the source has had too many requests'],
  502: ['unavailable', 'unavailable', 'the source is not available'],
  503: ['unavailable', 'unavailable', 'the source is not available'],
  504: ['timeout', 'source_timeout', 'the source did not answer in time'],
};

/** The response, if its status is 2xx; else whose fault that is. */
export function classified(response) {
  if (response.status >= 200 && response.status < 300) return response;
  const [kind, code, message] = CLASSES[response.status] ?? ['source', 'bad_status', 'the source answered with an error'];
  const seconds = Number(header(response, 'retry-after'));
  throw new SoukError(kind, code, message, {
    sourceCode: String(response.status),
    detail: text({ body: response.body.slice(0, 2_000) }).slice(0, 500) || undefined,
    retryAfterMs: Number.isInteger(seconds) && seconds > 0 ? BigInt(seconds * 1000) : undefined,
  });
}

/** The body as JSON. Numbers become floats: where digits matter, ask the API for texts and answer `decimal`. */
export function json(response) {
  try {
    return JSON.parse(text(response));
  } catch (error) {
    throw new SoukError('source', 'bad_json', "the source's answer is not the JSON that was expected", { detail: String(error) });
  }
}

const FAULTS = {
  refused: ['unavailable', 'connection_refused', 'the source refused the connection'],
  unreachable: ['unavailable', 'unreachable', 'the source cannot be reached'],
  'egress-refused': ['configuration', 'egress_refused', 'the operator does not allow connections to this address'],
  tls: ['configuration', 'tls_failed', 'the source could not prove its identity over TLS'],
  timeout: ['timeout', 'source_timeout', 'the source did not answer in time'],
  reset: ['unavailable', 'connection_lost', 'the source broke the connection'],
  'bad-response': ['source', 'bad_response', "the source's answer is not valid HTTP or is too long"],
};

// So many requests a host lets a session have under way, with those that were given up and that the source has not answered yet. One more is not
// asked for: the host would fail it, too, where some were given up, and blame the connector where none was.
const UNDER_WAY_MAX = 128;

const failed = ({ fault, message }) => {
  const [kind, code, told] = FAULTS[fault];
  return new SoukError(kind, code, told, { detail: message });
};

const unanswered = () =>
  failed({ fault: 'unreachable', message: `the source has not answered ${UNDER_WAY_MAX} requests, those that were given up among them` });

// TCP

const READ = Symbol('read');
const TLS = Symbol('tls');
// Bytes that have arrived and were not read.
const UNREAD_MAX = 16 << 20;
const LINE_BYTES_MAX = 64 << 10;

/** A tcp session's one wire. Writes never wait: they leave with the step. All that reads is a generator: `yield*` it. */
class Wire {
  constructor(commands) {
    this.commands = commands;
    this.buffer = new Uint8Array(4 << 10);
    this.begin = this.end = 0; // what has not been read of it
    this.isClosed = false;
  }

  /** A text or bytes. */
  write(data) {
    this.commands.push({ tag: 'send', val: typeof data === 'string' ? new TextEncoder().encode(data) : data });
  }

  /** A line's bytes without its end, CR and LF. */
  *line() {
    for (let from = 0; ; ) {
      const at = this.buffer.subarray(this.begin, this.end).indexOf(0x0a, from);
      if (at > 0 && this.buffer[this.begin + at - 1] === 0x0d) return this.take(at + 1).subarray(0, -2);
      from = at < 0 ? this.end - this.begin : at + 1;
      if (from > LINE_BYTES_MAX) throw new Broken('source', 'long_line', "the source's line has no end");
      if (at < 0) yield* this.more(from + 1);
    }
  }

  *readExact(count) {
    yield* this.more(count);
    return this.take(count);
  }

  /** Turns the wire into TLS. What was written before leaves first, in plain text. */
  *startTls() {
    // It would be read as if TLS had protected it.
    if (this.end > this.begin) throw new Broken('source', 'unexpected_bytes', 'the source sent data before the TLS handshake');
    this.commands.push({ tag: 'start-tls', val: { records: 'bare', protocols: [] } });
    yield TLS;
  }

  *more(count) {
    while (this.end - this.begin < count) {
      if (this.isClosed) throw lost();
      yield READ;
    }
  }

  take(count) {
    this.begin += count;
    return this.buffer.slice(this.begin - count, this.begin);
  }

  arrived(data) {
    const unread = this.end - this.begin + data.length;
    if (unread > UNREAD_MAX) throw new Broken('source', 'unread_bytes', 'the source sent more than was asked for');
    if (this.end + data.length > this.buffer.length) {
      const buffer = unread * 2 > this.buffer.length ? new Uint8Array(unread * 2) : this.buffer;
      buffer.set(this.buffer.subarray(this.begin, this.end));
      [this.buffer, this.begin, this.end] = [buffer, 0, this.end - this.begin];
    }
    this.buffer.set(data, this.end);
    this.end += data.length;
  }
}

const lost = () => new Broken('unavailable', 'connection_lost', 'the source closed the connection');

// Answers

// Days and microseconds since 1970-01-01.
export const day = (text) => moment(text, Date.parse(`${text}T00:00:00Z`) / 86_400_000);
export const micros = (text) => BigInt(moment(text, Date.parse(text))) * 1000n;
const moment = (text, number) => {
  if (Number.isInteger(number)) return number;
  throw new SoukError('source', 'no_moment', 'the source sent something else than a time', { detail: String(text) });
};

/** One answer: columns once, then rows. */
class Rows {
  constructor(limits, now) {
    this.limits = limits;
    this.now = now; // the time of day when this was asked, in seconds since 1970
    this.rows = [];
    this.bytes = 0;
  }

  /** `[['id', 'int64', 'integer'], …]`: name, type of the contract, the source's own word for it. */
  columns(columns) {
    this.shape = columns.map(([name, kind, native = '']) => ({ name, kind, nullable: true, native }));
  }

  /** One value a column; `null` is NULL. */
  push(values) {
    if (values.length !== this.shape?.length) throw new SoukError('internal', 'row_length', 'a row has as many values as there are columns');
    if (this.rows.length === this.limits.rowsMax) {
      throw new Broken('limit-exceeded', 'rows_limit', `the result has more than ${this.limits.rowsMax} rows`);
    }
    for (const value of values) this.bytes += value?.length ?? 8;
    if (this.bytes > Number(this.limits.bytesMax)) {
      throw new Broken('limit-exceeded', 'bytes_limit', `the result has more than ${this.limits.bytesMax} bytes`);
    }
    this.rows.push(values);
  }

  /** Answers a ping: the source answered, and it is not known whether these credentials may write. */
  alive() {
    this.columns([['server_version', 'text'], ['read_only', 'boolean']]);
    this.push([null, null]);
  }

  batch() {
    return { rows: this.rows.length, chunks: this.shape.map((column, at) => chunk(column, this.rows.map((row) => row[at]))) };
  }
}

const bits = (flags) => {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  flags.forEach((flag, at) => { if (flag) bytes[at >> 3] |= 1 << (at & 7); });
  return bytes;
};

// A host reads no others.
const NUMBER = /^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity)$/;
const digits = (value) => {
  const text = String(value);
  if (NUMBER.test(text)) return text;
  throw new RangeError(`${text} is no number`);
};

// Arrow's physical layout, as the contract wants it.
function chunk({ name, kind }, values) {
  const isNull = values.map((value) => value === null || value === undefined);
  const filled = (zero, make) => values.map((value, at) => (isNull[at] ? zero : make(value)));
  const validity = isNull.includes(true) ? bits(isNull.map((is) => !is)) : undefined;
  const data = () => {
    switch (kind) {
      case 'boolean': return { tag: 'bits', val: bits(filled(false, Boolean)) };
      case 'date': return { tag: 'i32s', val: Int32Array.from(filled(0, Number)) };
      case 'int64': case 'time': case 'timestamp': case 'local-timestamp': return { tag: 'i64s', val: BigInt64Array.from(filled(0n, BigInt)) };
      case 'float64': return { tag: 'f64s', val: Float64Array.from(filled(0, Number)) };
      case 'bytes': return { tag: 'var-len', val: varLen(filled([], (value) => Uint8Array.from(value))) };
      default: return { tag: 'var-len', val: varLen(filled('', kind === 'decimal' ? digits : String).map((text) => new TextEncoder().encode(text))) };
    }
  };
  try {
    return { validity, data: data() };
  } catch (error) {
    throw new SoukError('source', 'bad_value', 'the source sent a value that does not fit its column', { detail: `${name}, ${kind}: ${error.message}` });
  }
}

function varLen(pieces) {
  const offsets = new Int32Array(pieces.length + 1);
  pieces.forEach((piece, at) => { offsets[at + 1] = offsets[at] + piece.length; });
  const bytes = new Uint8Array(offsets[pieces.length]);
  pieces.forEach((piece, at) => bytes.set(piece, offsets[at]));
  return { offsets, bytes };
}

// The connector

const TYPES = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: Number.isInteger,
  number: (value) => typeof value === 'number',
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  null: (value) => value === null,
};

/** The first setting that is not as the schema says, by its presence, type or enum. (A host holds settings against all of it when they are saved.) */
function misfit(settings, { required = [], properties = {} }) {
  const missing = required.find((name) => settings[name] === undefined);
  if (missing) return `${missing} is missing`;
  const fits = ([name, value]) => {
    const { type = [], enum: words = [value] } = properties[name] ?? {};
    const types = [type].flat();
    return (types.length === 0 || types.some((type) => TYPES[type](value))) && words.includes(value);
  };
  const wrong = Object.entries(settings).find((setting) => !fits(setting));
  return wrong && `${wrong[0]} is not as the schema says`;
}

// Nobody waits for a promise here.
const waits = () => new SoukError('internal', 'async', 'what asks the source is a generator that yields: no async, and no await');

/** What an error is to the contract. */
function reported(error) {
  if (error instanceof SoukError) return error.error;
  return { class: 'internal', code: 'exception', message: 'the connector failed', detail: `${error}\n${error?.stack ?? ''}` };
}

/**
 * What `app.js` exports: `describe()`, `open(settings, wire)`, which gives what a session needs, and `query(session, query, rows)`,
 * `ping(session, limits, rows)`, `schema`, `call`, `errand` as the contract has them. All but `describe` may be generators. Only a tcp connector has a wire.
 */
export function defineConnector(app) {
  const { need, settingsSchema } = app.describe();
  const schema = JSON.parse(settingsSchema);

  class Session {
    static open(settings) {
      const session = new Session();
      session.settings = JSON.parse(settings.json);
      const detail = misfit(session.settings, schema);
      if (detail) throw reported(new SoukError('configuration', 'invalid_settings', "the connection's settings do not fit this connector", { detail }));
      return session;
    }

    constructor() {
      this.commands = [];
      this.events = [];
      this.waiting = new Map(); // tasks, by the number of a request or a pause, or READ or TLS
      this.last = 0;
      // HTTP requests that the source has not answered yet: also those that nobody waits for any more, since it goes on with what was given up.
      this.underWay = 0;
      this.shapes = 0;
      this.wire = new Wire(this.commands);
    }

    start() {
      const opened = (state) => {
        this.state = state;
        return [{ tag: 'ready' }];
      };
      return this.begin(undefined, () => app.open(this.settings, this.wire), opened);
    }

    submit(id, { tag, val }, now) {
      const rows = new Rows(tag === 'ping' ? val : val.limits, Number(now));
      const answered = () => [...(tag === 'errand' ? [] : this.answer(id, rows)), { tag: 'done', val: id }];
      const serve = () => {
        if (!app[tag]) throw unsupported(tag);
        return app[tag](this.state, val, rows);
      };
      return this.begin(id, serve, answered);
    }

    receive({ tag, val }) {
      switch (tag) {
        case 'bytes':
          try {
            this.wire.arrived(bytes(val));
          } catch (error) {
            throw reported(error);
          }
          return this.resume(READ);
        case 'tls-established': return this.resume(TLS);
        case 'closed':
          this.wire.isClosed = true;
          return this.resume(this.waiting.has(READ) ? READ : TLS, (work) => work.throw(lost()));
        case 'woken': return this.resume(val);
        case 'response':
          this.underWay -= 1;
          return this.resume(val.id, (work) => work.next(val));
        case 'request-failed':
          this.underWay -= 1;
          return this.resume(val.id, (work) => work.throw(failed(val)));
        default: return this.step();
      }
    }

    cancel(id) {
      const cancelled = new SoukError('timeout', 'cancelled', 'the request was cancelled').error;
      for (const [number, task] of this.waiting) {
        if (task.id !== id) continue;
        // Half an exchange is on the wire, whatever the task waits for: the session cannot go on.
        if (need === 'tcp') throw cancelled;
        this.waiting.delete(number);
        this.events.push({ tag: 'failed', val: { id, error: cancelled } });
      }
      return this.step();
    }

    // A task: which request it is (that of opening has no id), its generator, and the events that it ends with.
    begin(id, serve, ended) {
      function* work() {
        const found = serve();
        if (found?.[Symbol.asyncIterator] || typeof found?.then === 'function') throw waits();
        return typeof found?.next === 'function' ? yield* found : found;
      }
      return this.run({ id, work: work(), ended }, (work) => work.next());
    }

    // Nobody waits for what comes after a request was cancelled.
    resume(number, step = (work) => work.next()) {
      const task = this.waiting.get(number);
      this.waiting.delete(number);
      return task ? this.run(task, step) : this.step();
    }

    run(task, step) {
      try {
        let { done, value } = step(task.work);
        while (!done && value?.method !== undefined && this.underWay >= UNDER_WAY_MAX) ({ done, value } = task.work.throw(unanswered()));
        if (done) this.events.push(...task.ended(value));
        else this.wait(task, value);
      } catch (error) {
        const isLost = need === 'tcp' && (error instanceof Broken || !(error instanceof SoukError));
        if (task.id === undefined || isLost) throw reported(error);
        this.events.push({ tag: 'failed', val: { id: task.id, error: reported(error) } });
      }
      return this.step();
    }

    wait(task, wanted) {
      if (wanted === READ || wanted === TLS) {
        this.waiting.set(wanted, task);
        return;
      }
      const isPause = wanted?.pause !== undefined;
      if (!isPause && wanted?.method === undefined) throw new TypeError('yield what request() and pause() make; a wire is read with yield*');
      this.last = (this.last % 0xffff_ffff) + 1;
      this.waiting.set(this.last, task);
      if (!isPause) this.underWay += 1;
      this.commands.push(isPause
        ? { tag: 'wake', val: { id: this.last, ms: wanted.pause } }
        : { tag: 'request', val: { ...wanted, id: this.last } });
    }

    answer(id, rows) {
      if (!rows.shape) throw new SoukError('internal', 'no_columns', 'the connector did not describe its result');
      const batches = rows.rows.length > 0 ? [{ tag: 'batch', val: { id, batch: rows.batch() } }] : [];
      this.shapes = (this.shapes + 1) % 64;
      return [{ tag: 'columns', val: { id, shape: this.shapes, columns: rows.shape } }, ...batches];
    }

    step() {
      return { commands: this.commands.splice(0), events: this.events.splice(0) };
    }
  }
  return { describe: app.describe, Session };
}
