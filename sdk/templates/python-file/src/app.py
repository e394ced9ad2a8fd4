"""A connector for CSV files: a statement names columns (`name, city`, or `*`), and its parameters are pairs of a column and the value that a
row must have there.
"""

import csv
# What `open` would look for by its name: the session has no library on a disk.
import encodings.utf_8_sig  # noqa: F401
import os
from contextlib import contextmanager

import souk
from souk import Broken, SoukError, wit

# The one directory that the host grants, read-only. (Native tests have another.)
DIRECTORY = "/data"


class MyConnector(souk.Connector):
    name = "my-connector"
    version = "0.1.0"
    need = "directory"
    engines = [souk.engine("my-connector", "MyConnector", dialect="opaque", credential_types=["NONE"])]
    # A host passes on what is named here, and nothing else: `database` is the name of the connection's file.
    settings = {
        "type": "object",
        "required": ["database"],
        "properties": {
            "database": {"type": "string", "minLength": 1, "maxLength": 255, "title": "File", "description": "The name of a CSV file with a header."}
        },
    }

    def open(self, settings):
        name = settings["database"]
        if name.startswith(".") or any(letter in name for letter in "/\\\0"):
            raise SoukError("configuration", "bad_name", "the file's name has no path in it")
        self.path = os.path.join(DIRECTORY, name)
        with self.read():
            pass

    def query(self, query, rows):
        with self.read() as records:
            headers = next(records, None)
            if not headers:
                raise Broken("source", "bad_csv", "the file has no header")

            def find(name):
                if name not in headers:
                    raise SoukError("not-found", "no_column", "the file has no such column", detail=name)
                return headers.index(name)

            statement = query.text.strip()
            chosen = range(len(headers)) if statement == "*" else [find(name.strip()) for name in statement.split(",")]
            filters = []
            for pair in zip(query.parameters[::2], query.parameters[1::2]):
                match pair:
                    case (wit.Value_Text(name), wit.Value_Text(value)):
                        filters.append((find(name), value))
                    case _:
                        raise SoukError("invalid-request", "bad_pairs", "bind pairs of texts: a column and its value")
            if len(query.parameters) % 2:
                raise SoukError("invalid-request", "bad_pairs", "bind pairs of texts: a column and its value")
            rows.columns(*((headers[at], "text", "text") for at in chosen))
            for record in records:
                if len(record) != len(headers):
                    raise Broken("source", "bad_csv", "a line has another number of values than the header", detail=f"line {records.line_num}")
                if all(record[at] == value for at, value in filters):
                    rows.push(*(record[at] or None for at in chosen))

    def ping(self, limits, rows):
        with self.read() as records:
            next(records, None)
        rows.alive()

    @contextmanager
    def read(self):
        """The file's records, the header first. What is wrong with the file is not this connector's fault."""
        try:
            with open(self.path, encoding="utf-8-sig", newline="") as file:
                yield csv.reader(file, strict=True)
        except OSError as error:
            raise SoukError("unavailable", "no_file", "the file cannot be read", detail=error) from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise Broken("source", "bad_csv", "the file is no CSV with a header", detail=error) from error


Connector, Session = souk.export(MyConnector)
