#!/usr/bin/env python3
"""What FreeTDS, by pymssql, makes of the SQL Server of the tests.

`sqlserver.py judge PORT CA_FILE USER WRITER PASSWORD DATABASE`: it takes tests/src/sqlserver for a SQL Server, with TLS in packets. Its tables are those of the
test that starts it (host/conformance/tests/sqlserver.rs).
"""

import datetime
import decimal
import os
import sys
import tempfile
import uuid


def judge(port, ca_file, user, writer, password, database):
    # FreeTDS takes an authority, and whether TLS is wanted, from its file alone.
    config = tempfile.NamedTemporaryFile("w", suffix=".conf", delete=False)
    config.write(f"[global]\ntds version = 7.4\nencryption = require\nca file = {ca_file}\ncheck certificate hostname = yes\n")
    config.close()
    os.environ["FREETDSCONF"] = config.name
    import pymssql

    def connected(user, password=password, database=database, **more):
        return pymssql.connect(server="127.0.0.1", port=port, user=user, password=password, database=database, login_timeout=5, **more)

    def asked(connection, statement, values=None):
        cursor = connection.cursor()
        cursor.execute(statement, values)
        return cursor.fetchall()

    def refused(connection, statement, number):
        try:
            asked(connection, statement)
        except pymssql.Error as error:
            assert error.args[0] == number, (statement, error.args)
        else:
            sys.exit(f"{statement} was let through")

    one = connected(user, autocommit=True)

    # Every type, as the client reads it.
    cursor = one.cursor()
    cursor.execute(
        """SELECT CAST('9223372036854775807' AS bigint) AS i, CAST('-12345678901234567890.00100' AS decimal(38, 5)) AS n, CAST(0.5 AS float) AS f, CAST(0.5 AS real) AS r,
        CAST(1 AS bit) AS t, CAST(255 AS tinyint) AS k, CAST('-922337203685477.5808' AS money) AS m, N'it''s ä 日本' AS s, CAST('ä€' AS varchar(10)) AS v, CAST('ab' AS char(4)) AS c,
        0xFF00 AS y, CAST('2024-02-29' AS date) AS d, CAST('2024-02-29T12:00:00.003' AS datetime) AS e, CAST('2024-02-29T12:00:00.000001' AS datetime2(6)) AS l,
        CAST('12:00:00.5' AS time(6)) AS h, CAST('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' AS uniqueidentifier) AS u, CAST(N'long' AS nvarchar(max)) AS x, CAST(NULL AS int) AS o,
        CAST('2024-02-29T12:00:00.000001+01:00' AS datetimeoffset(6)) AS z, CAST(N'text' AS ntext) AS w"""
    )
    (row,) = cursor.fetchall()
    names = [column[0] for column in cursor.description]
    assert "".join(names) == "infrtkmsvcydelhuxozw", names
    got = dict(zip(names, row))
    zone = datetime.timezone(datetime.timedelta(hours=1))
    wanted = {
        "i": 9223372036854775807, "n": decimal.Decimal("-12345678901234567890.00100"), "f": 0.5, "r": 0.5, "t": True, "k": 255,
        "m": decimal.Decimal("-922337203685477.5808"), "s": "it's ä 日本", "v": "ä€", "c": "ab  ", "y": b"\xff\x00", "d": datetime.date(2024, 2, 29),
        "e": datetime.datetime(2024, 2, 29, 12, 0, 0, 3000), "l": datetime.datetime(2024, 2, 29, 12, 0, 0, 1), "h": datetime.time(12, 0, 0, 500000),
        "u": uuid.UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), "x": "long", "o": None, "z": datetime.datetime(2024, 2, 29, 12, 0, 0, 1, zone), "w": "text",
    }
    for name, value in wanted.items():
        assert got[name] == value, (name, got[name], value)

    # Tables, pages, long results.
    ids = asked(one, "SELECT id FROM dbo.stock WHERE id > %d ORDER BY id", (57,))
    assert ids == [(58,), (59,), (60,)], ids
    price, local = asked(one, "SELECT price, local FROM dbo.stock WHERE id = 1")[0]
    assert (price, local) == (decimal.Decimal("1.250"), datetime.datetime(2026, 1, 1, 0, 1)), (price, local)
    assert asked(one, "SELECT id FROM dbo.stock ORDER BY id OFFSET 2 ROWS FETCH NEXT 2 ROWS ONLY") == [(3,), (4,)]
    many = asked(one, "SELECT value AS n FROM GENERATE_SERIES(1, 9000) AS s ORDER BY 1")
    assert many == [(n,) for n in range(1, 9001)]
    assert asked(one, "SELECT id FROM slow") == [(1,)]
    notes = asked(one, "SELECT note FROM dbo.stock ORDER BY id")
    assert [note is None for (note,) in notes] == [n % 7 == 0 for n in range(1, 61)], notes

    refused(one, "SELECT absent FROM dbo.stock", 207)
    refused(one, "SELECT * FROM dbo.absent", 208)
    refused(one, "SELECT FROM WHERE", 102)
    refused(one, "SELECT 1 / 0 AS v", 8134)
    # Who may only read writes nothing.
    refused(one, "DELETE FROM dbo.stock", 229)
    refused(one, "CREATE TABLE t (a int)", 262)

    # Who may write does, in transactions that are kept or undone.
    two = connected(writer)
    two.cursor().execute("DELETE FROM dbo.stock WHERE id = 60")
    two.rollback()
    assert asked(one, "SELECT COUNT(*) AS n FROM dbo.stock") == [(60,)]
    two.cursor().execute("UPDATE dbo.stock SET sku = 'kept' WHERE id = 60")
    two.commit()
    assert asked(one, "SELECT sku FROM dbo.stock WHERE id = 60") == [("kept",)]
    two.close()

    # What takes too long is stopped.
    bounded = connected(user, autocommit=True, timeout=1)
    try:
        asked(bounded, "SELECT id FROM endless")
    except pymssql.Error as error:
        assert "20003" in str(error) or "timed out" in str(error) or "20047" in str(error), error
    else:
        sys.exit("an endless statement has ended")

    # Logins.
    for stranger, secret, other in [(user, "wrong", database), ("nobody", password, database), (user, password, "nowhere")]:
        try:
            connected(stranger, secret, other)
        except pymssql.Error:
            pass
        else:
            sys.exit("a stranger was let in")
    print("pymssql", pymssql.__version__, "takes it for a SQL Server")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["judge", port, ca_file, user, writer, password, database]:
            judge(port, ca_file, user, writer, password, database)
        case _:
            sys.exit(__doc__)
