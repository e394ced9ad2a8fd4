#!/usr/bin/env python3
"""What Snowflake's own connector makes of a private key, and what clients of the SQL API make of the Snowflake of the tests.

`snowflake.py token KEY_FILE ACCOUNT USER SECONDS`: the token that snowflake-connector-python makes at that time;
plugins/snowflake/tests/recorded/tokens.txt has some. The vendor's programs speak another protocol than the SQL API.
`snowflake.py judge BASE_URL KEY_FILE CA_FILE ACCOUNT USER`: snowflake-sql-api (a client of the SQL API that is not Snowflake's own) takes
tests/src/snowflake for a Snowflake. Its tables are those of the test that starts it (host/conformance/tests/snowflake.rs).
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


def judge(base_url, key_file, ca_file, account, user):
    import ssl

    import httpx
    from snowflake_sql_api import SnowflakeClient, exceptions

    def client(**more):
        trusts = httpx.Client(verify=ssl.create_default_context(cafile=ca_file), timeout=30)
        given = {"user": user, "warehouse": "SMALL", "database": "SHOP", "schema": "PUBLIC", "role": "READER", "poll_interval": 0.05, **more}
        host = base_url.removeprefix("https://")
        return SnowflakeClient(account, private_key_path=key_file, host=host, http_client=trusts, **given)

    def refused(kind, code, act, *arguments):
        try:
            act(*arguments)
        except kind as error:
            assert str(error.code) == code, (error.code, error)
        else:
            sys.exit(f"{arguments} was let through")

    one = client()

    # Every type, as the client reads it: without formats Snowflake tells numbers since 1970.
    row = one.query(
        r"""SELECT 99999999999999999999999999999999999999 AS i, -12345678901234567890.001::NUMBER(38,3) AS n, 0.5::FLOAT AS f, TRUE AS t, 'ä\n''' AS s,
        TO_BINARY('FF00') AS y, '2024-02-29'::DATE AS d, '12:00:00.5'::TIME AS c, '1969-12-31 23:59:59.5'::TIMESTAMP_NTZ AS l,
        '2024-02-29 13:00:00.000001 +01:00'::TIMESTAMP_TZ AS z, '2024-02-29 12:00:00 +00:00'::TIMESTAMP_LTZ AS m,
        PARSE_JSON('{"a":[1]}') AS j, ARRAY_CONSTRUCT(1, 'x') AS a, NULL::NUMBER(9,0) AS o"""
    )[0]
    utc = datetime.timezone.utc
    hour = datetime.timezone(datetime.timedelta(hours=1))
    wanted = {
        "I": 10**38 - 1, "N": decimal.Decimal("-12345678901234567890.001"), "F": 0.5, "T": True, "S": "ä\n'", "Y": b"\xff\x00",
        "D": datetime.date(2024, 2, 29), "C": datetime.time(12, 0, 0, 500000), "L": datetime.datetime(1969, 12, 31, 23, 59, 59, 500000),
        "Z": datetime.datetime(2024, 2, 29, 13, 0, 0, 1, hour), "M": datetime.datetime(2024, 2, 29, 12, tzinfo=utc),
        "J": {"a": [1]}, "A": [1, "x"], "O": None,
    }
    assert row == wanted, row

    # What it binds comes back.
    values = [
        7, decimal.Decimal("1.50"), 0.25, "it's", True, None, b"\x00\xff", datetime.date(1969, 12, 31), datetime.time(23, 59, 59, 999999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.datetime(2024, 2, 29, 13, tzinfo=hour),
    ]
    row = one.query("SELECT " + ", ".join(f"? AS V{place}" for place in range(len(values))), values)[0]
    assert list(row.values()) == values, row

    # Parts that come compressed, and a table.
    rows = one.query("SELECT SEQ4() AS N FROM TABLE(GENERATOR(ROWCOUNT => 9000))")
    assert [row["N"] for row in rows] == list(range(9000))
    row = one.query("SELECT ID, SKU, PRICE, DAY, AT, LOCAL, WEIGHT, SOLD, TAGS FROM STOCK WHERE ID = ?", [2])[0]
    assert (row["PRICE"], row["SOLD"], row["TAGS"]) == (decimal.Decimal("2.500"), True, ["a", "x2"]), row
    assert one.query_scalar("SELECT COUNT(*) FROM STOCK") == 60

    # A statement that runs by itself is asked after, and stopped.
    running = one.submit("SELECT ID FROM endless")
    assert running.status() == "RUNNING"
    running.cancel()
    refused(exceptions.SnowflakeProgrammingError, "000604", running.result)
    assert one.submit("SELECT ID FROM slow").result() == [{"ID": 1}]

    # What is wrong is told by its code.
    for text, code in [
        ("SELECT FROM WHERE", "001003"),
        ("SELECT absent FROM STOCK", "000904"),
        ("SELECT * FROM ABSENT", "002003"),
        ("SELECT 1; SELECT 2", "000008"),
        ("DELETE FROM STOCK", "003001"),
    ]:
        refused(exceptions.SnowflakeProgrammingError, code, one.query, text)
    refused(exceptions.SnowflakeAuthError, "390144", client(user="nobody").query, "SELECT 1")
    refused(exceptions.SnowflakeForbiddenError, "390189", client(role="NOBODY").query, "SELECT 1")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["token", key_file, account, user, seconds]:
            print(token(key_file, account, user, int(seconds)))
        case ["judge", *arguments] if len(arguments) == 5:
            judge(*arguments)
        case _:
            sys.exit(__doc__)
