"""What becomes of a post at platforms that nobody here wrote: it is read there as it was written here, is changed, taken back and published again
as one and the same, and is made anew where somebody has deleted it.

    path.py READY WORDPRESS_DIRECTORY GHOST_DIRECTORY
"""

import html.parser
import json
import pathlib
import sys
import tempfile
from typing import Protocol

import httpx

from ghost import ghost
from mariadb import mariadb
from processes import until
from souk import Souk
from wordpress import wordpress

TAGS = ["goals", "Tore & mehr"]
# Markup where it is none, which runs where it is taken for some.
TITLE = "Goals & <script>alert(1)</script>"
SUMMARY = "About <b onclick=alert(2)>goals</b> & more"
BODY = """# Goals

**Many** <script>alert(3)</script>, *few* & [none](https://example.com/none).

As [gallery] and [audio src="https://example.com/a.mp3"] are.

| season | goals |
|---|---|
| 2024 | 7 |

```
SELECT 1 < 2
```
"""
SHOWN = ["Many <script>alert(3)</script>, few & none.", "As [gallery] and [audio src=", "2024", "SELECT 1 < 2"]
MARKED = {("strong", "Many"), ("em", "few"), ("a", "none"), ("td", "2024")}


class Platform(Protocol):
    """A site, as its owner sees it."""

    url: str

    def integration(self) -> dict: ...
    def stranger(self) -> dict: ...
    def posts(self) -> list[dict]: ...
    def delete(self, id: str) -> None: ...
    def revoke(self) -> None: ...


class Author:
    """A company with posts and an integration."""

    def __init__(self, ready: dict, name: str, site: Platform):
        self.souk = Souk.by_key(ready["base_url"], ready["seller"]["api_key"])
        self.company = f"/companies/{ready['seller']['company_id']}"
        self.name, self.site = name, site
        self.integration = self.integrate()

    def integrate(self) -> str:
        body = {"platform": self.name, "name": "blog", **self.site.integration()}
        return self.souk.post(f"{self.company}/postgen_integrations", body, 201)["id"]

    def write(self, title: str) -> str:
        body = {"title": title, "summary": SUMMARY, "tags": TAGS, "body_markdown": BODY}
        return f"{self.company}/posts/{self.souk.post(f'{self.company}/posts', body, 201)['id']}"

    def publish(self, post: str, becomes: str = "published") -> dict:
        """The publication, once the platform has the post as it is now."""
        asked = self.souk.post(f"{post}/publish/{self.integration}", {}, 202)

        def ended() -> dict | None:
            (one,) = [one for one in self.souk.get(f"{post}/publications") if one["integration_id"] == self.integration]
            if one["status"] not in ("pending", "retrying"):
                return one
            assert one["status"] == "pending", one
            return None

        found = until(f"the publication {asked['id']}", ended)
        assert found["status"] == becomes, found
        return found

    def works(self, body: dict) -> bool:
        return self.souk.post(f"{self.company}/postgen_integrations/test", body)["success"]


class Page(html.parser.HTMLParser):
    """What anybody sees who opens an address, and what would run there."""

    def __init__(self, url: str):
        super().__init__()
        self.open, self.shown, self.marked, self.runs = ["body"], "", set(), []
        answer = httpx.get(url, follow_redirects=True, timeout=60)
        assert answer.status_code == 200, f"{url}: {answer.status_code}"
        self.feed(answer.text)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.runs += [value for name, value in attributes if name.startswith("on")]

    def handle_endtag(self, tag):
        # What has no end tag ends with what it is in.
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, text):
        match self.open[-1]:
            case "script":
                self.runs.append(text)
            case "style" | "title":
                pass
            case tag:
                self.shown += text
                self.marked.add((tag, text))


def is_away(url: str) -> bool:
    return httpx.get(url, follow_redirects=True, timeout=60).status_code == 404


def lives(author: Author) -> None:
    site, souk = author.site, author.souk
    strangers = {"platform": author.name, "name": "blog", **site.integration(), "credentials": site.stranger()}
    assert not author.works(strangers) and author.works({"integration_id": author.integration})
    before = {one["id"] for one in site.posts()}
    known = lambda: [one for one in site.posts() if one["id"] not in before]  # noqa: E731

    post = author.write(TITLE)
    souk.post(f"{post}/publish", {})
    there = author.publish(post)
    id, url = there["external_id"], there["external_url"]
    page, front = Page(url), Page(site.url)
    for text in (TITLE, *SHOWN):
        assert text in page.shown, f"{text} is not in {page.shown}"
    assert TITLE in front.shown and SUMMARY in front.shown, front.shown
    assert MARKED <= page.marked, MARKED - page.marked
    run = [text for text in page.runs + front.runs if "alert" in text]
    assert not run, run
    (one,) = known()
    assert (one["id"], sorted(one["tags"])) == (id, sorted(TAGS)), one

    souk.patch(post, {"title": "Anew", "body_markdown": "Other *words*."})
    again = author.publish(post)
    assert again["external_id"] == id, again
    page = Page(again["external_url"])
    assert "Anew" in page.shown and ("em", "words") in page.marked and "Many" not in page.shown, page.shown

    # An integration that knows nothing of it finds it there.
    souk.ask("DELETE", f"{author.company}/postgen_integrations/{author.integration}")
    author.integration = author.integrate()
    assert author.publish(post)["external_id"] == id
    assert [one["id"] for one in known()] == [id], known()

    other = author.write("Another one")
    souk.post(f"{other}/publish", {})
    others = author.publish(other)
    assert others["external_id"] != id and sorted(known()[0]["tags"]) == sorted(TAGS), known()

    souk.post(f"{post}/unpublish", {})
    assert author.publish(post)["external_id"] == id
    assert is_away(again["external_url"])
    souk.post(f"{post}/publish", {})
    assert author.publish(post)["external_id"] == id
    assert "Anew" in Page(again["external_url"]).shown

    site.delete(id)
    anew = author.publish(post)
    assert anew["external_id"] != id and ("em", "words") in Page(anew["external_url"]).marked, anew

    site.revoke()
    failed = author.publish(post, becomes="failed")
    assert "credentials" in failed["error"], failed
    assert not author.works({"integration_id": author.integration})


def main() -> None:
    ready, wordpress_files, ghost_files = map(pathlib.Path, sys.argv[1:])
    ready = json.loads(ready.read_text())
    with tempfile.TemporaryDirectory(prefix="souk-platforms-") as directory:
        directory = pathlib.Path(directory)
        # The database's user has to come in.
        directory.chmod(0o755)
        with mariadb(directory / "mariadb", ["wordpress", "ghost"]) as database:
            with wordpress(wordpress_files, database, directory / "wordpress") as members:
                for role, site in members.items():
                    print(f"-- WordPress, {role}", flush=True)
                    lives(Author(ready, "wordpress", site))
            print("-- Ghost", flush=True)
            with ghost(ghost_files, database, directory / "ghost") as site:
                lives(Author(ready, "ghost", site))


main()
