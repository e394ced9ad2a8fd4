// A connector for an API that lists things page by page: a statement is a path (`/items`), and its parameters become the query's `q`.
import { SoukError, classified, defineConnector, json, ledTo, micros, request } from './souk.js';

// What a connection is configured with. A host passes on what is named here, and nothing else; a secret has "writeOnly": true.
const SETTINGS = {
  type: 'object',
  required: ['api_key'],
  properties: { api_key: { type: 'string', minLength: 1, writeOnly: true, title: 'API key' } },
};

const get = (session, path) => request('GET', path, { authorization: `Bearer ${session.key}` });

export const connector = defineConnector({
  describe: () => ({
    name: 'my-connector',
    version: '0.1.0',
    engines: [{ slug: 'my-connector', title: 'MyConnector', dialect: 'opaque', credentialTypes: ['API_KEY'] }],
    need: 'http',
    settingsSchema: JSON.stringify(SETTINGS),
    abilities: ['pipelining', 'cancel'],
  }),

  // They have the types that the schema says.
  open: (settings) => ({ key: settings.api_key }),

  *query(session, query, rows) {
    if (!query.text.startsWith('/')) throw new SoukError('invalid-request', 'no_path', 'a statement is a path, as in /items');
    let path = query.text;
    query.parameters.forEach(({ tag, val }, at) => {
      // The caller has left it out.
      if (tag === 'null') return;
      if (tag !== 'text') throw new SoukError('invalid-request', 'no_text', 'must be a text', { parameter: at });
      path += `${path.includes('?') ? '&' : '?'}q=${encodeURIComponent(val)}`;
    });
    rows.columns([['id', 'int64', 'integer'], ['name', 'text', 'string'], ['price', 'decimal', 'decimal'], ['at', 'timestamp', 'date-time']]);
    while (path) {
      const page = json(classified(yield get(session, path)));
      if (!Array.isArray(page?.items)) throw new SoukError('source', 'bad_json', "the source's answer is not the JSON that was expected");
      for (const { id, name, price, at } of page.items) rows.push([id, name, price, at && micros(at)]);
      path = page.next && ledTo(page.next);
    }
  },

  *ping(session, limits, rows) {
    classified(yield get(session, '/items'));
    rows.alive();
  },
});
