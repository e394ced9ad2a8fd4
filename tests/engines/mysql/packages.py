#!/usr/bin/env python3
"""MySQL's own releases, with all that they need to run: packages of Ubuntu and Debian, unpacked into a directory and not installed.

    packages.py take RELEASE DIRECTORY   # downloads what RELEASE.txt names, and unpacks what has the digest that it names
    packages.py lock RELEASE             # writes RELEASE.txt anew, by what the distribution has now

The libraries and the loader of the C library come along, so that a server runs on any Linux of x86_64. `take` needs `dpkg-deb`, or `ar` and a
`tar` that unpacks zstd.
"""

import hashlib
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
UBUNTU = "http://archive.ubuntu.com/ubuntu"
DEBIAN = "http://deb.debian.org/debian"
# The packages that a release of Ubuntu came with stay where they are; Debian's unstable has the newest only.
RELEASES = {
    "8.0": (UBUNTU, "noble", ["main", "universe"], "mysql-server-core-8.0"),
    "8.4": (UBUNTU, "resolute", ["main", "universe"], "mysql-server-core"),
    "9": (DEBIAN, "sid", ["main"], "mysql-server-core"),
}
# A server runs without them.
LEFT_OUT = {"perl", "perl-base", "debconf", "debconf-2.0", "dpkg", "tar", "systemd", "libsystemd0", "adduser"}
TIMEOUT_S = 60


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        return answer.read()


def index(base: str, suite: str, components: list[str]) -> tuple[dict, dict]:
    """Each package's fields by its name, and who stands for a name that no package has."""
    packages, provided = {}, {}
    for component in components:
        text = lzma.decompress(fetched(f"{base}/dists/{suite}/{component}/binary-amd64/Packages.xz")).decode()
        for paragraph in text.split("\n\n"):
            fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", paragraph, re.MULTILINE))
            if name := fields.get("Package"):
                packages[name] = fields
                for other in names(fields.get("Provides", "")):
                    provided.setdefault(other, name)
    return packages, provided


def names(field: str) -> list[str]:
    """Of each alternative the first, without version and architecture."""
    return [re.split(r"[\s(:|]", one.strip())[0] for one in field.split(",") if one.strip()]


def lock(release: str) -> None:
    base, suite, components, root = RELEASES[release]
    packages, provided = index(base, suite, components)
    wanted, todo = {}, [root]
    while todo:
        name = todo.pop()
        name = name if name in packages else provided.get(name, name)
        if name in wanted or name in LEFT_OUT:
            continue
        fields = wanted[name] = packages[name]
        todo += names(fields.get("Depends", "")) + names(fields.get("Pre-Depends", ""))
    lines = [f"{wanted[name]['SHA256']}  {base}/{wanted[name]['Filename']}\n" for name in sorted(wanted)]
    (HERE / f"{release}.txt").write_text("".join(lines))


def take(release: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for line in (HERE / f"{release}.txt").read_text().splitlines():
        digest, url = line.split()
        try:
            package = fetched(url)
        except OSError as error:
            sys.exit(f"{url}: {error}. Where the distribution has gone on, `{Path(__file__).name} lock {release}` names what it has now.")
        if hashlib.sha256(package).hexdigest() != digest:
            sys.exit(f"{url} is not the package that {release}.txt names")
        unpack(package, home)
    # Last: a directory without it was left half-way.
    shutil.copy(HERE / f"{release}.txt", home / "packages.txt")
    # The tests run a server as a user without rights.
    for directory in [home, *home.rglob("*")]:
        if directory.is_dir() and not directory.is_symlink():
            directory.chmod(0o755)


def unpack(package: bytes, home: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "package.deb"
        file.write_bytes(package)
        if shutil.which("dpkg-deb"):
            subprocess.run(["dpkg-deb", "--extract", file, home], check=True)
        else:
            subprocess.run(["ar", "x", file], cwd=place, check=True)
            data = next(Path(place).glob("data.tar.*"))
            subprocess.run(["tar", "--extract", "--file", data, "--directory", home], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["take", release, home] if release in RELEASES:
            take(release, Path(home))
        case ["lock", release] if release in RELEASES:
            lock(release)
        case _:
            sys.exit(__doc__)
