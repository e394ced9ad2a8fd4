// A connector for servers that speak RESP, as Redis does: a statement is one command that reads (`GET greeting`), a parameter `?` in it.
import { Broken, SoukError, defineConnector, unsupported } from './souk.js';

// Whatever a statement says, it must not change the source: what is not known to read is not sent.
const COMMANDS = ['GET', 'MGET', 'STRLEN', 'LRANGE', 'SMEMBERS', 'HGETALL', 'ZRANGE', 'TYPE'];
// What a server says is not believed without bounds; a session has 64 MiB.
const TEXT_BYTES_MAX = 4 << 20;
const ITEMS_MAX = 100_000;

// What a connection is configured with. A host passes on what is named here, and nothing else; a secret has "writeOnly": true.
const SETTINGS = {
  type: 'object',
  properties: {
    password: { type: 'string', writeOnly: true, title: 'Password' },
    ssl_mode: { type: 'string', enum: ['disable', 'require', 'verify-ca', 'verify-full'], default: 'require', title: 'TLS' },
  },
};

export const connector = defineConnector({
  describe: () => ({
    name: 'my-connector',
    version: '0.1.0',
    engines: [{ slug: 'my-connector', title: 'MyConnector', dialect: 'opaque', credentialTypes: ['PASSWORD', 'NONE'] }],
    need: 'tcp',
    settingsSchema: JSON.stringify(SETTINGS),
    abilities: [],
  }),

  // The wire stands already.
  *open({ password, ssl_mode: tls = 'disable' }, wire) {
    if (tls !== 'disable') yield* wire.startTls();
    if (password === undefined) return wire;
    try {
      yield* ask(wire, ['AUTH', password]);
    } catch (error) {
      if (error.error?.code !== 'refused') throw error;
      throw new SoukError('authentication', 'password_rejected', 'the source refused the password', { detail: error.error.detail });
    }
    return wire;
  },

  *query(wire, query, rows) {
    const values = yield* ask(wire, words(query));
    rows.columns([['value', 'text', 'string']]);
    for (const value of values) rows.push([value]);
  },

  *ping(wire, limits, rows) {
    yield* ask(wire, ['PING']);
    rows.alive();
  },
});

/** Sends a command and reads its reply: a list of values, also of one. */
function* ask(wire, words) {
  const bytes = (word) => new TextEncoder().encode(word).length;
  wire.write(`*${words.length}\r\n${words.map((word) => `$${bytes(word)}\r\n${word}\r\n`).join('')}`);
  const head = text(yield* wire.line());
  if (!head.startsWith('*')) return [yield* value(wire, head)];
  const values = [];
  for (let left = size(head, ITEMS_MAX) ?? 0; left > 0; left -= 1) {
    const head = text(yield* wire.line());
    if (head.startsWith('-')) throw new Broken('source', 'refused', 'the source refused the command', { detail: head.slice(1) });
    values.push(yield* value(wire, head));
  }
  return values;
}

function* value(wire, head) {
  const rest = head.slice(1);
  switch (head[0]) {
    case '+': case ':': return rest;
    case '-': throw new SoukError('source', 'refused', 'the source refused the command', { detail: rest });
    case '$': break;
    default: throw new Broken('source', 'bad_reply', 'the source does not speak RESP');
  }
  const length = size(head, TEXT_BYTES_MAX);
  if (length === null) return null;
  const data = yield* wire.readExact(length + 2);
  if (data[length] !== 0x0d || data[length + 1] !== 0x0a) throw new Broken('source', 'bad_reply', 'the source does not speak RESP');
  return text(data.subarray(0, length));
}

/** The command's words, `?` replaced by what is bound: a value is one word, whatever it holds. */
function words(query) {
  let next = 0;
  const found = query.text.split(/\s+/).filter((word) => word).map((word) => {
    if (word !== '?') return word;
    const at = next++;
    const bound = query.parameters[at];
    if (!bound) throw new SoukError('invalid-request', 'bad_value', 'the statement has more ? than parameters');
    if (bound.tag !== 'text' && bound.tag !== 'int64') throw new SoukError('invalid-request', 'bad_value', 'must be a text or an integer', { parameter: at });
    return String(bound.val);
  });
  if (!COMMANDS.includes(found[0]?.toUpperCase())) throw unsupported('commands that do not read');
  return found;
}

/** An answer is a text. Where it is none, the rest of the reply would be taken for the next one's. */
function text(data) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
  } catch (error) {
    throw new Broken('source', 'no_text', 'the value is no UTF-8', { detail: String(error) });
  }
}

/** A length; null is the protocol's -1, which is NULL. */
function size(head, most) {
  const digits = head.slice(1);
  if (digits === '-1') return null;
  if (!/^[0-9]{1,9}$/.test(digits) || Number(digits) > most) throw new Broken('source', 'bad_length', 'the source announced a length that cannot be');
  return Number(digits);
}
