"""Schemathesis for keys of four roles, an endpoint's key and no key at all, against the host of the demo.

Makes the keys, writes the configuration with the host's own ids, runs every phase (examples, coverage, fuzzing, stateful with links) with
every check, and stops at the first principal that finds something.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request


def call(url: str, key: str, body: dict) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"x-api-key": key, "content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def main() -> None:
    ready = json.load(open(sys.argv[1]))
    document, settings = sys.argv[2], pathlib.Path(sys.argv[3]).read_text()
    seller, base_url = ready["seller"], ready["base_url"]
    principals = {"no key": None, "endpoint key": ready["buyer"]["endpoint_key"]}
    for role in (1, 2, 3, 4):
        body = {"name": f"Schemathesis {role}", "role_id": role, "rate_limit": 1_000_000_000}
        made = call(f"{base_url}/companies/{seller['company_id']}/api-keys", seller["api_key"], body)
        principals[f"role {role}"] = made["key"]
    only = os.environ.get("PRINCIPALS")
    for name, key in principals.items():
        if only and name not in only.split(","):
            continue
        with tempfile.TemporaryDirectory() as directory:
            config = pathlib.Path(directory, "schemathesis.toml")
            config.write_text(settings.replace("COMPANY_ID", seller["company_id"]).replace("USER_ID", seller["user_id"]))
            command = ["schemathesis", "--config-file", str(config), "run", document, "--url", base_url]
            command += ["--workers", "1", "--max-examples", os.environ["EXAMPLES"], "--seed", "1", "--no-color"]
            if key:
                command += ["--header", f"x-api-key: {key}"]
            print(f"-- {name}", flush=True)
            done = subprocess.run(command)
        if done.returncode != 0:
            raise SystemExit(f"Schemathesis found something with {name}")


main()
