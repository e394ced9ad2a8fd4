"""Asks a host, and takes no other answer than the one that is expected."""

import httpx

# A debug host on a busy machine compiles what it has not loaded yet.
ANSWERS_WITHIN = 120


class Souk:
    def __init__(self, base_url: str, headers: dict[str, str]):
        self.http = httpx.Client(base_url=base_url, headers=headers, timeout=ANSWERS_WITHIN)

    @classmethod
    def by_key(cls, base_url: str, key: str) -> "Souk":
        return cls(base_url, {"x-api-key": key})

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
        return self.http.request(method, path, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def get(self, path: str):
        return data(self.ask("GET", path), 200)

    def post(self, path: str, body: object, status: int = 200):
        return data(self.ask("POST", path, body), status)

    def patch(self, path: str, body: object):
        return data(self.ask("PATCH", path, body), 200)


def data(answer: httpx.Response, status: int):
    assert answer.status_code == status, f"{answer.request.method} {answer.request.url}: {answer.status_code}, not {status}: {answer.text}"
    return answer.json()["data"] if answer.content else None


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """The message of a refusal, which gives nobody a cookie."""
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == (status, code), f"{answer.status_code}: {answer.text}"
    assert "set-cookie" not in answer.headers, answer.headers
    return answer.json()["error"]["message"]
