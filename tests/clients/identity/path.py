"""Coming in, as people do: by the link of a mail that a real relay took, and by the pages of a real OpenID Connect provider. And not coming in,
with what is old, used, somebody else's or another client's.

    path.py READY PROVIDER_PORT RELAY_PORT PROVIDER_DIRECTORY WORK_DIRECTORY
"""

import base64
import contextlib
import email.policy
import hashlib
import html.parser
import itertools
import json
import mailbox
import pathlib
import re
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, quote_plus, urljoin, urlsplit

import httpx

from processes import free_port, running, until
from souk import Souk, data, refused

SIGN_IN = "/users/google-oauth"
# Of the page that people sign in on: their browser is sent back there, and nothing has to listen for that.
BACK = "http://127.0.0.1:1/back"
# The characters are such as have to be encoded on the way.
CLIENTS = [
    {"client_id": id, "client_secret": f"hush & hush, {id}+%", "redirect_uris": [BACK], "grant_types": ["authorization_code"]}
    for id in ("souk", "another")
]
USERS = {
    "ann": {"email": "Ann@example.org", "email_verified": True},
    "bob": {"email": "bob@example.org", "email_verified": True},
    "eve": {"email": "eve@example.org", "email_verified": False},
    "nobody": {"email": "nobody@example.org", "email_verified": True},
}
# For tokens that say more than who it is, which this provider otherwise tells only where it is asked.
SAYING_ALL = json.dumps({"id_token": {"email": None, "email_verified": None}})


@dataclass
class Provider:
    """One that runs, and how a page speaks to it."""

    document: dict

    def attempt(self, login: str, client: str = "souk", nonce: str | None = None, claims: str | None = None) -> "Attempt":
        """Goes through the provider's pages in a browser of its own, until it is sent back."""
        nonce, state, verifier = nonce or secrets.token_urlsafe(), secrets.token_urlsafe(), secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {"response_type": "code", "client_id": client, "redirect_uri": BACK, "scope": "openid email", "state": state, "nonce": nonce}
        asked |= {"code_challenge": challenge, "code_challenge_method": "S256"} | ({"claims": claims} if claims else {})
        with httpx.Client() as browser:
            answer = browser.get(self.document["authorization_endpoint"], params=asked)
            pages = []
            while True:
                if not answer.has_redirect_location:
                    form = Form.of(answer)
                    pages.append(form.fields["prompt"])
                    fields = form.fields | ({"login": login, "password": "any"} if "login" in form.fields else {})
                    answer = browser.post(urljoin(str(answer.url), form.action), data=fields)
                    continue
                location = urljoin(str(answer.url), answer.headers["location"])
                if location.startswith(BACK):
                    break
                answer = browser.get(location)
        assert pages == ["login", "consent"], pages
        back = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert (back.get("state"), back.get("iss")) == (state, self.document["issuer"]), back
        return Attempt(back["code"], verifier, nonce)

    def id_token(self, login: str, client: str = "souk") -> "Token":
        """As a client gets it that redeems its code itself."""
        attempt = self.attempt(login, client, claims=SAYING_ALL)
        secret = next(one["client_secret"] for one in CLIENTS if one["client_id"] == client)
        form = {"grant_type": "authorization_code", "code": attempt.code, "code_verifier": attempt.verifier, "redirect_uri": BACK}
        encoded = (quote_plus(client), quote_plus(secret))
        answer = httpx.post(self.document["token_endpoint"], data=form, auth=encoded)
        assert answer.status_code == 200, answer.text
        return Token(answer.json()["id_token"], attempt.nonce)


@dataclass
class Attempt:
    code: str
    verifier: str
    nonce: str
    redirect_uri: str = BACK

    def body(self) -> dict:
        return {"code": self.code, "code_verifier": self.verifier, "redirect_uri": self.redirect_uri, "nonce": self.nonce}


@dataclass
class Token:
    id_token: str
    nonce: str

    def body(self) -> dict:
        return {"id_token": self.id_token, "nonce": self.nonce}


class Form(html.parser.HTMLParser):
    """The one form of a page."""

    def __init__(self):
        super().__init__()
        self.action, self.fields = "", {}

    @classmethod
    def of(cls, answer: httpx.Response) -> "Form":
        assert answer.status_code == 200, f"{answer.status_code}: {answer.text}"
        form = cls()
        form.feed(answer.text)
        assert form.action, answer.text
        return form

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form":
            self.action = attributes["action"]
        elif tag == "input":
            self.fields[attributes["name"]] = attributes.get("value", "")


class Page:
    """The page on which people sign in: what it shows the host is its visitors', each at an address of their own."""

    def __init__(self, base_url: str):
        self.souk = Souk(base_url, {"user-agent": "a browser"})
        self.addresses = (f"192.0.2.{number}" for number in itertools.count(1))

    def sign_in(self, shown: Attempt | Token) -> httpx.Response:
        return self.souk.ask("POST", SIGN_IN, shown.body(), x_forwarded_for=next(self.addresses))


class Session:
    """A browser with the cookie that it was given, which Python's jar would not send over plain HTTP."""

    def __init__(self, base_url: str, entered: httpx.Response):
        self.entered = data(entered, 200)
        cookie, *attributes = entered.headers["set-cookie"].split("; ")
        assert cookie.startswith("__Host-session="), cookie
        # Without these a browser refuses a cookie of that name; the others keep it from scripts and other sites.
        assert {"Path=/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(attributes), attributes
        self.souk = Souk(base_url, {"cookie": cookie})
        self.csrf = self.souk.get("/users/me")["session"]["csrf_token"]

    def change(self, method: str, path: str, body: dict) -> httpx.Response:
        return self.souk.ask(method, path, body, x_csrf_token=self.csrf)


class Tests:
    def __init__(self, ready: dict, provider_port: int, relay_port: int, provider_directory: pathlib.Path, work: pathlib.Path):
        self.base_url, self.company = ready["base_url"], ready["seller"]["company_id"]
        self.administrator = Souk.by_key(self.base_url, ready["seller"]["api_key"])
        self.page = Page(self.base_url)
        self.provider_port, self.relay_port = provider_port, relay_port
        self.provider_directory, self.work = provider_directory, work

    @contextlib.contextmanager
    def provider(self, keys: str = "first", algorithm: str = "RS256", code_seconds: int = 60, port: int | None = None) -> Iterator[Provider]:
        port = port or self.provider_port
        settings = {
            "port": port, "algorithm": algorithm, "keys": str(self.work / f"{keys}.json"), "codeSeconds": code_seconds,
            "clients": CLIENTS, "users": USERS,
        }  # fmt: skip
        command = ["node", str(self.provider_directory / "provider.mjs"), json.dumps(settings)]
        with running(command, port, self.work / "provider.log"):
            document = httpx.get(f"http://127.0.0.1:{port}/.well-known/openid-configuration").json()
            yield Provider(document)

    @contextlib.contextmanager
    def relay(self) -> Iterator[mailbox.Maildir]:
        mails = self.work / "mails"
        command = [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{self.relay_port}", "-c", "aiosmtpd.handlers.Mailbox", str(mails)]
        with running(command, self.relay_port, self.work / "relay.log"):
            read = lambda file: email.message_from_binary_file(file, policy=email.policy.default)  # noqa: E731
            yield mailbox.Maildir(mails, factory=read)

    def invite(self, name: str, role: int) -> dict:
        body = {"email": f"{name.lower()}@example.org", "name": name, "role_id": role}
        invited = self.administrator.post(f"/companies/{self.company}/users", body, 201)
        assert invited["invitation"]["mail_sent"] is True and invited["invitation"].get("url") is None, invited
        return invited

    def refuse(self, shown: Attempt | Token, words: str) -> None:
        message = refused(self.page.sign_in(shown), 401, "SIGN_IN_REFUSED")
        assert words in message, f"{words!r} is not in {message!r}"

    def a_mail_lets_in(self, mails: mailbox.Maildir) -> None:
        self.invite("Ann", 3)
        (mail,) = until("the mail", lambda: list(mails))
        assert (mail["to"], mail["from"].split("<")[0].strip()) == ("ann@example.org", "Souk"), mail.as_string()
        (link,) = re.findall(r"http\S+/invitation#\S+", mail.get_content())
        page, token = link.split("#")
        shown = httpx.get(page)
        assert shown.status_code == 200 and shown.headers["content-type"].startswith("text/html"), shown.text
        accept = lambda: self.page.souk.ask("POST", "/users/invitations/accept", {"token": token})  # noqa: E731
        session = Session(self.base_url, accept())
        assert session.entered["user"]["email_verified"] is True, session.entered
        refused(accept(), 404, "INVITATION_NOT_FOUND")
        self.ann = session.entered["user"]["id"]

    def a_provider_lets_in(self, provider: Provider) -> None:
        """Who was in before is the same user; who was only invited is new; a session does what its user may, and ends."""
        session = Session(self.base_url, self.page.sign_in(provider.attempt("ann")))
        user = session.entered["user"]
        assert (user["id"], user["auth_provider"], session.entered["is_new_user"]) == (self.ann, "panva", False), session.entered
        self.invite("Bob", 2)
        entered = self.page.sign_in(provider.attempt("bob"))
        bob = Session(self.base_url, entered)
        assert (bob.entered["is_new_user"], bob.entered["user"]["email_verified"]) == (True, True), bob.entered

        me = session.souk.get("/users/me")
        assert (me["user"]["email"], me["role_id"]) == ("ann@example.org", 3), me
        path = f"/companies/{self.company}/users/{self.ann}"
        refused(session.souk.ask("PATCH", path, {"name": "Ann Lee"}), 403, "CSRF_TOKEN_REQUIRED")
        refused(session.souk.ask("PATCH", path, {"name": "Ann Lee"}, x_csrf_token=bob.csrf), 403, "CSRF_TOKEN_REQUIRED")
        data(session.change("PATCH", path, {"name": "Ann Lee"}), 200)
        assert session.souk.get("/users/me")["user"]["name"] == "Ann Lee"

        other = Session(self.base_url, self.page.sign_in(provider.attempt("ann")))
        refused(session.souk.ask("POST", "/users/logout"), 403, "CSRF_TOKEN_REQUIRED")
        ended = session.change("POST", "/users/logout", {})
        assert ended.status_code == 204 and "Max-Age=0" in ended.headers["set-cookie"], ended.headers
        for one in (session, other):
            refused_ = one.souk.ask("GET", "/users/me")
            assert (refused_.status_code, refused_.json()["error"]["code"]) == (401, "SESSION_EXPIRED"), refused_.text
        bob.souk.get("/users/me")

    def a_lie_is_refused(self, provider: Provider) -> None:
        used = provider.attempt("ann")
        data(self.page.sign_in(used), 200)
        self.refuse(used, "was used before")
        self.refuse(provider.attempt("ann", nonce=used.nonce), "nonce has signed somebody in before")
        for wrong in ({"verifier": "x" * 43}, {"redirect_uri": "http://127.0.0.1:1/elsewhere"}):
            self.refuse(replace(provider.attempt("ann"), **wrong), "belongs to another code_verifier or redirect_uri")
        self.refuse(replace(provider.attempt("ann"), nonce="of another attempt"), "its nonce differs")
        self.refuse(provider.attempt("ann", client="another"), "is not valid")
        self.refuse(provider.id_token("ann", client="another"), "InvalidAudience")
        token = provider.id_token("ann")
        data(self.page.sign_in(token), 200)
        self.refuse(token, "nonce has signed somebody in before")
        (head, _, signature), bobs = provider.id_token("ann").id_token.split("."), provider.id_token("bob")
        self.refuse(replace(bobs, id_token=".".join([head, bobs.id_token.split(".")[1], signature])), "InvalidSignature")
        # Whom the provider vouches for and nobody invited, and whom somebody invited and the provider does not vouch for.
        self.invite("Eve", 2)
        for shown in (provider.attempt("nobody"), provider.id_token("nobody"), provider.attempt("eve"), provider.id_token("eve")):
            refused(self.page.sign_in(shown), 403, "NOT_INVITED")
        # Another provider says the same to a client of the same name.
        with self.provider(keys="other", port=free_port()) as other:
            self.refuse(other.id_token("ann"), "a key that its issuer does not have")
            self.refuse(other.attempt("ann"), "is not valid")

    def a_code_expires(self) -> None:
        with self.provider(code_seconds=1) as provider:
            attempt = provider.attempt("ann")
            # There is nothing to see of a code by which it could be waited for.
            time.sleep(2)
            self.refuse(attempt, "is not valid")

    def keys_are_rotated(self) -> None:
        """The host notices by itself that the provider has another key, of another kind; what the former one signed is over."""
        with self.provider() as provider:
            stale = [provider.id_token("ann") for _ in range(2)]
            data(self.page.sign_in(stale.pop()), 200)
        refused(self.page.sign_in(Attempt("c", "v" * 43, "n")), 503, "IDENTITY_PROVIDER_UNAVAILABLE")
        with self.provider(keys="second", algorithm="ES256") as provider:
            entered = until("the new key", lambda: entered if (entered := self.page.sign_in(provider.attempt("ann"))).is_success else None)
            assert data(entered, 200)["user"]["id"] == self.ann
            self.refuse(stale.pop(), "a key that its issuer does not have")


def main() -> None:
    ready, provider_port, relay_port, provider_directory, work = sys.argv[1:]
    ready, work = json.loads(pathlib.Path(ready).read_text()), pathlib.Path(work)
    tests = Tests(ready, int(provider_port), int(relay_port), pathlib.Path(provider_directory), work)
    with tests.relay() as mails:
        tests.a_mail_lets_in(mails)
        with tests.provider() as provider:
            tests.a_provider_lets_in(provider)
            tests.a_lie_is_refused(provider)
        tests.a_code_expires()
        tests.keys_are_rotated()


main()
