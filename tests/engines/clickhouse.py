#!/usr/bin/env python3
"""ClickHouse's HTTP interface over chDB, which is its engine in a process: values, errors, parameters, read-only mode, limits and KILL are the
engine's own, passwords and HTTP are this file's. Says its port in a line when it is ready.

Whether it is like ClickHouse is tried with ClickHouse's own clients: `clickhouse.py judge BASE_URL`, and `clickhouse.mjs` beside this file.
"""

import base64
import json
import re
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

PASSWORD = "pässw'ord"
# The setting `readonly` of each user's profile.
USERS = {"souk": 0, "bounded": 2, "fixed": 1}
FORMAT = re.compile(r"\bformat\s+(\w+)\s*;?\s*$", re.I)
KILL = re.compile(r"^\s*KILL QUERY WHERE query_id = '([\w-]+)'", re.I)
# What HTTPHandler takes for itself; everything else is a setting.
OWN = {
    "query", "query_id", "user", "password", "default_format", "database", "session_id", "session_timeout", "session_check", "compress",
    "decompress", "enable_http_compression", "wait_end_of_query", "buffer_size", "client_protocol_version", "role", "quota_key",
    "send_progress_in_http_headers", "http_headers_progress_interval_ms",
}


class Failure(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code

    @staticmethod
    def of(error):
        found = re.search(r"Code: (\d+)\. DB::Exception: ", str(error))
        text = re.sub(r"^(Code: \d+\. DB::Exception: )+", "", str(error))
        return Failure(int(found[1]) if found else 1000, text)


def quoted(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal(value):
    return value if re.fullmatch(r"-?\d+(\.\d+)?", value) else quoted(value)


def parts_of(kind, body):
    """The parts of a form by their names. (Python's own reader of mails takes 0.1 ms for one, as long as a small statement.)"""
    boundary = re.search(r'boundary="?([^";]+)', kind)[1].encode()
    for part in body.split(b"--" + boundary)[1:-1]:
        head, value = part[2:-2].split(b"\r\n\r\n", 1)
        yield re.search(rb'\bname="([^"]*)"', head)[1].decode(), value.decode()


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else a body waits until the head that was sent before it is acknowledged: forty milliseconds.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def out(self, status, body, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-ClickHouse-Server-Display-Name", "chdb")
        self.send_header("X-ClickHouse-Timezone", ZONE)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def who(self, asked):
        basic = self.headers.get("Authorization", "")
        if basic.startswith("Basic "):
            return tuple(base64.b64decode(basic[6:]).decode().split(":", 1))
        # What stands in a header is bytes, which Python shows as Latin-1.
        header = lambda name: self.headers.get(name, "").encode("latin-1").decode()
        return header("X-ClickHouse-User") or asked.get("user", "default"), header("X-ClickHouse-Key") or asked.get("password", "")

    def answer(self, body):
        parts = urlsplit(self.path)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.path == "/ping":
            return self.out(200, b"Ok.\n")
        query_id = asked.get("query_id") or str(uuid.uuid4())
        kind = self.headers.get("Content-Type", "")
        if "multipart/form-data" in kind:
            asked.update(parts_of(kind, body))
            body = b""
        sql = asked.get("query", "") + ("\n" if asked.get("query") and body else "") + body.decode()
        found = FORMAT.search(sql)
        form = found[1] if found else asked.get("default_format") or self.headers.get("X-ClickHouse-Format") or "TabSeparated"
        try:
            began = time.time()
            data, rows = self.run(asked, query_id, sql[: found.start()] if found else sql, form)
        except Failure as failure:
            status = {60: 404, 81: 404, 516: 403}.get(failure.code, 500)
            text = f"Code: {failure.code}. DB::Exception: {failure}\n".encode()
            return self.out(status, text, X_ClickHouse_Exception_Code=str(failure.code), X_ClickHouse_Query_Id=query_id)
        summary = {"read_rows": str(rows), "elapsed_ns": str(int((time.time() - began) * 1e9))}
        self.out(
            200, data, Content_Type="application/octet-stream", X_ClickHouse_Query_Id=query_id, X_ClickHouse_Format=form,
            X_ClickHouse_Summary=json.dumps(summary), X_ClickHouse_Exception_Tag=uuid.uuid4().hex[:16],
        )

    def run(self, asked, query_id, sql, form):
        user, password = self.who(asked)
        if user not in USERS or password != PASSWORD:
            raise Failure(516, f"{user}: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)")
        # A connection of its own: what is set for one statement is not set for another.
        connection = chdb.connect(":memory:")
        try:
            settings = {name: value for name, value in asked.items() if name not in OWN and not name.startswith("param_")}
            if "database" in asked:
                connection.query("USE `" + asked["database"].replace("\\", "\\\\").replace("`", "\\`") + "`")
            profile = USERS[user]
            if settings.get("readonly") == str(profile):
                del settings["readonly"]
            # The engine names its statements itself; the name that one was sent with goes along as a comment.
            named = f"SET log_comment = {quoted(query_id)}"
            # In one statement, so that all are checked against the profile at once, as the server does; and each by itself takes 0.1 to 0.2 ms,
            # of which the server's reading of an address has nothing.
            wanted = ", ".join(f"{name} = {literal(value)}" for name, value in settings.items())
            if profile == 0:
                connection.query(", ".join([named, wanted]) if wanted else named)
            else:
                connection.query(named)
                connection.query(f"SET readonly = {profile}")
                if wanted:
                    connection.query(f"SET {wanted}")
            killed = KILL.match(sql)
            if killed:
                sql = f"KILL QUERY WHERE Settings['log_comment'] = {quoted(killed[1])} ASYNC"
            parameters = {name[6:]: value for name, value in asked.items() if name.startswith("param_")}
            result = connection.query(sql, form, params=parameters)
            return result.bytes(), result.rows_read()
        except Failure:
            raise
        except Exception as error:
            raise Failure.of(error) from error
        finally:
            connection.close()

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.answer(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def judge(base_url):
    """ClickHouse's own client takes the front for a ClickHouse."""
    import clickhouse_connect
    from clickhouse_connect.driver.exceptions import ClickHouseError

    url = urlsplit(base_url)

    def client(password=PASSWORD):
        return clickhouse_connect.get_client(host=url.hostname, port=url.port, username="souk", password=password, autogenerate_session_id=False)

    one = client()
    rows = one.query("SELECT {a:Int32} + 1, {b:String}, toDecimal64('12.340', 3), [1, NULL]", parameters={"a": 41, "b": "it's"}).result_rows
    assert str(rows) == "[(42, \"it's\", Decimal('12.340'), [1, None])]", rows
    one.command("CREATE TABLE IF NOT EXISTS judged (n UInt64) ENGINE = MergeTree ORDER BY n")
    one.command("INSERT INTO judged VALUES (1), (18446744073709551615)")
    assert one.query("SELECT n FROM judged ORDER BY n").result_rows == [(1,), (18446744073709551615,)]
    one.command("DROP TABLE judged")
    for statement, settings, code in [
        ("SELECT nothing", {}, "47"),
        ("SELECT * FROM nowhere.nothing", {}, "81"),
        ("SELECT sleep(2)", {"max_execution_time": 1}, "159"),
    ]:
        try:
            one.command(statement, settings=settings)
        except ClickHouseError as error:
            assert f"code {code}" in str(error) or f"Code: {code}" in str(error), error
        else:
            sys.exit(f"{statement} was let through")
    try:
        client("wrong")
    except ClickHouseError:
        pass
    else:
        sys.exit("a wrong password was let in")
    print("clickhouse-connect", clickhouse_connect.__version__, "takes it for a ClickHouse", one.server_version)


if __name__ == "__main__":
    if sys.argv[1:2] == ["judge"]:
        judge(sys.argv[2])
    else:
        import chdb

        KEPT = chdb.connect(":memory:")
        ZONE = KEPT.query("SELECT timezone()", "TabSeparated").bytes().decode().strip()
        server = Server(("127.0.0.1", 0), Front)
        print(server.server_port, flush=True)
        server.serve_forever()
