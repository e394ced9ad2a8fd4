#!/usr/bin/env python3
"""Spark as a Python uses it, unpacked into a directory and not installed: its package has no wheel, and building one takes minutes and twice the room.

    take.py DIRECTORY     # downloads what packages.txt names, and unpacks what has the digest that it names (0.5 GB)
"""

import hashlib
import shutil
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
# Of Spark's own package: the rest is examples, and what runs a cluster.
WANTED = ("pyspark", "deps/jars", "deps/bin")
TIMEOUT_S = 60


def take(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for line in (HERE / "packages.txt").read_text().splitlines():
        digest, url = line.split()
        with tempfile.NamedTemporaryFile(suffix=Path(url).suffix) as file:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                shutil.copyfileobj(answer, file)
            file.flush()
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                sys.exit(f"{url} is not the package that packages.txt names")
            file.seek(0)
            unpack(file, home)
    # Last: a directory without it was left half-way.
    shutil.copy(HERE / "packages.txt", home / "packages.txt")


def unpack(file, home: Path) -> None:
    if file.name.endswith(".whl"):
        zipfile.ZipFile(file).extractall(home)
        return
    with tarfile.open(fileobj=file, mode="r:gz") as package:
        for member in package:
            _, _, member.name = member.name.partition("/")
            if member.name.startswith(WANTED):
                package.extract(member, home, filter="tar")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [home]:
            take(Path(home))
        case _:
            sys.exit(__doc__)
