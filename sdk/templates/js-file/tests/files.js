// A directory of this machine in place of the host's.
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { grant } from '../files.js';

export const mount = (directory) => grant((name) => {
  const file = openSync(join(directory, name), 'r');
  return {
    read(offset, length) {
      const bytes = new Uint8Array(length);
      return bytes.subarray(0, readSync(file, bytes, 0, length, offset));
    },
    close: () => closeSync(file),
  };
});
