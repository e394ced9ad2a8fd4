// The one directory that the host grants, read-only: `wasi.js` opens its files in the component, `tests/files.js` in native tests.
import { Broken, SoukError } from './souk.js';

const PIECE_BYTES = 64 << 10;
// A line is held whole, and so is what is quoted over several.
const LINE_BYTES_MAX = 1 << 20;

let opened;

/** What opens a file by its name: `{ read(offset, length), close() }`. `read` gives no bytes at the end only; both throw what went wrong. */
export const grant = (open) => { opened = open; };

/** Calls `work` with the file's text: pieces of whole lines, one after the other. */
export function reading(name, work) {
  const file = tried(() => opened(name));
  try {
    return work(pieces(file));
  } finally {
    file.close();
  }
}

function* pieces(file) {
  let rest = new Uint8Array(0);
  let at = 0;
  for (;;) {
    const bytes = tried(() => file.read(at, PIECE_BYTES));
    if (bytes.length === 0) break;
    const end = bytes.lastIndexOf(0x0a) + 1;
    if (end > 0) {
      yield text(rest, bytes.subarray(0, end), at === rest.length);
      rest = bytes.slice(end);
    } else {
      rest = concatenated(rest, bytes);
      if (rest.length > LINE_BYTES_MAX) throw new Broken('source', 'long_line', `a line of the file has more than ${LINE_BYTES_MAX} bytes`);
    }
    at += bytes.length;
  }
  if (rest.length > 0) yield text(rest, new Uint8Array(0), at === rest.length);
}

const concatenated = (first, second) => {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
};

/** Lines end where letters do, too. What an editor may have put before the first one is none of them. */
function text(first, second, isBegin) {
  let found;
  try {
    found = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(concatenated(first, second));
  } catch (error) {
    throw new Broken('source', 'no_text', 'the file is no UTF-8', { detail: String(error) });
  }
  return isBegin && found.startsWith('\ufeff') ? found.slice(1) : found;
}

function tried(call) {
  try {
    return call();
  } catch (error) {
    // WASI's word for it (`no-entry`), or node's.
    throw new SoukError('unavailable', 'no_file', 'the file cannot be read', { detail: String(error.payload ?? error.message) });
  }
}
