#!/usr/bin/env python3
"""What Snowflake's own connector makes of a private key, and what clients of the SQL API make of the Snowflake of the tests.

`snowflake.py token KEY_FILE ACCOUNT USER SECONDS`: the token that snowflake-connector-python makes at that time;
plugins/snowflake/tests/recorded/tokens.txt has some. The vendor's programs speak another protocol than the SQL API.
`snowflake.py judge BASE_URL KEY_FILE`: snowflake-sql-api (which is not Snowflake's) takes tests/src/snowflake for a Snowflake. Its tables
are those of the test that starts it (host/conformance/tests/snowflake.rs).
"""

import datetime
import decimal
import sys
from unittest import mock

LIFETIME_S = 3600
# Else this file is the package `snowflake`.
sys.path.pop(0)


def token(key_file, account, user, seconds):
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
    from snowflake.connector.auth import keypair

    key = load_pem_private_key(open(key_file, "rb").read(), None)
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    now = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)

    class Then(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return now

    with mock.patch.object(keypair, "datetime", Then):
        return keypair.AuthByKeyPair(private_key=der, lifetime_in_seconds=LIFETIME_S).prepare(account=account, user=user)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["token", key_file, account, user, seconds]:
            print(token(key_file, account, user, int(seconds)))
        case _:
            sys.exit(__doc__)
