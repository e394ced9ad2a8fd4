"""The contract (wit/v1/connector.wit) for Python: a connector is a state machine that never waits, so what would be `await` is `yield`.

`open`, `query`, `schema`, `call` and `ping` of a `Connector` may be generators. They yield what `request()` or `pause()` makes and are resumed with
the response; of the wire of a tcp connector they `yield from self.wire.line()`. Errors are `SoukError`, with one of the contract's classes.
Nothing else waits: there is no clock, no socket, no thread, and no file but in a directory connector's `/data`. What is printed is in the connector's log.
"""

import json as _json
import re
import sys
from array import array
from collections import namedtuple
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import accumulate
from types import AsyncGeneratorType, CoroutineType, GeneratorType

from componentize_py_types import Err
from wit_world.imports import types as wit

try:
    # `./build` writes it for `souk connector dev`, so that each build has a version of its own.
    from souk_build import NUMBER
except ImportError:
    NUMBER = ""

# What a response may hold unless the request says otherwise. It arrives in one call, which may compute for 250 ms and has 64 MiB.
RESPONSE_BYTES = 2 << 20
TIMEOUT_MS = 30_000
# A batch is cut here: small enough to be streamed, large enough that what it costs beside its values vanishes.
BATCH_ROWS = 1_024
# Python's parser goes down as deep as a document does, and the stack it has ends at some thousand levels: that would end the session.
JSON_DEPTH_MAX = 200
# So many requests a host lets a session have under way, with those that were given up and that the source has not answered yet. One more is not
# asked for: the host would fail it, too, where some were given up, and blame the connector where none was.
UNDER_WAY_MAX = 128
# Bytes that have arrived and were not read.
UNREAD_MAX = 16 << 20
# Shapes of results that a session tells once each.
SHAPES_MAX = 64
DETAIL_LETTERS = 2_000


class SoukError(Exception):
    """An error of the contract. `kind` is one of its classes: "invalid-request", "not-found", "source", "rate-limited", …"""

    def __init__(self, kind, code, message, detail=None, source_code=None, retry_after_ms=None, parameter=None):
        super().__init__(message)
        self.kind = kind
        detail = detail and str(detail)[:DETAIL_LETTERS].encode(errors="replace").decode()
        self.error = wit.Error(_member(wit.ErrorClass, kind), code, message, detail, source_code, retry_after_ms, parameter)


class Broken(SoukError):
    """One that ends a tcp session: nobody knows any more what the next byte on the wire belongs to."""


@contextmanager
def believed():
    """What a source says may have another shape than it should. In this block that is the source's fault, not the connector's."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Broken("source", "bad_answer", "the source's answer is not what was expected", detail=repr(error)) from error


# HTTP

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def encoded(text):
    """Text as one segment of a path or one value of a query: nothing in it has a meaning any more."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in str(text).encode())


def request(method, path, headers=None, body=b"", timeout_ms=TIMEOUT_MS, response_bytes_max=RESPONSE_BYTES):
    """A request to the connection's origin; `yield` it for the `Response`. The path begins with `/` and may carry a query."""
    if not isinstance(path, str) or not path.startswith("/"):
        raise SoukError("source", "bad_path", "a request's path begins with /", detail=repr(path))
    body = body.encode() if isinstance(body, str) else bytes(body)
    headers = [wit.Header(str(name), str(value)) for name, value in (headers or {}).items()]
    return wit.HttpRequest(0, method, path, headers, body, timeout_ms, response_bytes_max)


# No half of a letter either, which JSON may hold.
_PATH = re.compile(r'/[^\x00-\x20\x7f\\#<>`"\ud800-\udfff]*')
_PATH_BYTES_MAX = 8 << 10


def led_to(path):
    """A path that the source has led to, if a host sends requests to it: below the base URL, and encoded. Any other path a host takes for the
    connector's own mistake, which ends the session; here it is the source's."""
    is_path = isinstance(path, str) and _PATH.fullmatch(path) and len(path.encode()) <= _PATH_BYTES_MAX
    plain = path.split("?")[0].lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/") if is_path else ".."
    if any(part.split(";")[0] in (".", "..") for part in plain.split("/")):
        raise SoukError("source", "bad_path", "the source leads on to what is no path below its address", detail=repr(path))
    return path


def pause(ms):
    """`yield` it: so many milliseconds pass, though never more than the request has left."""
    return wit.Pause(0, ms)


_CLASSES = {
    400: ("invalid-request", "refused", "the source refused the request"),
    401: ("authentication", "credentials_refused", "the source refused the credentials"),
    403: ("permission", "forbidden", "the source does not allow this request"),
    404: ("not-found", "not_found", "the source does not have what was asked for"),
    408: ("timeout", "source_timeout", "the source did not answer in time"),
    410: ("not-found", "not_found", "the source does not have what was asked for"),
    422: ("invalid-request", "refused", "the source refused the request"),
    429: ("rate-limited", "rate_limited", "the source has had too many requests"),
    502: ("unavailable", "unavailable", "the source is not available"),
    503: ("unavailable", "unavailable", "the source is not available"),
    504: ("timeout", "source_timeout", "the source did not answer in time"),
}
_REDIRECTED = ("configuration", "redirected", "the source is at another address: the connection's base URL must name it")
_BAD_STATUS = ("source", "bad_status", "the source answered with an error")
# Longer than a day is not waited for.
_RETRY_SECONDS_MAX = 86_400


class Response:
    """What the source answered: `status`, `headers` (pairs), `body` (bytes)."""

    def __init__(self, told):
        self.status = told.status
        self.headers = [(header.name, header.value) for header in told.headers]
        self.body = told.body

    def header(self, name):
        """The first header of that name, in any case."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)

    def text(self):
        return self.body.decode(errors="replace")

    def classified(self):
        """The response, if its status is 2xx; else whose fault that is."""
        if 200 <= self.status < 300:
            return self
        kind, code, message = _CLASSES.get(self.status, _REDIRECTED if 300 <= self.status < 400 else _BAD_STATUS)
        seconds = (self.header("retry-after") or "").strip()
        wait = min(int(seconds), _RETRY_SECONDS_MAX) * 1_000 if seconds.isascii() and seconds.isdigit() and len(seconds) < 20 else None
        detail = self.body[:500].decode(errors="replace").strip() or None
        raise SoukError(kind, code, message, detail=detail, source_code=str(self.status), retry_after_ms=wait)

    def json(self):
        """The body as JSON. No digit is lost: what is no integer is a `Decimal`."""
        try:
            if _depth(self.body) > JSON_DEPTH_MAX:
                raise ValueError(f"it is nested more than {JSON_DEPTH_MAX} times")
            return _json.loads(self.body.decode(), parse_float=Decimal, parse_constant=_no_number)
        except (RecursionError, ValueError) as error:
            raise SoukError("source", "bad_json", "the source's answer is not the JSON that was expected", detail=error) from error


_BESIDE_BRACKETS = bytes(byte for byte in range(256) if byte not in b'"[{]}')
_STEPS = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")


def _depth(document):
    """How deep its arrays and objects are nested, without a look at what is in them."""
    if b"\\" in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_of_texts = b"".join(document.translate(None, _BESIDE_BRACKETS).split(b'"')[::2])
    return max(accumulate(array("b", outside_of_texts.translate(_STEPS))), default=0)


def _no_number(word):
    raise ValueError(f"{word} is no JSON")


_FAULTS = {
    "REFUSED": ("unavailable", "connection_refused", "the source refused the connection"),
    "UNREACHABLE": ("unavailable", "unreachable", "the source cannot be reached"),
    "EGRESS_REFUSED": ("configuration", "egress_refused", "the operator does not allow connections to this address"),
    "TLS": ("configuration", "tls_failed", "the source could not prove its identity over TLS"),
    "TIMEOUT": ("timeout", "source_timeout", "the source did not answer in time"),
    "RESET": ("unavailable", "connection_lost", "the source broke the connection"),
    "BAD_RESPONSE": ("source", "bad_response", "the source's answer is not valid HTTP or is too long"),
}


def _request_failed(fault, message):
    kind, code, told = _FAULTS[fault]
    return SoukError(kind, code, told, detail=message)


# TCP

_READ, _TLS = "read", "tls"


class Wire:
    """A tcp session's one wire. Writes never wait: they leave with the step. All that reads is a generator: `yield from` it."""

    def __init__(self, session):
        self._session = session
        self._unread = bytearray()
        self._closed = False

    def write(self, data):
        self._session.commands.append(wit.Command_Send(bytes(data)))

    def read(self):
        """What is there, at least one byte."""
        yield from self._more(1)
        return self._take(len(self._unread))

    def read_exact(self, count):
        yield from self._more(count)
        return self._take(count)

    def line(self, end=b"\r\n", bytes_max=64 << 10):
        """A line without its end."""
        at = searched = 0
        while (at := self._unread.find(end, searched)) < 0:
            searched = max(0, len(self._unread) - len(end) + 1)
            if len(self._unread) > bytes_max:
                raise Broken("source", "long_line", "the source's line has no end")
            yield from self._more(len(self._unread) + 1)
        return self._take(at + len(end))[:at]

    def start_tls(self):
        """Turns the wire into TLS. What was written before leaves first, in plain text."""
        if self._unread:
            # It would be read as if TLS had protected it.
            raise Broken("source", "unexpected_bytes", "the source sent data before the TLS handshake")
        self._session.commands.append(wit.Command_StartTls(wit.TlsHandshake(wit.TlsRecords.BARE, [])))
        yield _TLS

    def _more(self, count):
        while len(self._unread) < count:
            if self._closed:
                raise Broken("unavailable", "connection_lost", "the source closed the connection")
            yield _READ

    def _take(self, count):
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken


# Answers

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LOCAL_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity")


def moment(text):
    """RFC 3339 as a `datetime`; None stays None. A time without an offset is no moment."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise Broken("source", "no_moment", "the source sent something else than a time", detail=repr(text))
    return found


def _micros(value):
    return (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime) else value


def _local_micros(value):
    return (value - _LOCAL_EPOCH) // _MICROSECOND if isinstance(value, datetime) else value


def _days(value):
    return value.toordinal() - 719_163 if isinstance(value, date) else value


def _of_day(value):
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


def _number(value):
    if type(value) in (int, Decimal):
        return str(value).encode()
    if type(value) is not str or not _NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is no number")
    return value.encode()


Column = namedtuple("Column", "name kind native")


def _chunk(kind, values):
    """The values of one column of a batch in Arrow's layout, and how many bytes they count for. A column at a time: that takes a fraction of the
    time of a value at a time."""
    valid = None
    if None in values:
        valid = _bits([value is not None for value in values])
    if kind in _BYTES:
        make = _BYTES[kind]
        pieces = [b"" if value is None else make(value) for value in values]
        data = b"".join(pieces)
        offsets = list(accumulate(map(len, pieces), initial=0))
        return wit.Chunk(valid, wit.ColumnData_VarLen(wit.VarLen(offsets, data))), len(data)
    if kind == "boolean":
        flags = [False if value is None else value for value in values]
        if not all(isinstance(flag, bool) for flag in flags):
            raise TypeError("not all of them are booleans")
        return wit.Chunk(valid, wit.ColumnData_Bits(_bits(flags))), len(flags)
    layout, make, data = _NUMBERS[kind]
    if make:
        values = [make(value) for value in values]
    if valid:
        values = [0 if value is None else value for value in values]
    # The array refuses what is no number of this kind.
    return wit.Chunk(valid, data(array(layout, values).tolist())), 8 * len(values)


def _bits(flags):
    """As bits, the first flag the least."""
    digits = bytes(flags)[::-1].translate(_DIGITS).decode()
    return int(digits, 2).to_bytes((len(flags) + 7) // 8, "little")


_DIGITS = bytes(ord("1") if flag else ord("0") for flag in range(256))
# What makes a value of the contract of one of Python's.
_BYTES = {"decimal": _number, "text": str.encode, "bytes": bytes, "json": str.encode}
_NUMBERS = {
    "int64": ("q", None, wit.ColumnData_I64s),
    "float64": ("d", None, wit.ColumnData_F64s),
    "date": ("i", _days, wit.ColumnData_I32s),
    "time": ("q", _of_day, wit.ColumnData_I64s),
    "timestamp": ("q", _micros, wit.ColumnData_I64s),
    "local-timestamp": ("q", _local_micros, wit.ColumnData_I64s),
}


class Rows:
    """One answer: `columns` once, then `push` for each row. What goes beyond the request's limits fails."""

    def __init__(self, session, id, limits):
        self.limits = limits
        self.now = session.now  # the time of day when this was asked, in seconds since 1970
        self._session, self._id = session, id
        self._columns = self._broken = None
        self._rows = self._bytes = 0
        self._pending = []

    def columns(self, *columns):
        """`("id", "int64", "integer"), …`: name, type of the contract, the source's own word for it."""
        if self._columns is not None:
            self._fail("internal", "columns_twice", "the connector described its result twice")
        self._columns = tuple(Column(*column, *[""] * (3 - len(column))) for column in columns)
        self._session.describe(self._id, self._columns)

    def push(self, *values):
        """One value a column; None is NULL."""
        if self._columns is None or len(values) != len(self._columns):
            self._fail("internal", "row_length", "a row has as many values as there are columns")
        if self._rows == self.limits.rows_max:
            self._fail("limit-exceeded", "rows_limit", f"the result has more than {self.limits.rows_max} rows")
        self._rows += 1
        self._pending.append(values)
        if len(self._pending) == BATCH_ROWS:
            self._cut()

    def alive(self):
        """Answers a ping: the source answered, and it is not known whether these credentials may write."""
        self.columns(("server_version", "text"), ("read_only", "boolean"))
        self.push(None, None)

    def conclude(self):
        """The connector has said all."""
        if self._columns is None:
            self._fail("internal", "no_columns", "the connector did not describe its result")
        if self._pending:
            self._cut()
        if self._broken:
            raise self._broken

    def _cut(self):
        pending, self._pending = self._pending, []
        chunks = []
        for column, values in zip(self._columns, zip(*pending)):
            try:
                chunk, size = _chunk(column.kind, values)
            except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
                self._fail("source", "bad_value", "the source sent a value that does not fit its column", f"{column.name}, {column.kind}: {error}")
            chunks.append(chunk)
            self._bytes += size
        if self._bytes > self.limits.bytes_max:
            self._fail("limit-exceeded", "bytes_limit", f"the result has more than {self.limits.bytes_max} bytes")
        self._session.events.append(wit.Event_Batch(wit.Rows(self._id, wit.Batch(len(pending), chunks))))

    def _fail(self, kind, code, message, detail=None):
        """The request fails with the first of these, also if the connector goes on. If it does not, a tcp session is over."""
        self._broken = self._broken or SoukError(kind, code, message, detail=detail)
        raise self._broken


# The connector


def engine(slug, title, dialect="opaque", credential_types=("NONE",)):
    """One of the engines that a connector speaks for."""
    return wit.Engine(slug, title, dialect, list(credential_types))


_TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "object": dict, "array": list, "null": type(None)}


def _misfit(settings, schema):
    """The first setting that is not as the schema says, by its presence, type or enum. (A host holds settings against all of the schema when they
    are saved.)"""
    for name in schema.get("required", ()):
        if name not in settings:
            return f"{name} is missing"
    for name, value in settings.items():
        known = schema.get("properties", {}).get(name, {})
        kinds = known.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        is_one = any(isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds)
        if kinds and not is_one or value not in known.get("enum", [value]):
            return f"{name} is not as the schema says"
    return None


class Connector:
    """What an author writes. One object is one session at the source; what it says of itself are members of its class."""

    name = ""
    version = "0.1.0"
    need = "http"  # or "tcp", then `self.wire` is there; or "directory", then `open` reads what is in /data
    engines = ()
    settings = {"type": "object", "properties": {}}  # a JSON Schema of what `open` is told
    abilities = ()

    def open(self, settings):
        """Before the first request: a login, TLS. The settings have the types that the schema says."""

    def query(self, query, rows):
        raise unsupported("queries")

    def schema(self, filter, rows):
        raise unsupported("a catalog")

    def call(self, call, rows):
        raise unsupported("functions")

    def ping(self, limits, rows):
        raise unsupported("ping")

    def errand(self, errand, rows):
        raise unsupported("errands")


def unsupported(what):
    return SoukError("unsupported", "unsupported", f"this connector does not support {what}")


def export(connector):
    """The two classes that componentize-py looks for: `Connector, Session = souk.export(MyConnector)`."""

    class Exported:
        def describe(self):
            version = f"{connector.version}-dev.{NUMBER}" if NUMBER else connector.version
            need = _member(wit.Need, connector.need)
            schema = _json.dumps(connector.settings)
            return wit.Descriptor(connector.name, version, list(connector.engines), need, schema, list(connector.abilities))

    class Session(_Session):
        author = connector

    # It looks for the session in a module that is called as the interface is.
    sys.modules["connector"] = sys.modules[connector.__module__]
    return Exported, Session


_Task = namedtuple("_Task", "id rows work")


class _Session:
    """The contract's state machine: generators that wait for an input of the host."""

    def __init__(self, settings):
        self.settings = settings
        self.now = 0
        self.commands, self.events = [], []
        self.shapes = {}
        self.waiting = {}  # by the number of a request or pause, or _READ or _TLS
        self.last = 0
        # HTTP requests that the source has not answered yet: also those that nobody waits for any more, since it goes on with what was given up.
        self.under_way = 0
        self.connector = self.author()
        self.wire = self.connector.wire = Wire(self)

    @classmethod
    def open(cls, settings):
        told = _json.loads(settings.json)
        if misfit := _misfit(told, cls.author.settings):
            raise Err(SoukError("configuration", "invalid_settings", "the connection's settings do not fit this connector", detail=misfit).error)
        return cls(told)

    def start(self, now):
        self.now = now
        return self._call(None, None, lambda: self.connector.open(self.settings))

    def submit(self, id, request, now):
        self.now = now
        what = type(request).__name__.removeprefix("Request_").lower()
        asked = request.value
        # An errand is answered without columns.
        rows = None if what == "errand" else Rows(self, id, asked if what == "ping" else asked.limits)
        return self._call(id, rows, lambda: getattr(self.connector, what)(asked, rows))

    def receive(self, input):
        match input:
            case wit.Input_Response(told):
                self.under_way -= 1
                return self._resume(told.id, Response(told))
            case wit.Input_RequestFailed(told):
                self.under_way -= 1
                return self._resume(told.id, None, _request_failed(told.fault.name, told.message))
            case wit.Input_Woken(number):
                return self._resume(number)
            case wit.Input_Bytes(data):
                self.wire._unread += data
                if len(self.wire._unread) > UNREAD_MAX:
                    raise Err(SoukError("source", "unread_bytes", "the source sent more than was asked for").error)
                return self._resume(_READ)
            case wit.Input_TlsEstablished():
                return self._resume(_TLS)
            case wit.Input_Closed():
                self.wire._closed = True
                lost = Broken("unavailable", "connection_lost", "the source closed the connection")
                return self._resume(_READ if _READ in self.waiting else _TLS, None, lost)
        return self._step()

    def cancel(self, id):
        cancelled = SoukError("timeout", "cancelled", "the request was cancelled")
        for number, task in list(self.waiting.items()):
            if task.id == id:
                if self.author.need == "tcp":
                    # Half an exchange is on the wire, whatever the task waits for: the session cannot go on.
                    raise Err(cancelled.error)
                del self.waiting[number]
                self._close(task)
                self.events.append(wit.Event_Failed(wit.Failure(id, cancelled.error)))
        return self._step()

    def _close(self, task):
        """Nobody waits for it. What its `finally` does wrong is no fault of the others that the session serves."""
        try:
            task.work.close()
        except Exception as failure:
            print(_told(failure), file=sys.stderr)

    def describe(self, id, columns):
        """Tells the columns of a result, or under which number they were told before."""
        told = None
        if columns not in self.shapes:
            if len(self.shapes) == SHAPES_MAX:
                self.shapes.clear()
            self.shapes[columns] = len(self.shapes)
            told = [wit.Column(column.name, _member(wit.ColumnType, column.kind), True, column.native) for column in columns]
        self.events.append(wit.Event_Columns(wit.Shape(id, self.shapes[columns], told)))

    def _step(self):
        step = wit.Step(self.commands, self.events)
        self.commands, self.events = [], []
        return step

    def _call(self, id, rows, begin):
        def work():
            found = begin()
            if isinstance(found, CoroutineType):
                found.close()  # else Python complains, too
            if isinstance(found, (AsyncGeneratorType, CoroutineType)):
                raise SoukError("internal", "async", "what asks the source is a generator that yields: no async, and no await")
            if isinstance(found, GeneratorType):
                yield from found

        return self._run(_Task(id, rows, work()), None, None)

    def _resume(self, number, value=None, error=None):
        """Nobody waits for what comes after a request was cancelled."""
        task = self.waiting.pop(number, None)
        return self._run(task, value, error) if task else self._step()

    def _run(self, task, value, error):
        try:
            wanted = task.work.throw(error) if error else task.work.send(value)
            while isinstance(wanted, wit.HttpRequest) and self.under_way >= UNDER_WAY_MAX:
                unanswered = f"the source has not answered {UNDER_WAY_MAX} requests, those that were given up among them"
                wanted = task.work.throw(_request_failed("UNREACHABLE", unanswered))
        except StopIteration:
            self._end(task)
        except Exception as failure:
            # Who stops at a row may have left others unread; who comes to the end has read them.
            self._failed(task, failure, is_amid=task.rows is not None and task.rows._broken is not None)
        else:
            self._wait(task, wanted)
        return self._step()

    def _wait(self, task, wanted):
        match wanted:
            case wit.HttpRequest():
                wanted.id = number = self._next()
                self.under_way += 1
                self.commands.append(wit.Command_Request(wanted))
            case wit.Pause():
                wanted.id = number = self._next()
                self.commands.append(wit.Command_Wake(wanted))
            case "read" | "tls" if wanted not in self.waiting:
                number = wanted
            case _:
                self._failed(task, TypeError(f"{wanted!r} was yielded: yield what request() and pause() make, one task at a time reads the wire"))
                return
        self.waiting[number] = task

    def _next(self):
        self.last = self.last % 0xFFFF_FFFF + 1
        return self.last

    def _end(self, task):
        if task.id is None:
            self.events.append(wit.Event_Ready())
            return
        try:
            if task.rows:
                task.rows.conclude()
        except Exception as failure:
            self._failed(task, failure)
        else:
            self.events.append(wit.Event_Done(task.id))

    def _failed(self, task, failure, is_amid=False):
        match failure:
            case SoukError():
                known = failure
            case MemoryError():
                known = SoukError("limit-exceeded", "memory", "the answer does not fit the connector's memory")
            case _:
                told = _told(failure)
                print(told, file=sys.stderr)
                known = SoukError("internal", "exception", "the connector failed", detail=told)
        is_lost = self.author.need == "tcp" and (is_amid or isinstance(failure, Broken) or not isinstance(failure, SoukError))
        if task.id is None or is_lost:
            self.commands, self.events = [], []
            raise Err(known.error)
        self.events.append(wit.Event_Failed(wit.Failure(task.id, known.error)))


def _told(failure):
    """An exception with where it was raised. (Python's own way reads the source's files, which are not there.)"""
    lines, trace = [f"{type(failure).__name__}: {failure}"], failure.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        lines.append(f"  {code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    return "\n".join(lines[:1] + lines[:0:-1])


def _member(enum, name):
    return enum[name.upper().replace("-", "_")]
