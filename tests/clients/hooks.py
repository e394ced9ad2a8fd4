"""What Schemathesis has to be told to send a component: bytes like others."""

import re

import schemathesis

schemathesis.serializer.alias("application/wasm", "application/octet-stream")


@schemathesis.hook
def before_call(context, case, kwargs):
    """A body that names a company or a user names the path's, which no schema can say; one that is wrong for its schema stays so."""
    if isinstance(case.body, dict):
        for name in ("company_id", "user_id"):
            known = (case.path_parameters or {}).get(name)
            if known and isinstance(case.body.get(name), str) and re.fullmatch("[a-zA-Z0-9_-]{1,255}", case.body[name]):
                case.body[name] = known
