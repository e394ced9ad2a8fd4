"""Schemathesis for keys of four roles, an endpoint's key and no key at all, against the host of the demo.

Makes the keys, writes the configuration with the host's own ids, and runs every phase (examples, coverage, fuzzing, stateful with links) with every
check. Operations by which a key can end or bind itself come last, with a key of their own: after them the rest would be refused.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

ENDS_ITSELF = [
    "delete_key", "delete_api_key", "revoke_key", "revoke_api_key", "rotate_key", "rotate_api_key", "update_key", "update_api_key",
    "delete_endpoint_key", "update_endpoint_key", "delete_user", "update_user", "update_company", "logout",
]  # fmt: skip


def read(url: str, key: str) -> list:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"x-api-key": key})) as answer:
        return json.load(answer)["data"]


def call(url: str, key: str, body: dict) -> dict:
    headers = {"x-api-key": key, "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def bodies(ready: dict) -> dict:
    """What makes something, of what has links."""
    seller = ready["seller"]
    call_seller = lambda path: read(f"{ready['base_url']}{path}", seller["api_key"])  # noqa: E731
    company = f"/companies/{seller['company_id']}"
    engine = next(engine["id"] for engine in call_seller("/storage-engines") if engine["slug"] == "sqlite")
    file = call_seller(f"{company}/files")[0]["name"]
    source, product = seller["connections"]["sqlite"], seller["assets"]["calculation"]
    future = {"effective_from": "2090-01-01T00:00:00Z"}
    webhook = {"base_url": "https://receiver.example/posts"}
    return {
        "create_key": {"name": "Made NUMBER"},
        "create_api_key": {"name": "Made NUMBER"},
        "create_asset": {"connection_id": source, "asset_type": "CALCULATION", "name": "Made NUMBER", "sql_logic": "SELECT 1"},
        "create_price": {"price_credits": 3, **future},
        "create_connection": {
            "engine_id": engine, "name": "Made NUMBER", "credential_type": "NONE", "credentials": "{}", "database": file,
        },
        "create_top_up": {"credits": 1},
        "create_endpoint": {"connection_id": source, "name": "Made NUMBER", "sql_logic": "SELECT 1 AS one", "fields": [{"name": "one"}]},
        "create_endpoint_key": {"name": "Made NUMBER"},
        "create_endpoint_price": {"price_credits": 3, **future},
        "create_integration": {"platform": "webhook", "name": "Made NUMBER", "config": webhook, "credentials": {"secret": "x" * 32}},
        "create_post": {"title": "Made NUMBER", "body_markdown": "One."},
        "create_user": {"email": "made-NUMBER@example.org"},
        "create_alert": {"asset_id": product},
        "create_favorite": {"asset_id": product},
        "create_webhook": {"url": "https://receiver.example/hooks/NUMBER"},
    }


def linked(document: str) -> list[str]:
    """The operations with links, and those that they lead to."""
    paths = json.load(open(document))["paths"].values()
    operations = [operation for item in paths for operation in item.values()]
    found = set()
    for operation in operations:
        links = [link for answer in operation["responses"].values() for link in answer.get("links", ())]
        found |= {operation["operationId"], *links} if links else set()
    return sorted(found)


def run(name: str, key: str | None, document: str, base_url: str, settings: str, more: list[str], made: dict = {}) -> bool:
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory, "schemathesis.toml")
        config.write_text(settings)
        command = ["schemathesis", "--config-file", str(config), "run", document, "--url", base_url]
        command += ["--workers", "1", "--max-examples", os.environ["EXAMPLES"], "--seed", "1", "--no-color", "--warnings", "off", *more]
        if key:
            command += ["--header", f"x-api-key: {key}"]
        print(f"-- {name}", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(here), "SCHEMATHESIS_HOOKS": "hooks", "LINKS": json.dumps(made)}
        # It keeps what it found where it runs.
        return subprocess.run(command, env=environment, cwd=directory).returncode == 0


def main() -> None:
    ready = json.load(open(sys.argv[1]))
    document, settings = sys.argv[2], pathlib.Path(sys.argv[3]).read_text()
    seller, base_url = ready["seller"], ready["base_url"]
    settings = settings.replace("COMPANY_ID", seller["company_id"]).replace("USER_ID", seller["user_id"])

    def made(role: int) -> str:
        body = {"name": f"Schemathesis {role}", "role_id": role, "rate_limit": 1_000_000_000}
        # Staff may make more than ten an hour of them.
        return call(f"{base_url}/companies/{seller['company_id']}/api-keys", ready["platform"]["api_key"], body)["key"]

    principals = {"no key": None, "endpoint key": ready["buyer"]["endpoint_key"]}
    principals |= {f"role {role}": made(role) for role in (1, 2, 3, 4)}
    only = os.environ.get("PRINCIPALS")
    wrong = []
    # First: what it goes on with is there then. Fuzzing deletes what it finds.
    if not only or "links" in only.split(","):
        along = [word for id in linked(document) for word in ("--include-operation-id", id)]
        along += ["--phases", "stateful", "--max-examples", str(5 * int(os.environ["EXAMPLES"]))]
        longer = settings.replace("max-steps = 5", "max-steps = 100")
        if not run("role 4, along the links", made(4), document, base_url, longer, along, bodies(ready)):
            wrong.append("role 4, along the links")
    for name, key in principals.items():
        if only and name not in only.split(","):
            continue
        excluded = [word for id in ENDS_ITSELF for word in ("--exclude-operation-id", id)]
        if not run(name, key, document, base_url, settings, excluded):
            wrong.append(name)
    for name, key in principals.items():
        if key is None or only and name not in only.split(","):
            continue
        included = [word for id in ENDS_ITSELF for word in ("--include-operation-id", id)]
        # Between these there are no links.
        included += ["--phases", "examples,coverage,fuzzing"]
        if not run(f"{name}, what ends it", key, document, base_url, settings, included):
            wrong.append(f"{name}, what ends it")
    if wrong:
        raise SystemExit(f"Schemathesis found something: {', '.join(wrong)}")


main()
