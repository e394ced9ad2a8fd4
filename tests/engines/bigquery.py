#!/usr/bin/env python3
"""What Google's own programs make of a service account and of the BigQuery of the tests.

`bigquery.py token KEY_FILE SECONDS`: the token that google-auth makes at that time; plugins/bigquery/tests/recorded/token.txt is one.
`bigquery.py judge BASE_URL KEY_FILE`: google-cloud-bigquery takes tests/src/bigquery for a BigQuery. Its tables are those of the test
that starts it (host/conformance/tests/bigquery.rs).
"""

import base64
import datetime
import decimal
import sys
from unittest import mock

from google.auth import jwt

# Who the token is for, as Google's "Authenticate with JWTs" has it.
AUDIENCE = "https://bigquery.googleapis.com/"


def credentials(key_file):
    return jwt.Credentials.from_service_account_file(key_file, audience=AUDIENCE)


def token(key_file, seconds):
    now = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).replace(tzinfo=None)
    with mock.patch("google.auth._helpers.utcnow", return_value=now):
        made, _ = credentials(key_file)._make_jwt()
    return made.decode()


def refused(client, statement, wanted, **config):
    from google.api_core.exceptions import GoogleAPICallError
    from google.cloud import bigquery

    try:
        client.query_and_wait(statement, job_config=bigquery.QueryJobConfig(**config), job_retry=None, retry=None)
    except GoogleAPICallError as error:
        assert (error.code, error.errors[0]["reason"]) == wanted, (statement, error.code, error.errors)
    else:
        sys.exit(f"{statement} was let through")


def judge(base_url, key_file):
    from google.api_core.client_options import ClientOptions
    from google.cloud import bigquery

    def client(who):
        return bigquery.Client(project="souk-test", credentials=who, client_options=ClientOptions(api_endpoint=base_url))

    one = client(credentials(key_file))
    assert [(dataset.dataset_id, dataset.full_dataset_id) for dataset in one.list_datasets()] == [("shop", "souk-test:shop")]

    # Every type, as the client reads it.
    types = """SELECT 9223372036854775807 AS i, NUMERIC '-12345678901234567890.001' AS n, BIGNUMERIC '0.00000000000000000000000000000000000001' AS b, 0.5 AS f, TRUE AS t, 'ä' AS s,
        b'\\xff' AS y, DATE '2024-02-29' AS d, DATETIME '2024-02-29T12:00:00.000001' AS l, TIME '12:00:00.5' AS c,
        TIMESTAMP '2024-02-29 12:00:00.000001+00:00' AS m, JSON '{"a":[1]}' AS j, ST_GEOGFROMTEXT('POINT(1 2)') AS g, [1, 2] AS a,
        STRUCT(1 AS x, 'y' AS y) AS r, CAST(NULL AS INT64) AS o"""
    row = dict(next(iter(one.query_and_wait(types))))
    utc = datetime.timezone.utc
    assert row == {
        "i": 9223372036854775807, "n": decimal.Decimal("-12345678901234567890.001"), "b": decimal.Decimal("1e-38"), "f": 0.5, "t": True,
        "s": "ä", "y": b"\xff", "d": datetime.date(2024, 2, 29), "l": datetime.datetime(2024, 2, 29, 12, 0, 0, 1),
        "c": datetime.time(12, 0, 0, 500000), "m": datetime.datetime(2024, 2, 29, 12, 0, 0, 1, utc), "j": {"a": [1]}, "g": "POINT(1 2)",
        "a": [1, 2], "r": {"x": 1, "y": "y"}, "o": None,
    }, row

    # Parameters by place, each as its type; what comes back is what was sent.
    values = [
        ("INT64", -(2**63)), ("FLOAT64", -0.5), ("STRING", "a'b"), ("BOOL", False), ("BYTES", b"\xff\x00"), ("DATE", datetime.date(2024, 2, 29)),
        ("NUMERIC", decimal.Decimal("1.5")), ("TIMESTAMP", datetime.datetime(2024, 2, 29, 12, 0, 0, 1, utc)),
        ("DATETIME", datetime.datetime(2024, 2, 29, 12, 0, 0, 1)), ("TIME", datetime.time(1, 2, 3)), ("STRING", None),
    ]
    config = bigquery.QueryJobConfig(query_parameters=[bigquery.ScalarQueryParameter(None, kind, value) for kind, value in values])
    row = next(iter(one.query_and_wait("SELECT " + ", ".join(f"? AS p{place}" for place in range(len(values))), job_config=config)))
    assert list(row.values()) == [value for _, value in values], row

    # The project's own zone, but for who asks for another.
    zone = "SELECT @@time_zone AS zone"
    assert next(iter(one.query_and_wait(zone))).zone == "Pacific/Auckland"
    config = bigquery.QueryJobConfig(connection_properties=[bigquery.ConnectionProperty("time_zone", "UTC")])
    assert next(iter(one.query_and_wait(zone, job_config=config))).zone == "UTC"
    assert next(iter(one.query(zone, job_config=config).result())).zone == "UTC"

    # Pages, by jobs.query and getQueryResults, and by jobs.insert.
    ids = [row.id for row in one.query_and_wait("SELECT id FROM shop.stock ORDER BY id", page_size=7)]
    assert ids == list(range(1, 61)), ids
    config = bigquery.QueryJobConfig(default_dataset="souk-test.shop")
    assert [row.id for row in one.query("SELECT id FROM stock ORDER BY id LIMIT 3", job_config=config).result()] == [1, 2, 3]
    assert [row.id for row in one.query_and_wait("SELECT id FROM slow")] == [1]

    # A dry run says what a statement is, and carries nothing out.
    for statement, kind in [("SELECT 1", "SELECT"), ("DELETE FROM shop.stock WHERE TRUE", "DELETE"), ("SELECT 1; SELECT 2", "SCRIPT")]:
        job = one.query(statement, job_config=bigquery.QueryJobConfig(dry_run=True))
        assert job.statement_type == kind, (statement, job.statement_type)
    assert next(iter(one.query_and_wait("SELECT COUNT(*) AS n FROM shop.stock"))).n == 60

    job = one.query("SELECT id FROM endless")
    assert one.cancel_job(job.job_id, location=job.location).state == "DONE"

    refused(one, "SELECT absent FROM shop.stock", (400, "invalidQuery"))
    refused(one, "SELECT FROM WHERE", (400, "invalidQuery"))
    refused(one, "SELECT * FROM shop.absent", (404, "notFound"))
    refused(one, "SELECT * FROM nowhere.absent", (404, "notFound"))
    refused(one, "SELECT id FROM shop.stock", (400, "bytesBilledLimitExceeded"), maximum_bytes_billed=1)

    class Stranger(jwt.Credentials):
        def apply(self, headers, token=None):
            headers["authorization"] = "Bearer " + base64.b64encode(b"nobody").decode()

        before_request = lambda self, request, method, url, headers: self.apply(headers)

    stranger = Stranger.from_service_account_file(key_file, audience=AUDIENCE)
    refused(client(stranger), "SELECT 1", (401, "authError"))
    print("google-cloud-bigquery", bigquery.__version__, "takes it for a BigQuery")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["token", key_file, seconds]:
            print(token(key_file, int(seconds)))
        case ["judge", base_url, key_file]:
            judge(base_url, key_file)
        case _:
            sys.exit(__doc__)
