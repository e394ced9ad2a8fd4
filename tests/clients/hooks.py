"""What Schemathesis has to be told to send a component."""

import schemathesis


@schemathesis.serializer("application/wasm")
def wasm(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()
