"""Native tests: a session on a server of which is said what it expects and sends."""

import unittest

import app
from scripted import Refused, Session, Wire
from souk import wit

PLAIN = {"ssl_mode": "disable"}


class Commands(unittest.TestCase):
    def test_a_reply_arrives_byte_by_byte(self):
        wire = Wire((b"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n", b"*2\r\n$5\r\nhello\r\n$-1\r\n"), pieces=1)
        self.assertEqual(Session(app, PLAIN, wire).query("MGET a ?", wit.Value_Text("b")), [[b"hello"], [None]])

    def test_nothing_that_writes_is_sent(self):
        session = Session(app, PLAIN, Wire())
        for statement in ["SET a b", "", "flushall"]:
            with self.subTest(statement), self.assertRaises(Refused) as refused:
                session.query(statement)
            self.assertEqual(refused.exception.kind, "unsupported")

    def test_a_wrong_password_is_the_credentials_fault(self):
        wire = Wire((b"*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n", b"-WRONGPASS invalid password\r\n"))
        with self.assertRaises(Refused) as refused:
            Session(app, {"password": "wrong", **PLAIN}, wire)
        self.assertEqual(refused.exception.kind, "authentication")

    def test_tls_comes_first(self):
        wire = Wire((b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"))
        self.assertEqual(Session(app, {"ssl_mode": "require"}, wire).ping(), [[None, None]])

    def test_nonsense_ends_the_session(self):
        for answer in [b"!what\r\n", b"$1000000000000\r\n", b"$x\r\n", b"$2\r\nabcd", b"\r\n"]:
            with self.subTest(answer), self.assertRaises(Refused) as refused:
                Session(app, PLAIN, Wire((b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", answer))).query("GET a")
            self.assertEqual(refused.exception.kind, "source")
