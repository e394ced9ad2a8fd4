// Comma-separated values as RFC 4180 has them, with a header.
import { Broken } from './souk.js';

// Letters of one record: a quote that nobody closes would hold the whole file.
const RECORD_MAX = 1 << 20;

/** The records of a text that comes in pieces of whole lines: the header first, and all others as long as that. */
export function* records(pieces) {
  let [number, width, held] = [0, undefined, undefined];
  const broken = (why) => new Broken('source', 'bad_csv', why, { detail: `line ${number}` });
  for (const piece of pieces) {
    const lines = piece.split('\n');
    if (lines.at(-1) === '') lines.pop();
    for (const line of lines) {
      number += 1;
      const isOdd = line.split('"').length % 2 === 0;
      if (held === undefined && !isOdd) held = line;
      else if (held === undefined || !isOdd) {
        // Amid a quoted value: its lines go on until the quote that closes it.
        held = held === undefined ? line : `${held}\n${line}`;
        if (held.length > RECORD_MAX) throw broken(`a record of the file has more than ${RECORD_MAX} letters`);
        continue;
      } else held = `${held}\n${line}`;
      const found = values(held.endsWith('\r') ? held.slice(0, -1) : held);
      held = undefined;
      if (!found) throw broken('the file is no CSV with a header');
      width ??= found.length;
      if (found.length !== width) throw broken('a line has another number of values than the header');
      yield found;
    }
  }
  if (held !== undefined) throw broken('the file ends amid a quoted value');
}

function values(record) {
  if (!record.includes('"')) return record.split(',');
  const found = [];
  for (let at = 0; ; at += 1) {
    let end = record.indexOf(',', at);
    if (end < 0) end = record.length;
    if (record[at] === '"') {
      end = closing(record, at + 1);
      found.push(record.slice(at + 1, end).replaceAll('""', '"'));
      end += 1;
    } else {
      found.push(record.slice(at, end));
      if (found.at(-1).includes('"')) return undefined;
    }
    if (end >= record.length) return found;
    if (record[end] !== ',') return undefined;
    at = end;
  }
}

// Where the quote stands that is not doubled. There is one: their number is even.
function closing(record, from) {
  let at = record.indexOf('"', from);
  while (record[at + 1] === '"') at = record.indexOf('"', at + 2);
  return at;
}
