"""DuckDB's own server, for the tests: DuckDB 1.5.5 with its extension quack, as tests/run installs both (tests/engines/duckdb.txt).

    quack.py PORT TOKEN

Serves a database in memory over Quack, at 127.0.0.1. Statements come on standard input, a JSON text each line; what each answers goes to standard
output, a line each: {"rows": [[...], ...]} or {"error": "..."}. It ends with its input. A line {"told": "SELECT ..."} asks for a result to the last digit,
see told().

    quack.py record FILE

Writes down what the server answers: plugins/duckdb/tests/recorded.txt, of which the connector's own tests are made.
"""

import json
import os
import sys
import urllib.request

import duckdb

EXTENSION = "duckdb_extension_quack/extensions/v{0}/quack.duckdb_extension"
TOKEN = "secrettoken"


def served(port, token):
    """A connection to a database that is served."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    home = os.path.dirname(os.path.dirname(os.path.abspath(duckdb.__file__)))
    path = os.path.join(home, EXTENSION.format(duckdb.__version__))
    connection.execute(f"LOAD '{path}'")
    # Random numbers for the ids of connections; in earnest they are those of the extension httpfs.
    connection.execute("SET force_mbedtls_unsafe = 'true'")
    connection.execute(f"CALL quack_serve('quack:127.0.0.1:{port}', token = ?)", [token]).fetchall()
    return connection


def serve(port, token):
    connection = served(port, token)
    print(json.dumps({"rows": []}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if isinstance(asked, dict):
                answer = told(connection, asked["told"])
            else:
                rows = connection.execute(asked).fetchall()
                answer = {"rows": [[None if cell is None else str(cell) for cell in row] for row in rows]}
        except duckdb.Error as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


def tree(kind):
    """A type: its name; of one that is nested what it is and its parts, of a struct and a union with their names."""
    match kind.id:
        case "list" | "array":
            return ["list", tree(kind.children[0][1])]
        case "map":
            return ["map", *(tree(part) for _, part in kind.children)]
        case "struct":
            return ["struct", [[name, tree(part)] for name, part in kind.children]]
        case "union":
            # The first one is the tag.
            return ["union", [[name, tree(part)] for name, part in kind.children[1:]]]
        case "enum":
            return "ENUM"
        case _:
            return str(kind)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def texts(kind):
    """The type of a tree, with a text in the place of each value that is not nested."""
    match kind:
        case ["list", element]:
            return f"{texts(element)}[]"
        case ["map", key, value]:
            return f"MAP({texts(key)}, {texts(value)})"
        case ["struct" | "union" as word, members]:
            fields = (f"{quoted(name or f'f{place}')} {texts(part)}" for place, (name, part) in enumerate(members))
            return f"{word}({', '.join(fields)})"
        case _:
            return "VARCHAR"


def parts(kind, value):
    """A value of texts() as lists: an entry of a map is its key and its value, a struct its values, a union the name and the value that there is."""
    match kind:
        case _ if value is None:
            return None
        case ["list", element]:
            return [parts(element, part) for part in value]
        case ["map", _, of]:
            return [[key, parts(of, part)] for key, part in value.items()]
        case ["struct", members]:
            return [parts(part, of) for (_, part), of in zip(members, value.values())]
        case ["union", members]:
            ((name, of),) = value.items()
            return [name, parts(dict(members)[name], of)]
        case _:
            return value


def told(connection, sql):
    """A result as DuckDB itself writes it, in texts, which have every digit: names and types of the columns, and the rows."""
    relation = connection.sql(sql)
    columns = [(name, tree(kind)) for name, kind in zip(relation.columns, relation.types)]
    names = [f"c{place}" for place in range(len(columns))]
    asked = (
        f"CAST({name} AS VARCHAR)" if isinstance(kind, str) else f"CAST(to_json(CAST({name} AS {texts(kind)})) AS VARCHAR)"
        for name, (_, kind) in zip(names, columns)
    )
    # A comment at the end of the statement ends with its line.
    rows = connection.execute(f"SELECT {', '.join(asked)} FROM (\n{sql}\n) AS told({', '.join(names)})").fetchall()

    def cell(kind, text):
        return text if text is None or isinstance(kind, str) else parts(kind, json.loads(text))

    return {
        "columns": columns,
        "rows": [[cell(kind, text) for (_, kind), text in zip(columns, row)] for row in rows],
    }


# What is recorded: a name, a statement.
STATEMENTS = [
    (
        "numbers",
        "SELECT (-128)::TINYINT, (-32768)::SMALLINT, (-2147483648)::INTEGER, (-9223372036854775808)::BIGINT, 255::UTINYINT, 65535::USMALLINT, 4294967295::UINTEGER, "
        "18446744073709551615::UBIGINT, '-170141183460469231731687303715884105728'::HUGEINT, '340282366920938463463374607431768211455'::UHUGEINT, true, 0.1::FLOAT, 0.1::DOUBLE, "
        "'nan'::DOUBLE, '-inf'::FLOAT",
    ),
    (
        "decimals",
        "SELECT -0.5::DECIMAL(4,1), 12345.678::DECIMAL(9,3), -123456789012.345678::DECIMAL(18,6), '99999999999999999999999999999999999999'::DECIMAL(38,0), "
        "'-0.00000000000000000000000000000000000001'::DECIMAL(38,38), 123456789012345678901234567890::BIGNUM, (-255)::BIGNUM, 0::BIGNUM",
    ),
    (
        "times",
        "SELECT DATE '2024-02-29', DATE '0001-01-01 (BC)', TIME '24:00:00', TIME '01:02:03.456789', TIMETZ '01:02:03+05:30', TIMESTAMP '2024-02-29 01:02:03.456789', "
        "TIMESTAMP_S '1969-12-31 23:59:59', TIMESTAMP_MS '2024-02-29 01:02:03.456', TIMESTAMP_NS '2024-02-29 01:02:03.456789012', TIMESTAMPTZ '2024-02-29 01:02:03+01', "
        "INTERVAL '1 year 2 months -3 days 04:05:06.7', '01:02:03.000000001'::TIME_NS",
    ),
    (
        "spans",
        "SELECT CAST(i AS VARCHAR), i FROM (VALUES (INTERVAL '0 days'), (INTERVAL '-1 month'), (INTERVAL '25 months'), (INTERVAL '-1 microsecond'), (INTERVAL '100000 hours'), "
        "(INTERVAL '-14 months 1 day -2 hours'), (INTERVAL '1 day 0.5 seconds')) v(i)",
    ),
    (
        "texts",
        "SELECT 'grüße, \"日本\"', '', 'ab'::BLOB, '\\x00\\xFF'::BLOB, '101'::BIT, '00000000111111111'::BIT, '0f3c5a70-1b2d-4e6f-8a9b-c0d1e2f30415'::UUID, 'b'::ENUM('a','b'), "
        "'{\"a\": [1, 2]}'::JSON, 'A' COLLATE NOCASE",
    ),
    ("collated", "SELECT 'a' || 'x' COLLATE NOCASE"),
    (
        "nested",
        "SELECT [1,NULL,3], [[1],[],[2,3]], {'a':1,'b':NULL,'c':[{'d':'x'}]}, MAP{'k':1.50,'l':NULL}, MAP{1:'x'}, [1,2]::INTEGER[2], union_value(k:=1)::UNION(s VARCHAR, k INTEGER), "
        "[DATE '2024-02-29'], ['\\xAA'::BLOB], [0.1::FLOAT], ['{\"a\":1}'::JSON], [TIMESTAMPTZ '2024-02-29 01:02:03+01'], [18446744073709551615::UBIGINT], [INTERVAL '1 day'], "
        "[true,false], MAP{'b'::ENUM('a','b'): [1]}, ['nan'::DOUBLE]",
    ),
    (
        "nulls",
        "SELECT NULL::BOOLEAN, NULL::INTEGER, NULL::HUGEINT, NULL::DOUBLE, NULL::VARCHAR, NULL::BLOB, NULL::DATE, NULL::TIMESTAMP, NULL::INTERVAL, NULL::INTEGER[], NULL::STRUCT(a INTEGER), "
        "NULL::MAP(VARCHAR, INTEGER), NULL::INTEGER[2], NULL::ENUM('a'), NULL::UNION(a INTEGER), NULL, NULL::DECIMAL(10,2), NULL::UUID",
    ),
    ("filtered", "SELECT x, 'constant', CASE WHEN x % 2 = 0 THEN x END, chr((97 + x % 26)::INTEGER) FROM range(3000) t(x) WHERE x % 1000 < 3"),
    ("filtered_ints", "SELECT x FROM range(3000) t(x) WHERE x % 2999 < 1"),
    ("unnamed", "SELECT row(1, 'x'), [row(1)], struct_insert(row(1, 2), a := 3)"),
    ("empty", "SELECT 1 AS a, [2] AS b WHERE false"),
    ("infinite_date", "SELECT DATE 'infinity'"),
    ("infinite_timestamp", "SELECT TIMESTAMPTZ '-infinity'"),
    ("distant", "SELECT TIMESTAMP '200000-01-01'"),
    ("variant", "SELECT 1::VARIANT"),
    ("state", "SELECT sum(x) EXPORT_STATE FROM range(3) t(x)"),
    ("geometry", "SELECT 'POINT(1 2)'::GEOMETRY"),
    ("words255", "SELECT 'w254'::ENUM({})".format(",".join(f"'w{n}'" for n in range(255)))),
    ("words256", "SELECT 'w255'::ENUM({})".format(",".join(f"'w{n}'" for n in range(256)))),
    ("refused", "SELECT * FROM nope"),
    ("success", "BEGIN TRANSACTION READ ONLY"),
]
# Of which the server's parser is asked.
PARSED = [
    ("parsed_one", "SELECT 1"),
    ("parsed", "SELECT upper( $souks_value_0 ), s.* FROM s.t AS s, range(3) WHERE a =  $souks_value_1 "),
    # A value's name in what is a quote to DuckDB, which makes a blank of the first character.
    ("parsed_hidden", "SELECT 1, \u200b$$  $souks_value_0  ' $$, ?, $$ ' a$$"),
    ("parsed_calls", "SELECT nextval( $souks_value_0 )"),
    ("parsed_plan", "SELECT json_serialize_plan('SELECT 1')"),
    ("parsed_settings", "FROM pg_settings"),
    ("parsed_csv", "FROM read_csv('/etc/passwd')"),
    ("parsed_file", "SELECT * FROM '/etc/passwd'"),
    ("parsed_two", "SELECT 1; SELECT 2"),
    ("parsed_drop", "SELECT 1; DROP TABLE t"),
    ("parsed_syntax", "SELECT 1 +"),
    ("parsed_cte", "WITH a AS (SELECT * FROM (SELECT * FROM glob('*'))) SELECT * FROM a WHERE x IN (SELECT 1 FROM range(2))"),
]


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value):
    return number(len(value.encode())) + value.encode()


class Client:
    """As little of a client as answers can be had by."""

    def __init__(self, port, token):
        self.url = f"http://127.0.0.1:{port}/quack"
        self.connection = ""
        body = b"\1\0" + text(token) + b"\2\0" + text("souk") + b"\3\0" + text("tests") + b"\4\0\1\5\0\1"
        self.opened = self.ask(1, body)
        if self.opened[2] == 2:
            self.connection = self.opened[6 : 6 + self.opened[5]].decode()

    def ask(self, kind, body):
        connection = b"\2\0" + text(self.connection) if self.connection else b""
        message = b"\1\0" + number(kind) + connection + b"\3\0" + b"\xff" * 9 + b"\1\xff\xff" + body + b"\xff\xff"
        with urllib.request.urlopen(urllib.request.Request(self.url, data=message)) as answer:
            return answer.read()

    def prepare(self, statement):
        return self.ask(3, b"\1\0" + text(statement))


def plain():
    """The functions of src/functions.rs."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../plugins/duckdb/src/functions.rs")
    with open(path, encoding="utf-8") as file:
        return file.read().split('const PLAIN: &str = "')[1].split('";')[0].split()


def namesakes():
    return (
        "EXISTS (SELECT 1 FROM (SELECT system.main.lower(function_name) AS name, system.main.bool_or(internal) AS is_duckdbs, "
        "system.main.bool_and(internal) AS is_nobody_elses FROM system.main.duckdb_functions() GROUP BY 1) "
        "WHERE NOT is_nobody_elses AND (is_duckdbs OR name IN ({})))"
    ).format(", ".join(f"'{name}'" for name in plain()))


def question(statement, looks=True):
    """As src/parsed.rs asks it."""
    columns = ["function_name", "function.function_name", "table_name", "schema_name", "catalog_name", "identifier"]
    lists = ", ".join(f"to_json(j->>'$..{column}')" for column in columns)
    quoted = statement.replace("'", "''")
    return (
        "SELECT j->>'$.error', j->>'$.error_type', j->>'$.error_message', json_array_length(j, '$.statements'), "
        f"{lists}, CAST(current_setting('autoinstall_known_extensions') AS VARCHAR), "
        "CAST((SELECT count(*) FROM duckdb_settings() WHERE name = 'TimeZone' AND value NOT IN ('UTC', 'Etc/UTC')) > 0 AND NOT current_setting('lock_configuration') AS VARCHAR), "
        "CAST((SELECT count(*) FROM duckdb_databases() WHERE type <> 'duckdb' AND NOT readonly) > 0 AS VARCHAR), "
        f"CAST({namesakes() if looks else 'NULL'} AS VARCHAR) AS namesakes\n"
        f"FROM (SELECT json_serialize_sql('{quoted}') AS j)"
    )


def record(path):
    port = 19497
    # The server ends with it.
    kept = served(port, TOKEN)
    client = Client(port, TOKEN)
    # Of the machine's zone it is not to depend.
    kept.execute("SET GLOBAL TimeZone = 'UTC'")
    lines = [("connected", "-", client.opened), ("unknown", "-", Client(port, "wrong").opened)]
    for name, statement in STATEMENTS:
        lines.append((name, statement, client.prepare(statement)))
        client.prepare("ROLLBACK")
    for name, statement in PARSED:
        lines.append((name, statement, client.prepare(question(statement))))
    lines.append(("parsed_without_looking", "SELECT 1", client.prepare(question("SELECT 1", looks=False))))
    kept.execute("CREATE MACRO \"Upper\"(x) AS x")
    lines.append(("parsed_beside_a_namesake", "SELECT 1", client.prepare(question("SELECT 1"))))
    kept.execute("DROP MACRO upper")
    kept.execute("SET GLOBAL autoinstall_known_extensions = true")
    lines.append(("parsed_installs", "SELECT 1", client.prepare(question("SELECT 1"))))
    kept.execute("SET GLOBAL autoinstall_known_extensions = false")
    kept.execute("SET GLOBAL TimeZone = 'Asia/Tokyo'")
    elsewhere = Client(port, TOKEN)
    lines.append(("parsed_elsewhere", "SELECT 1", elsewhere.prepare(question("SELECT 1"))))
    lines.append(("parsed_drop_elsewhere", "SELECT 1; DROP TABLE t", elsewhere.prepare(question("SELECT 1; DROP TABLE t"))))
    first = client.prepare("SELECT x FROM range(24578) t(x)")
    # What the result is called by is the last field of the body.
    result = first[first.rfind(b"\xff\xff\5\0") + 4 : -2]
    lines.append(("fetched", "-", client.ask(7, b"\1\0" + result)))
    lines.append(("fetched_all", "-", client.ask(7, b"\1\0" + result)))
    lines.append(("ended", "-", client.ask(11, b"")))
    kept.execute("CALL quack_stop(?)", [f"quack:127.0.0.1:{port}"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# What DuckDB {duckdb.__version__}'s own server has answered over Quack, version 1 (tests/engines/quack.py): a name, the statement, the message in hexadecimal digits.\n")
        for name, statement, answer in lines:
            file.write(f"{name}\t{statement}\t{answer.hex()}\n")


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2])
    else:
        serve(int(sys.argv[1]), sys.argv[2])
    # The server's own threads would keep it alive.
    os._exit(0)
