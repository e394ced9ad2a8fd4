"""A real Ghost, as its package on npm has it, in production mode on MariaDB."""

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from processes import free_port, running, until

INTEGRATION = "souk"
OWNER = {"name": "Owner", "email": "owner@example.org", "password": "correct horse battery staple"}


@dataclass
class Ghost:
    url: str
    admin_api_key: str
    # Its owner, signed in.
    owner: httpx.Client

    def integration(self) -> dict:
        return {"config": {"base_url": self.url}, "credentials": {"admin_api_key": self.admin_api_key}}

    def stranger(self) -> dict:
        """Credentials of the right form that Ghost does not know."""
        return {"admin_api_key": f"{'0' * 24}:{'00' * 32}"}

    def posts(self) -> list[dict]:
        listed = self.owner.get("/ghost/api/admin/posts/?limit=all&include=tags")
        assert listed.status_code == 200, listed.text
        return [{"id": post["id"], "tags": [tag["name"] for tag in post["tags"]]} for post in listed.json()["posts"]]

    def delete(self, id: str) -> None:
        deleted = self.owner.delete(f"/ghost/api/admin/posts/{id}/")
        assert deleted.status_code == 204, deleted.text

    def revoke(self) -> None:
        known = self.owner.get("/ghost/api/admin/integrations/").json()["integrations"]
        (one,) = [one for one in known if one["name"] == INTEGRATION]
        deleted = self.owner.delete(f"/ghost/api/admin/integrations/{one['id']}/")
        assert deleted.status_code == 204, deleted.text


@contextlib.contextmanager
def ghost(package: pathlib.Path, database: int, directory: pathlib.Path) -> Iterator[Ghost]:
    """The site, with an integration. `package`: its files with what they need; `database`: the port of a MariaDB, which has one for it."""
    directory.mkdir()
    shutil.copytree(package / "content", directory / "content")
    # As Ghost's own command lays it out, by which it finds itself.
    (directory / "current").symlink_to(package)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "url": url,
        "server": {"host": "127.0.0.1", "port": port},
        "database": {
            "client": "mysql",
            "connection": {"host": "127.0.0.1", "port": database, "user": "ghost", "password": "ghost", "database": "ghost"},
        },
        "paths": {"contentPath": str(directory / "content")},
        "logging": {"transports": ["stdout"]},
        # Nobody reads mail here, so that no browser is asked for a number that was mailed.
        "security": {"staffDeviceVerification": False},
        "mail": {"transport": "stub", "from": "ghost@example.org"},
        "privacy": {"useUpdateCheck": False, "useGravatar": False, "useRpcPing": False, "useStructuredData": False},
    }
    (directory / "config.production.json").write_text(json.dumps(settings))
    environment = os.environ | {"NODE_ENV": "production"}
    with running(["node", "current/index.js"], port, directory / "log", env=environment, cwd=directory):
        with httpx.Client(base_url=url, headers={"origin": url}, timeout=120) as owner:
            yield installed(url, owner)


def installed(url: str, owner: httpx.Client) -> Ghost:
    """Goes through what its owner's browser goes through."""
    # It listens before it has made its tables, and says so.
    until("Ghost", lambda: owner.get("/ghost/api/admin/site/").status_code == 200)
    made = owner.post("/ghost/api/admin/authentication/setup/", json={"setup": [OWNER | {"blogTitle": "The blog"}]})
    assert made.status_code == 201, made.text
    entered = owner.post("/ghost/api/admin/session/", json={"username": OWNER["email"], "password": OWNER["password"]})
    assert entered.status_code == 201, entered.text
    made = owner.post("/ghost/api/admin/integrations/?include=api_keys", json={"integrations": [{"name": INTEGRATION}]})
    assert made.status_code == 201, made.text
    (key,) = [key["secret"] for key in made.json()["integrations"][0]["api_keys"] if key["type"] == "admin"]
    return Ghost(url, key, owner)
