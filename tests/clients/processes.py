"""Programs that a part of these tests starts for itself, and stops whatever becomes of it."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

# What is awaited is there within moments; a loaded machine gets a hundred times as long.
READY_WITHIN = 120
STOPS_WITHIN = 30


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def until(what: str, look: Callable[[], T | None], within: float = READY_WITHIN) -> T:
    """What `look` finds, once it finds something."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not within {within} s"
        time.sleep(0.1)


def listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running(command: list[str], port: int, log: pathlib.Path, **options) -> Iterator[None]:
    """A server while it is needed, with all that it starts. It has come up when it listens."""
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    try:

        def is_up() -> bool:
            assert process.poll() is None, f"{command[0]} ended:\n{log.read_text()[-4000:]}"
            return listens(port)

        until(command[0], is_up)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOPS_WITHIN)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
