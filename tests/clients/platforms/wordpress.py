"""A real WordPress: Debian's packages, unpacked and not installed, on PHP's own server and MariaDB."""

import contextlib
import html
import os
import pathlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from processes import free_port, running

ADMINISTRATOR = {"user_name": "admin", "admin_password": "correct horse battery staple"}
# What an author writes is cleaned by WordPress; an editor may write any HTML, so that what arrives there has to be right.
ROLES = ["author", "editor"]

# What Debian's own `wp-config.php` looks for below /etc. Application passwords are for https, and for machines that say that they are local.
CONFIG = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'wordpress'); define('DB_PASSWORD', 'wordpress'); define('DB_HOST', '127.0.0.1:{port}');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {{ define("{{$name}}_KEY", $name); define("{{$name}}_SALT", strrev($name)); }}
define('WP_ENVIRONMENT_TYPE', 'local'); define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true); define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {{ define('ABSPATH', __DIR__ . '/'); }}
require_once ABSPATH . 'wp-settings.php';
"""


@dataclass
class WordPress:
    """The site, as somebody of it publishes there."""

    url: str
    author: int
    username: str
    application_password: str
    # Of the password.
    uuid: str
    administrator: httpx.Client

    def integration(self) -> dict:
        credentials = {"username": self.username, "application_password": self.application_password}
        return {"config": {"base_url": self.url}, "credentials": credentials}

    def stranger(self) -> dict:
        """Credentials of the right form that WordPress does not know."""
        return {"username": self.username, "application_password": "abcd efgh ijkl mnop qrst uvwx"}

    def posts(self) -> list[dict]:
        """What it has of this author."""
        query = f"/wp-json/wp/v2/posts?context=edit&status=publish,draft&per_page=100&author={self.author}"
        listed = self.administrator.get(f"{query}&_embed=wp:term")
        assert listed.status_code == 200, listed.text
        return [{"id": str(post["id"]), "tags": tags(post)} for post in listed.json()]

    def delete(self, id: str) -> None:
        deleted = self.administrator.delete(f"/wp-json/wp/v2/posts/{id}?force=true")
        assert deleted.status_code == 200, deleted.text

    def revoke(self) -> None:
        deleted = self.administrator.delete(f"/wp-json/wp/v2/users/{self.author}/application-passwords/{self.uuid}")
        assert deleted.status_code == 200, deleted.text


def tags(post: dict) -> list[str]:
    terms = [term for terms in post["_embedded"]["wp:term"] for term in terms]
    return [html.unescape(term["name"]) for term in terms if term["taxonomy"] == "post_tag"]


@contextlib.contextmanager
def wordpress(unpacked: pathlib.Path, database: int, directory: pathlib.Path) -> Iterator[dict[str, WordPress]]:
    """The site, by the roles of who publishes there. `unpacked`: the packages' files; `database`: the port of a MariaDB, which has one for it."""
    site = directory / "site"
    shutil.copytree(unpacked / "usr/share/wordpress", site, symlinks=True, ignore=shutil.ignore_patterns("wp-config.php"))
    (site / "wp-config.php").write_text(CONFIG.format(port=database))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # It asks itself whether its addresses work.
    environment = os.environ | {"PHP_CLI_SERVER_WORKERS": "4"}
    with running(["php", "-S", f"127.0.0.1:{port}", "-t", str(site)], port, directory / "log", env=environment):
        with httpx.Client(base_url=url, follow_redirects=True, timeout=120) as administrator:
            install(administrator)
            yield {role: member(url, administrator, role) for role in ROLES}


def install(browser: httpx.Client) -> None:
    """Goes through the pages that an administrator goes through, and is signed in from then on."""
    form = {"weblog_title": "The blog", **ADMINISTRATOR, "admin_password2": ADMINISTRATOR["admin_password"]}
    form |= {"pw_weak": "1", "admin_email": "admin@example.org", "language": ""}
    done = browser.post("/wp-admin/install.php?step=2", data=form)
    assert done.status_code == 200 and "Success!" in done.text, done.text

    browser.get("/wp-login.php")
    form = {"log": ADMINISTRATOR["user_name"], "pwd": ADMINISTRATOR["admin_password"], "testcookie": "1"}
    entered = browser.post("/wp-login.php", data=form)
    assert entered.url.path == "/wp-admin/", entered.text
    browser.headers["x-wp-nonce"] = browser.get("/wp-admin/admin-ajax.php?action=rest-nonce").text


def member(url: str, administrator: httpx.Client, role: str) -> WordPress:
    """Somebody with this role, who has a password for an application."""
    body = {"username": f"{role}-ann", "name": "Ann", "email": f"{role}@example.org", "password": "staple", "roles": [role]}
    made = administrator.post("/wp-json/wp/v2/users", json=body)
    assert made.status_code == 201, made.text
    author = made.json()["id"]
    made = administrator.post(f"/wp-json/wp/v2/users/{author}/application-passwords", json={"name": "souk"})
    assert made.status_code == 201, made.text
    return WordPress(url, author, body["username"], made.json()["password"], made.json()["uuid"], administrator)
