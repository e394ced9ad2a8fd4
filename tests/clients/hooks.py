"""What Schemathesis has to be told: how a component is sent, which ids go together, and, along the links, what can be made."""

import itertools
import json
import os
import re

import schemathesis

# By operation, a body that makes something: along the links of what was never made there is no way. `LINKS`, from fuzz.py.
MADE = json.loads(os.environ.get("LINKS", "{}"))
NUMBER = itertools.count()


def make(case):
    """A right body becomes one that makes something; what is wrong stays so."""
    made = MADE.get(case.operation.definition.raw.get("operationId"))
    if made and case.meta and case.meta.generation.mode.is_positive:
        number = str(next(NUMBER))
        case.body = json.loads(json.dumps(made).replace("NUMBER", number))

schemathesis.serializer.alias("application/wasm", "application/octet-stream")


@schemathesis.hook
def before_call(context, case, kwargs):
    """A body that names a company or a user names the path's, which no schema can say; one that is wrong for its schema stays so."""
    make(case)
    if isinstance(case.body, dict):
        for name in ("company_id", "user_id"):
            known = (case.path_parameters or {}).get(name)
            if known and isinstance(case.body.get(name), str) and re.fullmatch("[a-zA-Z0-9_-]{1,255}", case.body[name]):
                case.body[name] = known
