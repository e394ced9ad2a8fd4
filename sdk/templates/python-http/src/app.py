"""A connector for an API that lists things page by page: a statement is a path (`/items`), and its parameters become the query's `q`.

The API answers `{"items": [{"id": 1, "name": "pear", "price": "1.50", "at": "2026-01-01T00:00:00Z"}], "next": "/items?page=2"}`.
"""

import souk
from souk import SoukError, wit


class MyConnector(souk.Connector):
    name = "my-connector"
    version = "0.1.0"
    need = "http"
    engines = [souk.engine("my-connector", "MyConnector", dialect="opaque", credential_types=["API_KEY"])]
    abilities = ["pipelining", "cancel"]
    # What a connection is configured with. A host passes on what is named here, and nothing else; a secret has "writeOnly": true.
    settings = {
        "type": "object",
        "required": ["api_key"],
        "properties": {"api_key": {"type": "string", "minLength": 1, "writeOnly": True, "title": "API key"}},
    }

    def open(self, settings):
        self.key = settings["api_key"]

    def query(self, query, rows):
        path = query.text
        if not path.startswith("/"):
            raise SoukError("invalid-request", "no_path", "a statement is a path, as in /items")
        for at, value in enumerate(query.parameters):
            match value:
                case wit.Value_Text(text):
                    path += f"{'&' if '?' in path else '?'}q={souk.encoded(text)}"
                case wit.Value_Null():
                    pass  # the caller has left it out
                case _:
                    raise SoukError("invalid-request", "no_text", "must be a text", parameter=at)
        rows.columns(("id", "int64", "integer"), ("name", "text", "string"), ("price", "decimal", "decimal"), ("at", "timestamp", "date-time"))
        while path:
            response = yield self.get(path)
            page = response.classified().json()
            with souk.believed():
                for item in page["items"]:
                    rows.push(item["id"], item["name"], item["price"], souk.moment(item["at"]))
                path = page["next"] and souk.led_to(page["next"])

    def ping(self, limits, rows):
        """Asks for something that needs the key."""
        response = yield self.get("/items")
        response.classified()
        rows.alive()

    def get(self, path):
        return souk.request("GET", path, {"authorization": f"Bearer {self.key}"})


Connector, Session = souk.export(MyConnector)
