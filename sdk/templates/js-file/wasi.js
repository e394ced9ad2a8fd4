// The files of /data in the component. Nothing else may name what begins with `wasi:`, or node cannot run the tests.
import { getDirectories } from 'wasi:filesystem/preopens@0.2.0';
import { grant } from './files.js';

const dispose = Symbol.dispose || Symbol.for('dispose');

// What is left to the garbage collector is still open when the next request comes.
const close = (handle) => handle[dispose]();

grant((name) => {
  const [[directory]] = getDirectories();
  let file;
  try {
    file = directory.openAt({}, name, {}, { read: true });
  } finally {
    close(directory);
  }
  return {
    read(offset, length) {
      const [bytes] = file.read(BigInt(length), BigInt(offset));
      return bytes;
    },
    close: () => close(file),
  };
});
