"""A connector for servers that speak RESP, as Redis does: a statement is one command that reads (`GET greeting`), a parameter `?` in it."""

import souk
from souk import Broken, SoukError, wit

# Whatever a statement says, it must not change the source: what is not known to read is not sent.
COMMANDS = {"GET", "MGET", "STRLEN", "LRANGE", "SMEMBERS", "HGETALL", "ZRANGE", "TYPE"}
# What a server says is not believed without bounds.
TEXT_BYTES_MAX = 8 << 20
ITEMS_MAX = 100_000


class MyConnector(souk.Connector):
    name = "my-connector"
    version = "0.1.0"
    need = "tcp"
    engines = [souk.engine("my-connector", "MyConnector", dialect="opaque", credential_types=["PASSWORD", "NONE"])]
    # What a connection is configured with. A host passes on what is named here, and nothing else; a secret has "writeOnly": true.
    settings = {
        "type": "object",
        "properties": {
            "password": {"type": "string", "writeOnly": True, "title": "Password"},
            "ssl_mode": {"type": "string", "enum": ["disable", "require", "verify-ca", "verify-full"], "default": "require", "title": "TLS"},
        },
    }

    def open(self, settings):
        """The wire stands already."""
        if settings.get("ssl_mode", "") not in ("", "disable"):
            yield from self.wire.start_tls()
        password = settings.get("password")
        if password is not None:
            try:
                yield from self.ask(["AUTH", password])
            except SoukError as error:
                if error.error.code != "refused":
                    raise
                raise SoukError("authentication", "password_rejected", "the source refused the password", detail=error.error.detail) from error

    def query(self, query, rows):
        values = yield from self.ask(words(query))
        rows.columns(("value", "text", "string"))
        for value in values:
            rows.push(value)

    def ping(self, limits, rows):
        yield from self.ask(["PING"])
        rows.alive()

    def ask(self, words):
        """Sends a command and reads its reply: one value, or a list of values."""
        words = [word.encode() for word in words]
        self.wire.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        head = yield from self.wire.line()
        if not head.startswith(b"*"):
            return [(yield from self.value(head))]
        values = []
        for _ in range(size(head, ITEMS_MAX) or 0):
            head = yield from self.wire.line()
            if head.startswith(b"-"):
                raise Broken("source", "refused", "the source refused the command", detail=text(head[1:]))
            values.append((yield from self.value(head)))
        return values

    def value(self, head):
        kind, rest = head[:1], head[1:]
        if kind in (b"+", b":"):
            return text(rest)
        if kind == b"-":
            raise SoukError("source", "refused", "the source refused the command", detail=text(rest))
        if kind != b"$":
            raise Broken("source", "bad_reply", "the source does not speak RESP")
        length = size(head, TEXT_BYTES_MAX)
        if length is None:
            return None
        data = yield from self.wire.read_exact(length + 2)
        if not data.endswith(b"\r\n"):
            raise Broken("source", "bad_reply", "the source does not speak RESP")
        return text(data[:-2])


def words(query):
    """The command's words, `?` replaced by what is bound: a value is one word, whatever it holds."""
    values = enumerate(query.parameters)
    found = []
    for word in query.text.split():
        if word == "?":
            match next(values, None):
                case (_, wit.Value_Text(value) | wit.Value_Int64(value)):
                    word = str(value)
                case (at, _):
                    raise SoukError("invalid-request", "bad_value", "must be a text or an integer", parameter=at)
                case None:
                    raise SoukError("invalid-request", "bad_value", "the statement has more ? than parameters")
        found.append(word)
    if not found or found[0].upper() not in COMMANDS:
        raise souk.unsupported("commands that do not read")
    return found


def text(data):
    """An answer is a text. Where it is none, the rest of the reply would be taken for the next one's."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Broken("source", "no_text", "the value is no UTF-8") from error


def size(head, most):
    """A length; None is the protocol's -1, which is NULL."""
    digits = head[1:]
    if digits == b"-1":
        return None
    if not digits.isdigit() or len(digits) > 9 or int(digits) > most:
        raise Broken("source", "bad_length", "the source announced a length that cannot be")
    return int(digits)


Connector, Session = souk.export(MyConnector)
