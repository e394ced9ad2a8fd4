#!/usr/bin/env python3
"""What Databricks' own client (databricks-sdk) makes of the Databricks of the tests.

`databricks.py judge CLEAR_URL SEALED_URL CA_FILE TOKEN CLIENT_ID CLIENT_SECRET WAREHOUSE`: it takes tests/src/databricks for a workspace,
without TLS and with. Its tables are those of the test that starts it (host/conformance/tests/databricks.rs).
"""

import os
import sys
import threading
import time

# What the environment names would be taken instead of the test's own.
for name in [name for name in os.environ if name.startswith("DATABRICKS_")]:
    os.environ.pop(name)
# This file has the client's name: only what is installed is meant.
sys.path = [place for place in sys.path if not place.endswith("engines")]


def workspace(url, **more):
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.core import Config

    config = Config(host=url, retry_timeout_seconds=5, http_timeout_seconds=20, **more)
    return WorkspaceClient(config=config)


def judge(clear_url, sealed_url, ca_file, token, client_id, client_secret, warehouse):
    os.environ["REQUESTS_CA_BUNDLE"] = ca_file
    from databricks.sdk import errors, version
    from databricks.sdk.service import sql

    Parameter, State = sql.StatementParameterListItem, sql.StatementState
    api = workspace(clear_url, token=token, auth_type="pat").statement_execution

    def asked(statement, **more):
        return api.execute_statement(statement, warehouse, catalog="memory", **more)

    def rows(statement, **more):
        answer = asked(statement, **more)
        assert answer.status.state == State.SUCCEEDED, (statement, answer.status)
        found, chunk = [], answer.result
        while True:
            found += chunk.data_array or []
            if chunk.next_chunk_index is None:
                break
            assert chunk.next_chunk_internal_link.startswith("/api/2.0/sql/statements/")
            chunk = api.get_statement_result_chunk_n(answer.statement_id, chunk.next_chunk_index)
        assert len(found) == answer.manifest.total_row_count, statement
        return found

    # Every type, as the client reads it: all values are texts, and a moment has three digits of a second.
    answer = asked(
        """SELECT 9223372036854775807 AS i, -12345678901234567890.00100 AS n, 1e-1 AS f, CAST('NaN' AS DOUBLE) AS q, 0.1F AS r, TRUE AS t,
        'it\\'s ä' AS s, X'FF00' AS y, DATE'2024-02-29' AS d, TIMESTAMP_NTZ'2024-02-29 12:00:00.000001' AS l,
        TIMESTAMP'2024-02-29 12:00:00.000001Z' AS m, parse_json('{"a":[1]}') AS j, array(1, NULL) AS a, map('x', 1.50) AS p,
        named_struct('x', 1, 'y', 'z') AS w, INTERVAL '2' DAY AS v, NULL AS o"""
    )
    columns = answer.manifest.schema.columns
    assert "".join(column.name for column in columns) == "infqrtsydlmjapwvo", columns
    names = {column.name: (column.type_name and column.type_name.value, column.type_text) for column in columns}
    assert names["i"] == ("LONG", "BIGINT") and names["n"] == ("DECIMAL", "DECIMAL(25,5)") and names["o"] == ("NULL", "VOID"), names
    assert (columns[1].type_precision, columns[1].type_scale) == (25, 5), columns[1]
    assert names["a"] == ("ARRAY", "ARRAY<INT>") and names["m"] == ("TIMESTAMP", "TIMESTAMP"), names
    (row,) = answer.result.data_array
    assert row == [
        "9223372036854775807", "-12345678901234567890.00100", "0.1", "NaN", "0.1", "true", "it's ä", "/wA=", "2024-02-29", "2024-02-29T12:00:00.000",
        "2024-02-29T04:00:00.000-08:00", '{"a":[1]}', "[1,null]", '{"x":1.50}', '{"x":1,"y":"z"}', "INTERVAL '2' DAY", None,
    ], row

    # Values have names and types.
    values = [
        Parameter("i", "BIGINT", str(-(2**63))), Parameter("f", "DOUBLE", "-5e-1"), Parameter("s", "STRING", "a'b\\c"), Parameter("b", "BOOLEAN", "false"),
        Parameter("d", "DATE", "2024-02-29"), Parameter("n", "DECIMAL(3,2)", "1.50"), Parameter("o", "INT", None), Parameter("u", value="plain"),
    ]
    marks = ", ".join(f":{value.name}" for value in values)
    assert rows(f"SELECT {marks}", parameters=values) == [["-9223372036854775808", "-0.5", "a'b\\c", "false", "2024-02-29", "1.50", None, "plain"]]
    least = Parameter("least", "BIGINT", "57")
    assert rows("SELECT id FROM shop.stock WHERE id > :least ORDER BY id", parameters=[least]) == [["58"], ["59"], ["60"]]

    # Chunks, limits, and what takes its time.
    assert rows("SELECT id FROM range(1, 9001) ORDER BY id") == [[str(n)] for n in range(1, 9001)]
    answer = asked("SELECT id FROM range(1, 9001)", row_limit=10)
    assert (answer.manifest.truncated, answer.manifest.total_row_count) == (True, 10), answer.manifest
    answer = asked("SELECT id FROM range(1, 9001)", byte_limit=1_000)
    assert answer.manifest.truncated and 0 < answer.manifest.total_row_count < 9_000, answer.manifest
    answer = asked("SELECT id FROM range(1, 11)", row_limit=10)
    assert answer.manifest.truncated is False and answer.manifest.total_chunk_count == 1
    assert rows("SELECT id FROM shop.stock WHERE 1 = 0") == []
    answer = asked("SELECT id FROM slow", wait_timeout="0s")
    assert answer.status.state in [State.PENDING, State.RUNNING] and answer.manifest is None, answer
    since = time.monotonic()
    while api.get_statement(answer.statement_id).status.state in [State.PENDING, State.RUNNING]:
        assert time.monotonic() - since < 10
        time.sleep(0.05)
    assert api.get_statement(answer.statement_id).result.data_array == [["1"]]
    assert rows("SELECT price, at FROM shop.stock WHERE id = 1") == [["1.250", "2025-12-31T17:00:00.000-08:00"]]
    fields = rows("SELECT column_name, full_data_type, is_nullable FROM memory.information_schema.columns WHERE table_name = 'stock' ORDER BY ordinal_position")
    assert fields[0] == ["id", "bigint", "NO"] and fields[4] == ["at", "timestamp", "YES"], fields

    # A query is described without being run; what writes is no query.
    described = rows("DESCRIBE QUERY SELECT id, at, tags FROM shop.stock")
    assert described == [["id", "bigint", None], ["at", "timestamp", None], ["tags", "array<string>", None]], described
    assert rows("DESCRIBE QUERY SELECT id FROM endless") == [["id", "bigint", None]]

    def failed(statement, condition, state, **more):
        status = asked(statement, **more).status
        assert status.state == State.FAILED, (statement, status)
        assert status.error.message.startswith(f"[{condition}"), (statement, status.error)
        assert f"SQLSTATE: {state}" in status.error.message and status.sql_state == state, status
        assert status.error.error_code == sql.ServiceErrorCode.BAD_REQUEST, status

    for text in ["INSERT INTO shop.stock (id) VALUES (61)", "WITH a AS (SELECT 1) DELETE FROM shop.stock", "DROP TABLE shop.stock", "SELECT 1; DROP TABLE shop.stock"]:
        failed(f"DESCRIBE QUERY {text}", "PARSE_SYNTAX_ERROR", "42601")
    assert rows("SELECT count(*) FROM shop.stock") == [["60"]]
    failed("SELECT absent FROM shop.stock", "UNRESOLVED_COLUMN", "42703")
    failed("SELECT FROM WHERE", "PARSE_SYNTAX_ERROR", "42601")
    failed("SELECT * FROM shop.absent", "TABLE_OR_VIEW_NOT_FOUND", "42P01")
    failed("SELECT * FROM pond.shop.stock", "NO_SUCH_CATALOG_EXCEPTION", "42704")
    failed("SELECT absent(id) FROM shop.stock", "UNRESOLVED_ROUTINE", "42883")
    failed("SELECT :p", "UNBOUND_SQL_PARAMETER", "42P02")
    failed("SELECT :p", "CAST_INVALID_INPUT", "22018", parameters=[Parameter("p", "INT", "x")])
    failed("SELECT id FROM shop.stock LIMIT :p", "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE", "42K0E", parameters=[Parameter("p", "BIGINT", "1")])
    # Outside of a description it is written.
    assert asked("INSERT INTO shop.stock (id) VALUES (61)").status.state == State.SUCCEEDED
    assert rows("SELECT count(*) FROM shop.stock") == [["61"]]
    assert asked("DELETE FROM shop.stock WHERE id = 61").status.state == State.SUCCEEDED

    # What is cancelled ends, by its id or by the time that it may be waited for; in the client's thread that waits as well.
    answer = asked("SELECT id FROM endless", wait_timeout="0s")
    api.cancel_execution(answer.statement_id)
    assert api.get_statement(answer.statement_id).status.state == State.CANCELED
    bounded = asked("SELECT id FROM endless", wait_timeout="5s", on_wait_timeout=sql.ExecuteStatementRequestOnWaitTimeout.CANCEL)
    assert bounded.status.state == State.CANCELED, bounded.status
    endless = asked("SELECT id FROM endless", wait_timeout="0s")
    stopper = threading.Timer(0.3, lambda: api.cancel_execution(endless.statement_id))
    stopper.start()
    while api.get_statement(endless.statement_id).status.state != State.CANCELED:
        time.sleep(0.05)
    stopper.join()

    def refused(kind, act):
        try:
            act()
        except kind:
            return
        sys.exit(f"{act} was let through")

    refused(errors.InvalidParameterValue, lambda: api.execute_statement("SELECT 1", "ffff"))
    refused(errors.InvalidParameterValue, lambda: asked("SELECT 1", wait_timeout="3s"))
    refused(errors.NotFound, lambda: api.get_statement("01f00f40-0000-0000-0000-000000000000"))
    stranger = workspace(clear_url, token="dapi00", auth_type="pat").statement_execution
    refused(errors.PermissionDenied, lambda: stranger.execute_statement("SELECT 1", warehouse))

    # A service principal, over TLS.
    def principal(secret):
        return workspace(sealed_url, client_id=client_id, client_secret=secret, auth_type="oauth-m2m").statement_execution

    answer = principal(client_secret).execute_statement("SELECT 1", warehouse)
    assert answer.result.data_array == [["1"]], answer
    refused(Exception, lambda: principal("wrong").execute_statement("SELECT 1", warehouse))
    print("databricks-sdk", version.__version__, "takes it for a Databricks")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["judge", *rest] if len(rest) == 7:
            judge(*rest)
        case _:
            sys.exit(__doc__)
