// The contract (wit/v1/connector.wit) for JavaScript: a connector is a state machine that never waits, so what would be `await` is `yield`.
// A request is a generator: it yields what `request()` makes and is resumed with the response, whose body it reads with `json()` or `text()`.

/** An error of the contract. `kind` is one of its classes: 'invalid-request', 'not-found', 'source', 'rate-limited', … */
export class SoukError extends Error {
  constructor(kind, code, message, more = {}) {
    super(message);
    this.error = { class: kind, code, message, detail: more.detail, sourceCode: more.sourceCode, retryAfterMs: more.retryAfterMs };
  }
}

/** A request to the connection's origin; `yield` it. */
export function request(method, path, headers = {}, body = '') {
  return {
    method,
    path,
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
    body: new TextEncoder().encode(body),
    timeoutMs: 30_000,
    // It is read within one call, which may compute for 250 ms, and 250 ms more for each MiB: an engine that interprets needs them for this.
    responseBytesMax: 512n << 10n,
  };
}

/** A pause of so many milliseconds; `yield` it. It ends with the request's deadline at the latest. */
export const pause = (ms) => ({ pause: ms });

// One byte after the other is what an interpreter has no time for.
const bytes = (body) => (body instanceof Uint8Array ? body : Uint8Array.from(body));
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
    if (values.length !== this.shape.length) throw new SoukError('internal', 'row_length', 'a row has as many values as there are columns');
    if (this.rows.length === this.limits.rowsMax) {
      throw new SoukError('limit-exceeded', 'rows_limit', `the result has more than ${this.limits.rowsMax} rows`);
    }
    for (const value of values) this.bytes += typeof value === 'string' ? value.length : 8;
    if (this.bytes > Number(this.limits.bytesMax)) {
      throw new SoukError('limit-exceeded', 'bytes_limit', `the result has more than ${this.limits.bytesMax} bytes`);
    }
    this.rows.push(values);
  }

  batch() {
    return { rows: this.rows.length, chunks: this.shape.map((column, at) => chunk(column.kind, this.rows.map((row) => row[at]))) };
  }
}

const bits = (flags) => {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  flags.forEach((flag, at) => { if (flag) bytes[at >> 3] |= 1 << (at & 7); });
  return bytes;
};

// Arrow's physical layout, as the contract wants it.
function chunk(kind, values) {
  const isNull = values.map((value) => value === null || value === undefined);
  const filled = (zero, make) => values.map((value, at) => (isNull[at] ? zero : make(value)));
  const validity = isNull.includes(true) ? bits(isNull.map((is) => !is)) : undefined;
  const data = () => {
    switch (kind) {
      case 'boolean': return { tag: 'bits', val: bits(filled(false, Boolean)) };
      case 'date': return { tag: 'i32s', val: Int32Array.from(filled(0, Number)) };
      case 'int64': case 'time': case 'timestamp': case 'local-timestamp': return { tag: 'i64s', val: BigInt64Array.from(filled(0n, BigInt)) };
      case 'float64': return { tag: 'f64s', val: Float64Array.from(filled(0, Number)) };
      default: return { tag: 'var-len', val: varLen(filled('', String)) };
    }
  };
  return { validity, data: data() };
}

function varLen(texts) {
  const pieces = texts.map((piece) => new TextEncoder().encode(piece));
  const offsets = new Int32Array(pieces.length + 1);
  pieces.forEach((piece, at) => { offsets[at + 1] = offsets[at] + piece.length; });
  const bytes = new Uint8Array(offsets[pieces.length]);
  pieces.forEach((piece, at) => bytes.set(piece, offsets[at]));
  return { offsets, bytes };
}

const failed = (id, error) => {
  const known = error instanceof SoukError ? error.error : undefined;
  return { tag: 'failed', val: { id, error: known ?? { class: 'internal', code: 'exception', message: 'the connector failed', detail: String(error?.stack ?? error) } } };
};

/** What `app.js` exports: `describe()`, `open(settings)`, and `*query(session, query, rows)`, `*ping(session, limits, rows)`. */
export function defineConnector(app) {
  class Session {
    static open(settings) {
      const session = new Session();
      try {
        session.state = app.open(JSON.parse(settings.json));
      } catch (error) {
        throw failed(0, error).val.error;
      }
      session.waiting = new Map();
      session.last = 0;
      session.shapes = 0;
      return session;
    }

    start() {
      return { commands: [], events: [{ tag: 'ready' }] };
    }

    submit(id, asked, now) {
      const limits = asked.tag === 'ping' ? asked.val : asked.val.limits;
      const rows = new Rows(limits, Number(now));
      const serve = app[asked.tag];
      if (!serve) {
        const error = new SoukError('unsupported', 'unsupported', `this connector does not support ${asked.tag}`);
        return { commands: [], events: [failed(id, error)] };
      }
      return this.resume({ id, rows, work: serve(this.state, asked.val, rows) }, (work) => work.next());
    }

    receive(input) {
      const number = input.tag === 'woken' ? input.val : input.val?.id;
      const task = this.waiting.get(number);
      if (!task) return { commands: [], events: [] };
      this.waiting.delete(number);
      if (input.tag === 'woken') return this.resume(task, (work) => work.next());
      if (input.tag === 'response') return this.resume(task, (work) => work.next(input.val));
      const [kind, code, message] = FAULTS[input.val.fault];
      const error = new SoukError(kind, code, message, { detail: input.val.message });
      return this.resume(task, (work) => work.throw(error));
    }

    cancel(id) {
      for (const [request, task] of this.waiting) if (task.id === id) this.waiting.delete(request);
      const error = new SoukError('timeout', 'cancelled', 'the request was cancelled');
      return { commands: [], events: [failed(id, error)] };
    }

    resume(task, step) {
      try {
        const { done, value } = step(task.work);
        if (!done) {
          this.last += 1;
          this.waiting.set(this.last, task);
          const command = value.pause === undefined
            ? { tag: 'request', val: { ...value, id: this.last } }
            : { tag: 'wake', val: { id: this.last, ms: value.pause } };
          return { commands: [command], events: [] };
        }
        const { id, rows } = task;
        this.shapes = (this.shapes + 1) % 64;
        const events = [{ tag: 'columns', val: { id, shape: this.shapes, columns: rows.shape } }];
        if (rows.rows.length > 0) events.push({ tag: 'batch', val: { id, batch: rows.batch() } });
        return { commands: [], events: [...events, { tag: 'done', val: id }] };
      } catch (error) {
        return { commands: [], events: [failed(task.id, error)] };
      }
    }
  }
  return { describe: app.describe, Session };
}
