// A connector for CSV files: a statement names columns (`name, city`, or `*`), and its parameters are pairs of a column and the value that a row must
// have there.
import { records } from './csv.js';
import { reading } from './files.js';
import { Broken, SoukError, defineConnector } from './souk.js';

// A host passes on what is named here, and nothing else: `database` is the name of the connection's file.
const SETTINGS = {
  type: 'object',
  required: ['database'],
  properties: {
    database: { type: 'string', minLength: 1, maxLength: 255, title: 'File', description: 'The name of a CSV file with a header.' },
  },
};

export const connector = defineConnector({
  describe: () => ({
    name: 'my-connector',
    version: '0.1.0',
    engines: [{ slug: 'my-connector', title: 'MyConnector', dialect: 'opaque', credentialTypes: ['NONE'] }],
    need: 'directory',
    settingsSchema: JSON.stringify(SETTINGS),
    abilities: [],
  }),

  open({ database }) {
    if (database.startsWith('.') || /[/\\\0]/.test(database)) {
      throw new SoukError('configuration', 'bad_name', "the file's name has no path in it");
    }
    reading(database, () => {});
    return { file: database };
  },

  query(session, query, rows) {
    reading(session.file, (pieces) => {
      const found = records(pieces);
      const headers = found.next().value;
      if (!headers) throw new Broken('source', 'bad_csv', 'the file has no header');
      const find = (name) => {
        if (!headers.includes(name)) throw new SoukError('not-found', 'no_column', 'the file has no such column', { detail: name });
        return headers.indexOf(name);
      };
      const statement = query.text.trim();
      const chosen = statement === '*' ? [...headers.keys()] : statement.split(',').map((name) => find(name.trim()));
      const filters = pairs(query.parameters).map(([name, value]) => [find(name), value]);
      rows.columns(chosen.map((at) => [headers[at], 'text', 'text']));
      for (const record of found) {
        if (filters.every(([at, value]) => record[at] === value)) rows.push(chosen.map((at) => record[at] || null));
      }
    });
  },

  ping(session, limits, rows) {
    reading(session.file, (pieces) => records(pieces).next());
    rows.alive();
  },
});

function pairs(parameters) {
  if (parameters.length % 2 === 1 || parameters.some(({ tag }) => tag !== 'text')) {
    throw new SoukError('invalid-request', 'bad_pairs', 'bind pairs of texts: a column and its value');
  }
  const texts = parameters.map(({ val }) => val);
  return texts.flatMap((text, at) => (at % 2 === 0 ? [[text, texts[at + 1]]] : []));
}
