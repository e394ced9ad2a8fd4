"""What Schemathesis has to be told to send a component: bytes like others."""

import schemathesis

schemathesis.serializer.alias("application/wasm", "application/octet-stream")
