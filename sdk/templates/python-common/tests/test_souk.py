"""What `souk.py` promises of every connector: values of all types, limits, faults of the source and of the connector."""

import json
import unittest
from contextlib import redirect_stderr
from datetime import date, datetime, time, timezone
from decimal import Decimal
from io import StringIO
from types import SimpleNamespace

import souk
from componentize_py_types import Err
from scripted import LIMITS, Origin, Refused, Session
from souk import SoukError, wit

FIRST, LAST = -(2**63), 2**63 - 1
VALUES = {
    "boolean": ([True, None, False] * 3, [True, None, False] * 3),
    "int64": ([FIRST, None, LAST], [FIRST, None, LAST]),
    "float64": ([1.5, None, -0.0, 7], [1.5, None, -0.0, 7.0]),
    "decimal": ([Decimal("1.50"), 10**30, "-0.10", None], [b"1.50", b"1" + b"0" * 30, b"-0.10", None]),
    "text": (["", None, "é", "\0"], [b"", None, "é".encode(), b"\0"]),
    "bytes": ([b"\xff", None], [b"\xff", None]),
    "date": ([date(1970, 1, 2), None, date(1, 1, 1), -5], [1, None, -719_162, -5]),
    "time": ([time(0, 0, 1, 5), None, 7], [1_000_005, None, 7]),
    "timestamp": ([datetime(1970, 1, 1, 0, 0, 1, 5, timezone.utc), None, -1], [1_000_005, None, -1]),
    "local-timestamp": ([datetime(1970, 1, 1, 0, 0, 1, 5), None, -1], [1_000_005, None, -1]),
    "json": (['{"a": 1}', None], [b'{"a": 1}', None]),
}
MISFITS = {
    "boolean": 1,
    "int64": 2**63,
    "float64": "1.5",
    "decimal": "1,50",
    "text": "\ud800",
    "bytes": "text",
    "date": "1970-01-01",
    "time": 1.5,
    "timestamp": datetime(1970, 1, 1),
    "local-timestamp": datetime(1970, 1, 1, tzinfo=timezone.utc),
    "json": {"a": 1},
}


def asked(query, answers=None, **members):
    """What a connector says whose `query` is this."""
    kind = type("Asked", (souk.Connector,), {"query": query, "ping": lambda self, limits, rows: rows.alive(), **members})
    exported, session = souk.export(kind)
    origin = Origin(answers or {})
    return Session(SimpleNamespace(Connector=exported, Session=session), {}, origin)


class Values(unittest.TestCase):
    def test_values_of_every_type_arrive(self):
        for kind, (given, arrived) in VALUES.items():
            with self.subTest(kind):

                def query(self, query, rows):
                    rows.columns(("value", kind))
                    for value in given:
                        rows.push(value)

                self.assertEqual(asked(query).query("x"), [[value] for value in arrived])

    def test_a_value_of_another_type_is_the_sources_fault(self):
        for kind, value in MISFITS.items():
            with self.subTest(kind):

                def query(self, query, rows):
                    rows.columns(("value", kind))
                    rows.push(value)

                with self.assertRaises(Refused) as refused:
                    asked(query).query("x")
                self.assertEqual((refused.exception.kind, refused.exception.error.code), ("source", "bad_value"))

    def test_large_results_come_in_batches_and_end_at_the_limits(self):
        def query(self, query, rows):
            rows.columns(("n", "int64"), ("text", "text"))
            for n in range(int(query.text)):
                rows.push(n, "x" * 100)

        session = asked(query)
        self.assertEqual([row[0] for row in session.query("5000")], list(range(5000)))
        self.assertEqual(session.batches, 5)
        self.assertEqual(len(session.query("10000")), 10_000)
        for limits, statement, code in [(LIMITS, "10001", "rows_limit"), (wit.Limits(10_000, 100_000, 1_000), "3000", "bytes_limit")]:
            with self.assertRaises(Refused) as refused:
                session.ask(wit.Request_Query(wit.Query(statement, [], limits)))
            self.assertEqual((refused.exception.kind, refused.exception.error.code), ("limit-exceeded", code))


class Faults(unittest.TestCase):
    def test_an_exception_is_the_connectors_and_says_where_it_was_raised(self):
        def query(self, query, rows):
            yield souk.pause(5)
            raise KeyError("no such thing")

        with redirect_stderr(StringIO()) as printed, self.assertRaises(Refused) as refused:
            asked(query).query("x")
        self.assertEqual(refused.exception.kind, "internal")
        for told in (printed.getvalue(), refused.exception.error.detail):
            self.assertIn("KeyError: 'no such thing'\n  test_souk.py:", told)

    def test_what_would_wait_is_told_what_to_do_instead(self):
        async def query(self, query, rows):
            rows.columns(("name", "text"))

        async def generator(self, query, rows):
            rows.columns(("name", "text"))
            yield souk.pause(5)

        for waits in (query, generator):
            with self.subTest(waits.__name__), self.assertRaises(Refused) as refused:
                asked(waits).query("x")
            self.assertEqual((refused.exception.kind, refused.exception.error.code), ("internal", "async"))

    def test_what_is_believed_of_a_source_is_its_own_fault(self):
        def query(self, query, rows):
            document = (yield souk.request("GET", "/x")).classified().json()
            with souk.believed():
                document["items"][0].lower()

        for body in ["[]", "{}", '{"items": [7]}', "null", "{", "[" * 100_000, '["]",' * 1_000, "NaN", "9" * 5_000]:
            with self.subTest(body[:20]), self.assertRaises(Refused) as refused:
                asked(query, {"/x": (200, body)}).query("x")
            self.assertEqual(refused.exception.kind, "source")

    def test_a_source_leads_below_its_own_address(self):
        for path in ["/", "/items?page=2", "/.well-known/b..c?d=/../e", "/a%20b"]:
            self.assertEqual(souk.led_to(path), path)
        elsewhere = ["", "items", "https://elsewhere/", "/..", "/a/./b", "/%2E%2e/b", "/a/..%2fb", "/..;a/b"]
        unsent = ["/a b", "/a\n", "/a\x7f", "/a#b", "/a\\b", "/a<b", "/a" * (8 << 10), "/" + "ä" * (4 << 10), "/\ud800", 7, None]
        for path in elsewhere + unsent:
            with self.subTest(ascii(path)[:20]), self.assertRaises(SoukError) as refused:
                souk.led_to(path)
            self.assertEqual((refused.exception.kind, refused.exception.error.code), ("source", "bad_path"))

    def test_digits_and_nesting_of_a_document_are_kept(self):
        def query(self, query, rows):
            document = (yield souk.request("GET", "/x")).classified().json()
            rows.columns(("price", "decimal"), ("text", "text"))
            rows.push(document["price"], document["text"])

        text = '[[[["\\'
        document = '{"price": 12345678901234567890.00100, "text": %s, "more": %s}' % (json.dumps(text), "[" * 150 + "]" * 150)
        self.assertEqual(asked(query, {"/x": (200, document)}).query("x"), [[b"12345678901234567890.00100", text.encode()]])

    def test_nesting_is_seen_whatever_texts_hold(self):
        for document, depth in [("1", 0), ("[]", 1), ('[{"a": [{}]}, []]', 4), (r'["\\", "]]\"]", [["\\\"["]]]', 3), ('["]",' * 9, 9)]:
            with self.subTest(document):
                self.assertEqual(souk._depth(document.encode()), depth)

        def query(self, query, rows):
            (yield souk.request("GET", "/x")).json()

        with self.assertRaises(Refused) as refused:
            asked(query, {"/x": (200, "[" * 201 + "]" * 201)}).query("x")
        self.assertEqual(refused.exception.error.code, "bad_json")

    def test_settings_are_of_the_types_that_the_schema_says(self):
        properties = {"port": {"type": "integer"}, "mode": {"enum": ["a", "b"]}, "name": {"type": ["string", "null"]}}
        connector = type("Asked", (souk.Connector,), {"settings": {"properties": properties, "required": ["port"]}})
        exported, session = souk.export(connector)
        app = SimpleNamespace(Connector=exported, Session=session)
        Session(app, {"port": 1, "mode": "a", "name": None, "other": 5}, Origin({}))
        for wrong in [{}, {"port": "1"}, {"port": True}, {"port": 1, "mode": "c"}, {"port": 1, "name": 7}]:
            with self.subTest(wrong), self.assertRaises(Refused) as refused:
                Session(app, wrong, Origin({}))
            self.assertEqual(refused.exception.kind, "configuration")

    def test_requests_and_pauses_of_one_session_are_told_apart(self):
        def query(self, query, rows):
            rows.columns(("path", "text"))
            for path in ("/a", "/b"):
                yield souk.pause(1)
                rows.push((yield souk.request("GET", path + query.text)).text())

        session = asked(query, abilities=["pipelining"]).session
        steps = {id: session.submit(id, wit.Request_Query(wit.Query(f"?{id}", [], LIMITS)), 0) for id in (1, 2, 3)}
        ended = {}
        [cancelled] = session.cancel(2).events
        self.assertEqual(cancelled.value.error.code, "cancelled")
        # What it waited for comes all the same, and is nobody's.
        self.assertEqual(session.receive(wit.Input_Woken(steps.pop(2).commands[0].value.id)), wit.Step([], []))
        while len(ended) < 2:
            for id, step in list(steps.items()):
                for command in step.commands:
                    match command:
                        case wit.Command_Wake(pause):
                            steps[id] = session.receive(wit.Input_Woken(pause.id))
                        case wit.Command_Request(request):
                            response = wit.HttpResponse(request.id, 200, [], request.path.encode())
                            steps[id] = session.receive(wit.Input_Response(response))
                for event in steps[id].events:
                    match event:
                        case wit.Event_Batch(told):
                            ended[told.id] = told.batch.chunks[0].data.value.bytes
        self.assertEqual(ended, {1: b"/a?1/b?1", 3: b"/a?3/b?3"})

    def test_what_was_given_up_is_under_way_until_the_source_answers_it(self):
        def query(self, query, rows):
            rows.columns(("status", "int64"))
            rows.push((yield souk.request("GET", "/slow")).status)

        session = asked(query, abilities=["pipelining", "cancel"]).session
        submit = lambda id: session.submit(id, wit.Request_Query(wit.Query("x", [], LIMITS)), 0)
        answered = lambda number: session.receive(wit.Input_Response(wit.HttpResponse(number, 200, [], b"")))
        given_up = []
        for id in range(1, 129):
            [request] = submit(id).commands
            given_up.append(request.value.id)
            self.assertEqual(session.cancel(id).events[-1].value.error.code, "cancelled")
        # One more would be refused by the host: it is not asked for.
        step = submit(129)
        self.assertEqual(step.commands, [])
        self.assertEqual(step.events[-1].value.error.class_, wit.ErrorClass.UNAVAILABLE)
        # As one is answered, or fails, another one may be asked.
        self.assertEqual(answered(given_up[0]), wit.Step([], []))
        [request] = submit(130).commands
        self.assertEqual(submit(131).commands, [])
        session.receive(wit.Input_RequestFailed(wit.HttpFailure(given_up[1], wit.WireFault.TIMEOUT, "")))
        self.assertEqual(len(submit(132).commands), 1)
        self.assertEqual(answered(request.value.id).events[-1], wit.Event_Done(130))

    def test_what_is_given_up_ends_alone_whatever_it_does_at_its_end(self):
        def query(self, query, rows):
            try:
                yield souk.request("GET", "/slow")
            finally:
                yield souk.request("DELETE", "/slow")

        session = asked(query, abilities=["pipelining", "cancel"]).session
        for id in (1, 2):
            session.submit(id, wit.Request_Query(wit.Query("x", [], LIMITS)), 0)
        for id in (1, 2):
            with redirect_stderr(StringIO()) as printed:
                [failed] = session.cancel(id).events
            self.assertEqual((failed.value.id, failed.value.error.code), (id, "cancelled"))
            self.assertIn("GeneratorExit", printed.getvalue())


class Wires(unittest.TestCase):
    """What is left on a wire would be read as the next request's."""

    def test_a_cancelled_request_ends_the_session_whatever_it_waits_for(self):
        for what in ("read", "pause"):

            def query(self, query, rows):
                self.wire.write(b"x")
                if query.text == "pause":
                    yield souk.pause(5)
                yield from self.wire.read()

            session = asked(query, need="tcp").session
            session.submit(1, wit.Request_Query(wit.Query(what, [], LIMITS)), 0)
            with self.subTest(what), self.assertRaises(Err) as ended:
                session.cancel(1)
            self.assertEqual(ended.exception.value.code, "cancelled")

    def test_rows_that_break_a_request_before_its_end_end_the_session(self):
        def query(self, query, rows):
            rows.columns(("n", "int64"))
            try:
                for at in range(souk.BATCH_ROWS):
                    rows.push(query.text if at == 5 else at)
                    with souk.believed():
                        {"believed": [].pop, "moment": lambda: souk.moment("now")}.get(query.text, bool)()
            except SoukError:
                if query.text != "read":
                    raise
                # What is left of the answer is read.

        few, all = wit.Limits(1, 1 << 20, 1_000), LIMITS
        for text, limits, code, is_over in [
            ("limit", few, "rows_limit", True),
            ("value", all, "bad_value", True),
            ("believed", all, "bad_answer", True),
            ("moment", all, "no_moment", True),
            ("read", few, "rows_limit", False),
            ("read", all, "bad_value", False),
        ]:
            session = asked(query, need="tcp").session
            submit = lambda: session.submit(1, wit.Request_Query(wit.Query(text, [], limits)), 0)
            with self.subTest(text=text, code=code):
                if is_over:
                    with self.assertRaises(Err) as ended:
                        submit()
                    error = ended.exception.value
                else:
                    error = submit().events[-1].value.error
                self.assertEqual(error.code, code)


class Described(unittest.TestCase):
    def test_a_connector_says_what_it_is(self):
        connector = type("Asked", (souk.Connector,), {"name": "asked", "need": "tcp", "engines": [souk.engine("asked", "Asked")]})
        exported, _ = souk.export(connector)
        told = exported().describe()
        self.assertEqual((told.name, told.version, told.need), ("asked", "0.1.0", wit.Need.TCP))
        self.assertEqual(json.loads(told.settings_schema)["type"], "object")

    def test_what_is_not_written_is_unsupported(self):
        with self.assertRaises(Refused) as refused:
            Session(SimpleNamespace(Session=souk.export(souk.Connector)[1]), {}, Origin({})).query("x")
        self.assertEqual(refused.exception.kind, "unsupported")

    def test_errors_have_classes_of_the_contract(self):
        with self.assertRaises(KeyError):
            SoukError("anything", "code", "message")
