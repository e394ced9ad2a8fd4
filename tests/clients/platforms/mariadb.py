"""A MariaDB for platforms, in a directory of its own, with a database for each."""

import contextlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

from processes import free_port, running


@contextlib.contextmanager
def mariadb(directory: pathlib.Path, names: list[str]) -> Iterator[int]:
    """Its port. Each of the databases has a user, and the user a password, of the same name."""
    directory.mkdir()
    data, socket, port = directory / "data", directory / "socket", free_port()
    # Debian has the server where only root looks for programs.
    server = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert server, "mariadbd was not found"
    user = []
    if os.getuid() == 0:
        shutil.chown(directory, "mysql")
        user = ["--user=mysql"]
    make = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db", *user]
    # A server that starts, and so the one that fills the tables, removes the temporary ones that it finds in its directory for
    # them: others' too.
    made = subprocess.run(make, capture_output=True, text=True, cwd=directory, env={**os.environ, "TMPDIR": str(directory)})
    assert made.returncode == 0, made.stdout + made.stderr
    options = [f"--datadir={data}", f"--socket={socket}", f"--port={port}", f"--tmpdir={directory}", "--bind-address=127.0.0.1"]
    command = [server, "--no-defaults", *options, "--skip-name-resolve", "--innodb-use-native-aio=OFF", *user]
    with running(command, port, directory / "log"):
        for name in names:
            statements = f"CREATE DATABASE {name}; CREATE USER {name}@'%' IDENTIFIED BY '{name}'; GRANT ALL ON {name}.* TO {name}@'%'"
            client = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "--execute", statements]
            subprocess.run(client, check=True)
        yield port
