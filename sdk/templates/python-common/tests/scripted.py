"""A session for native tests, on a source of which is said beforehand what it answers."""

import json

from componentize_py_types import Err
from wit_world.imports import types as wit

LIMITS = wit.Limits(rows_max=10_000, bytes_max=16 << 20, timeout_ms=10_000)
NOW = 1_767_225_600


class Refused(Exception):
    """The error of the contract that a request, or the session, ended with."""

    def __init__(self, error):
        super().__init__(f"{error.class_.name}: {error.code}: {error.message}: {error.detail}")
        self.error = error
        self.kind = error.class_.name.lower().replace("_", "-")


class Origin:
    """An API: `{"/items": (200, '{"items": []}')}`, with headers as a third member if there are some. All else is 404."""

    def __init__(self, answers):
        self.answers = answers
        self.requests = []

    def take(self, command):
        match command:
            case wit.Command_Request(request):
                self.requests.append(request)
                status, body, *headers = self.answers.get(request.path, (404, ""))
                headers = [wit.Header(*pair) for pair in (headers or [{}])[0].items()]
                return [wit.Input_Response(wit.HttpResponse(request.id, status, headers, body.encode()))]
            case wit.Command_Wake(pause):
                return [wit.Input_Woken(pause.id)]
        raise AssertionError(f"not expected: {command}")


class Wire:
    """A server: what it expects, and what it says to that, in pieces of so many bytes."""

    def __init__(self, *exchanges, pieces=1 << 20):
        self.exchanges, self.pieces = list(exchanges), pieces
        self.sent = b""

    def take(self, command):
        match command:
            case wit.Command_Send(data):
                self.sent += data
                if not self.exchanges or not self.exchanges[0][0].startswith(self.sent):
                    raise AssertionError(f"not expected: {self.sent}")
                if self.sent != self.exchanges[0][0]:
                    return []
                _, answer = self.exchanges.pop(0)
                self.sent = b""
                return [wit.Input_Bytes(answer[at : at + self.pieces]) for at in range(0, len(answer), self.pieces)]
            case wit.Command_StartTls():
                return [wit.Input_TlsEstablished()]
        raise AssertionError(f"not expected: {command}")


class Session:
    """A session of the connector whose module is `app`."""

    def __init__(self, app, settings, source):
        self.source = source
        self.session = self._on_its_way(lambda: app.Session.open(wit.Settings("", json.dumps(settings))))
        events = self._carry_out(lambda: self.session.start(NOW))
        assert events == [wit.Event_Ready()], events

    def query(self, text, *parameters):
        """The rows, as Python has their values; text, bytes, decimals and JSON as bytes."""
        return self.ask(wit.Request_Query(wit.Query(text, list(parameters), LIMITS)))

    def ping(self):
        return self.ask(wit.Request_Ping(LIMITS))

    def ask(self, request):
        rows, columns, self.batches = [], None, 0
        events = self._carry_out(lambda: self.session.submit(1, request, NOW))
        assert events and type(events[-1]) in (wit.Event_Done, wit.Event_Failed), events
        for event in events:
            match event:
                case wit.Event_Columns(shape):
                    columns = shape.columns
                case wit.Event_Batch(told):
                    chunks = [values(chunk, told.batch.rows) for chunk in told.batch.chunks]
                    self.batches += 1
                    rows += [list(row) for row in zip(*chunks, strict=True)]
                case wit.Event_Failed(failure):
                    raise Refused(failure.error)
        assert columns is not None or self.session.shapes
        return rows

    def _carry_out(self, call):
        events, calls = [], [call]
        while calls:
            step = self._on_its_way(calls.pop(0))
            events += step.events
            for command in step.commands:
                for told in self.source.take(command):
                    calls.append(lambda told=told: self.session.receive(told))
        return events

    def _on_its_way(self, call):
        try:
            return call()
        except Err as error:
            raise Refused(error.value) from error


def values(chunk, rows):
    """What a chunk of a batch holds."""
    match chunk.data:
        case wit.ColumnData_VarLen(told):
            found = [told.bytes[begin:end] for begin, end in zip(told.offsets, told.offsets[1:])]
        case wit.ColumnData_Bits(data):
            found = [bool(data[at // 8] >> at % 8 & 1) for at in range(rows)]
        case data:
            found = data.value
    assert len(found) == rows, f"{len(found)} values in {rows} rows"
    valid = [chunk.validity is None or chunk.validity[at // 8] >> at % 8 & 1 for at in range(rows)]
    return [value if is_valid else None for value, is_valid in zip(found, valid)]
