"""Native tests: a session on a file of this project."""

import unittest
from pathlib import Path

import app
from scripted import Refused, Session
from souk import wit

app.DIRECTORY = str(Path(__file__).parent.parent / "data")


def session(file="people.csv"):
    return Session(app, {"database": file}, None)


def texts(*values):
    return [wit.Value_Text(value) for value in values]


class Files(unittest.TestCase):
    def test_columns_are_chosen_and_rows_filtered(self):
        people = session()
        self.assertEqual(people.query("name, born", *texts("city", "Alexandria")), [[b"Hypatia", None]])
        self.assertEqual(len(people.query("*")), 4)

    def test_what_is_not_there_is_told(self):
        for file, kind in [("absent.csv", "unavailable"), ("../souk-test.toml", "configuration")]:
            with self.subTest(file), self.assertRaises(Refused) as refused:
                session(file)
            self.assertEqual(refused.exception.kind, kind)
        for statement, parameters, kind in [("age", [], "not-found"), ("*", texts("city"), "invalid-request")]:
            with self.subTest(statement), self.assertRaises(Refused) as refused:
                session().query(statement, *parameters)
            self.assertEqual(refused.exception.kind, kind)
