#!/usr/bin/env python3
"""What Trino's own Python client makes of the Trino of the tests.

`trino.py judge CLEAR_URL SEALED_URL CA_FILE USER PASSWORD TOKEN`: it takes tests/src/trino for a Trino, without TLS and with. Its tables are
those of the test that starts it (host/conformance/tests/trino.rs).
"""

import datetime
import decimal
import os
import sys
import threading
import time
import uuid
from urllib.parse import urlsplit

# An authority that the environment names would be trusted instead of the test's own.
for name in ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]:
    os.environ.pop(name, None)
# This file has the client's name: only what is installed is meant.
sys.path = [place for place in sys.path if not place.endswith("engines")]

import trino  # noqa: E402
from trino import exceptions  # noqa: E402


def connected(url, **more):
    at = urlsplit(url)
    return trino.dbapi.connect(host=at.hostname, port=at.port, http_scheme=at.scheme, **more)


def asked(connection, statement, values=None):
    cursor = connection.cursor()
    cursor.execute(statement, values)
    return cursor.fetchall()


def refused(connection, statement, wanted, kind=exceptions.TrinoUserError):
    try:
        asked(connection, statement)
    except kind as error:
        name = getattr(error, "error_name", None)
        assert name == wanted, (statement, error)
    else:
        sys.exit(f"{statement} was let through")


def judge(clear_url, sealed_url, ca_file, user, password, token):
    one = connected(clear_url, user=user, catalog="memory", schema="shop")

    # Every type, as the client reads it.
    cursor = one.cursor()
    cursor.execute(
        """SELECT BIGINT '9223372036854775807' AS i, DECIMAL '-12345678901234567890.00100' AS n, DOUBLE '0.5' AS f, DOUBLE 'NaN' AS q, REAL '0.1' AS r, TRUE AS t,
        'it''s ä' AS s, X'FF00' AS y, DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 12:00:00.000001' AS l, TIME '12:00:00.5' AS c,
        TIMESTAMP '2024-02-29 12:00:00.000001 +01:00' AS m, JSON '{"a":[1]}' AS j, UUID 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' AS u, ARRAY[1, NULL] AS a,
        MAP(ARRAY['x'], ARRAY[DECIMAL '1.50']) AS p, CAST(ROW(1, 'y') AS row(x bigint, y varchar)) AS w, INTERVAL '2' DAY AS v, CAST(NULL AS bigint) AS o"""
    )
    (row,) = cursor.fetchall()
    names = [column.name for column in cursor.description]
    assert "".join(names) == "infqrtsydlcmjuapwvo", names
    got = dict(zip(names, row))
    assert got.pop("q") != 0 and str(got.get("q")) == "None"
    u = got.pop("u")
    assert str(u) == str(uuid.UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")), u
    zone = datetime.timezone(datetime.timedelta(hours=1))
    assert got.pop("m") == datetime.datetime(2024, 2, 29, 12, 0, 0, 1, zone)
    assert tuple(got.pop("w")) == (1, "y")
    assert got == {
        "i": 9223372036854775807, "n": decimal.Decimal("-12345678901234567890.00100"), "f": 0.5, "r": 0.1, "t": True, "s": "it's ä", "y": b"\xff\x00",
        "d": datetime.date(2024, 2, 29), "l": datetime.datetime(2024, 2, 29, 12, 0, 0, 1), "c": datetime.time(12, 0, 0, 500000), "j": '{"a":[1]}',
        "a": [1, None], "p": {"x": decimal.Decimal("1.50")}, "v": datetime.timedelta(days=2), "o": None,
    }, got

    # Values, which the client sends by EXECUTE IMMEDIATE; what comes back is what was sent.
    utc = datetime.timezone.utc
    values = [-(2**63), -0.5, "a'b", False, b"\xff\x00", datetime.date(2024, 2, 29), decimal.Decimal("1.50"), datetime.datetime(2024, 2, 29, 12, 0, 0, 1), None]
    (row,) = asked(one, "SELECT " + ", ".join("?" for _ in values), values)
    assert list(row) == values, row
    ids = asked(one, "SELECT id FROM shop.stock WHERE id > ? ORDER BY id", [57])
    assert ids == [[58], [59], [60]], ids

    # Pages, and what takes its time.
    assert asked(one, "SELECT n FROM UNNEST(sequence(1, 9000)) AS s(n) ORDER BY n") == [[n] for n in range(1, 9001)]
    assert asked(one, "SELECT id FROM slow") == [[1]]
    (price, at) = asked(one, "SELECT price, at FROM shop.stock WHERE id = 1")[0]
    assert (price, at) == (decimal.Decimal("1.250"), datetime.datetime(2026, 1, 1, 1, 0, 0, 1, utc)), (price, at)
    assert asked(one, "SELECT id FROM shop.stock ORDER BY id OFFSET 2 LIMIT 2") == [[3], [4]]
    fields = asked(one, "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'stock' ORDER BY ordinal_position")
    assert fields[0] == ["id", "bigint", "NO"] and fields[4] == ["at", "timestamp(6) with time zone", "YES"], fields

    # A transaction refuses what writes where it only reads; outside of one it is written.
    for isolation in [trino.transaction.IsolationLevel.READ_UNCOMMITTED]:
        two = connected(clear_url, user=user, catalog="memory", schema="shop", isolation_level=isolation)
        assert asked(two, "SELECT count(*) FROM shop.stock") == [[60]]
        two.rollback()
    request = trino.client.TrinoRequest(urlsplit(clear_url).hostname, urlsplit(clear_url).port, one._client_session, http_scheme="http")
    request.transaction_id = "NONE"

    def statement(text):
        response = request.post(text)
        status = request.process(response)
        headers = dict(response.headers)
        while status.next_uri:
            response = request.get(status.next_uri)
            status = request.process(response)
            headers.update(response.headers)
        return {name.lower(): value for name, value in headers.items()}

    request.transaction_id = statement("START TRANSACTION READ ONLY")["x-trino-started-transaction-id"]
    try:
        statement("DELETE FROM shop.stock")
    except exceptions.TrinoUserError as error:
        assert error.error_name == "READ_ONLY_VIOLATION", error
    else:
        sys.exit("a transaction that only reads has written")
    assert statement("ROLLBACK")["x-trino-clear-transaction-id"] == "true"
    request.transaction_id = "NONE"
    assert asked(one, "SELECT count(*) FROM shop.stock") == [[60]]

    # What is stopped ends, and what runs too long is stopped.
    endless = one.cursor()
    running = threading.Thread(target=lambda: ended(endless))
    running.start()
    since = time.monotonic()
    while endless.query_id is None and time.monotonic() - since < 10:
        time.sleep(0.05)
    time.sleep(0.2)
    endless.cancel()
    running.join(10)
    assert not running.is_alive()
    bounded = connected(clear_url, user=user, catalog="memory", session_properties={"query_max_run_time": "100ms"})
    refused(bounded, "SELECT id FROM endless", "EXCEEDED_TIME_LIMIT", exceptions.TrinoQueryError)

    refused(one, "SELECT absent FROM shop.stock", "COLUMN_NOT_FOUND")
    refused(one, "SELECT FROM WHERE", "SYNTAX_ERROR")
    refused(one, "SELECT 1;", "SYNTAX_ERROR")
    refused(one, "SELECT id FROM shop.stock LIMIT 2 OFFSET 2", "SYNTAX_ERROR")
    refused(one, "SELECT * FROM shop.absent", "TABLE_NOT_FOUND")
    refused(one, "SELECT * FROM nowhere.absent", "SCHEMA_NOT_FOUND")
    refused(one, "SELECT * FROM pond.shop.stock", "CATALOG_NOT_FOUND")

    # Logins.
    def sealed(auth):
        return connected(sealed_url, user=user, catalog="memory", schema="shop", auth=auth, verify=ca_file)

    for auth in [trino.auth.BasicAuthentication(user, password), trino.auth.JWTAuthentication(token)]:
        assert asked(sealed(auth), "SELECT 1") == [[1]]
    for auth in [trino.auth.BasicAuthentication(user, "wrong"), trino.auth.JWTAuthentication("wrong"), None]:
        try:
            asked(sealed(auth), "SELECT 1")
        except exceptions.HttpError as error:
            assert "401" in str(error), error
        else:
            sys.exit("a stranger was let in")
    print("trino", trino.__version__, "takes it for a Trino")


def ended(cursor):
    try:
        cursor.execute("SELECT id FROM endless")
    except (exceptions.TrinoUserError, exceptions.HttpError):
        pass


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["judge", clear_url, sealed_url, ca_file, user, password, token]:
            judge(clear_url, sealed_url, ca_file, user, password, token)
        case _:
            sys.exit(__doc__)
