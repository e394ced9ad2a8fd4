"""Native tests: a session on an API of which is said what it answers."""

import unittest

import app
from scripted import LIMITS, Origin, Refused, Session
from souk import wit

KEY = {"api_key": "secret"}


class Pages(unittest.TestCase):
    def test_pages_follow_each_other(self):
        api = Origin({
            "/items": (200, '{"items": [{"id": 1, "name": "pear", "price": 1.50, "at": null}], "next": "/more"}'),
            "/more": (200, '{"items": [{"id": 2, "name": "fig", "price": null, "at": "1970-01-01T00:00:01Z"}], "next": null}'),
        })
        session = Session(app, KEY, api)
        self.assertEqual(session.query("/items"), [[1, b"pear", b"1.50", None], [2, b"fig", None, 1_000_000]])
        self.assertEqual(api.requests[0].headers, [wit.Header("authorization", "Bearer secret")])
        # The second time the columns are known.
        self.assertEqual(len(session.query("/items")), 2)

    def test_a_parameter_is_one_value(self):
        none = (200, '{"items": [], "next": null}')
        session = Session(app, KEY, Origin({"/items?q=a%26b": none, "/items": none}))
        self.assertEqual(session.query("/items", wit.Value_Text("a&b")), [])
        # One that the caller has left out is none.
        self.assertEqual(session.query("/items", wit.Value_Null(None)), [])
        with self.assertRaises(Refused) as refused:
            session.query("/items", wit.Value_Int64(1))
        self.assertEqual((refused.exception.kind, refused.exception.error.parameter), ("invalid-request", 0))

    def test_who_leaves_ends_what_he_asked_and_no_other(self):
        self.assertIn("cancel", app.Connector().describe().abilities)
        api = Origin({"/items": (200, '{"items": [], "next": null}')})
        session = Session(app, KEY, api).session
        query = wit.Request_Query(wit.Query("/items", [], LIMITS))
        leaving, staying = (session.submit(id, query, 0).commands[0] for id in (11, 12))
        [failed] = session.cancel(11).events
        self.assertEqual(failed.value.id, 11)
        # The source goes on with it, and answers nobody.
        self.assertEqual(session.receive(*api.take(leaving)), wit.Step([], []))
        self.assertEqual(session.receive(*api.take(staying)).events[-1], wit.Event_Done(12))

    def test_refusals_have_classes(self):
        api = Origin({
            "/items": (429, "", {"retry-after": "3"}),
            "/text": (200, "sorry"),
            "/other": (200, '{"items": 7}'),
            "/astray": (200, '{"items": [], "next": "/items page=2"}'),
        })
        session = Session(app, KEY, api)
        refusals = {"/items": "rate-limited", "/else": "not-found", "else": "invalid-request", "/text": "source", "/other": "source", "/astray": "source"}
        for statement, kind in refusals.items():
            with self.subTest(statement), self.assertRaises(Refused) as refused:
                session.query(statement)
            self.assertEqual(refused.exception.kind, kind)
        with self.assertRaises(Refused) as refused:
            session.query("/items")
        self.assertEqual(refused.exception.error.retry_after_ms, 3_000)

    def test_settings_that_do_not_fit_are_refused(self):
        with self.assertRaises(Refused) as refused:
            Session(app, {}, Origin({}))
        self.assertEqual(refused.exception.kind, "configuration")
