"""Run `cdxmill` in processes of its own that begin with all modules imported: the start of Python takes most of a short run.

A server without threads forks a child for each call. Arguments, folder, variables, outputs and exit status are those
of a process that is started, in a session of its own; tests of the start itself start one.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn, Self

_SIZE = struct.Struct("!I")
_LIBRARIES = ("boto3", "s3transfer.manager", "urllib3", "zstandard", "multiprocessing.context")
"""What commands import when they need it."""


class CommandServer:
    """The side of the tests. Not for several threads at once. The server has the variables of its start besides `variables`.

    The words `before` are a command that starts it, as `nsenter` does.
    """

    def __init__(self, *before: str | Path, **variables: str) -> None:
        self._ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [*before, sys.executable, "-P", __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **variables},
        )
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ours.close()
        self._process.wait()

    def run(
        self,
        *args: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        seconds: int = 0,
    ) -> subprocess.CompletedProcess[bytes]:
        """What `subprocess.run(["cdxmill", *args], capture_output=True)` gives, when no process that it started is left.

        After `seconds`, if any, it is ended by SIGALRM.
        """
        words = [os.fspath(word) for word in args]
        variables = dict(os.environ if env is None else env)
        call = json.dumps([words, os.fspath(cwd or Path.cwd()), variables, seconds]).encode()
        reads, writes = zip(os.pipe(), os.pipe(), strict=True)
        socket.send_fds(self._ours, [_SIZE.pack(len(call))], writes)
        for number in writes:
            os.close(number)
        self._ours.sendall(call)
        stdout, stderr = _contents(reads)
        status = _SIZE.unpack(_received(self._ours, _SIZE.size))[0]
        return subprocess.CompletedProcess(args, os.waitstatus_to_exitcode(status), stdout, stderr)


def _contents(pipes: tuple[int, ...]) -> list[bytes]:
    """All that comes from the pipes, which are closed."""
    found = {number: bytearray() for number in pipes}
    with selectors.DefaultSelector() as selector:
        for number in pipes:
            selector.register(number, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if data := os.read(key.fd, 1 << 16):
                    found[key.fd] += data
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [bytes(data) for data in found.values()]


def _received(connection: socket.socket, size: int) -> bytes:
    data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise EOFError("the server of commands ended")
    return data


def serve(connection: socket.socket) -> NoReturn:
    """The side of the commands: fork for each call, until the tests close the connection."""
    _import_all()
    gc.freeze()
    while True:
        head, outputs, _, _ = socket.recv_fds(connection, _SIZE.size, 2)
        if not head:
            sys.exit()
        args, cwd, environ, seconds = json.loads(_received(connection, _SIZE.unpack(head)[0]))
        child = os.fork()
        if not child:
            os.setsid()
            signal.alarm(seconds)
            connection.close()
            _become_command(args, cwd, environ, outputs)
        for number in outputs:
            os.close(number)
        status = os.waitpid(child, 0)[1]
        _end_group(child)
        connection.sendall(_SIZE.pack(status))


def _end_group(number: int) -> None:
    """Workers of a killed process end by themselves; wait until none writes any more."""
    with suppress(ProcessLookupError):
        for _ in range(100):
            os.killpg(number, 0)
            time.sleep(0.02)
        os.killpg(number, signal.SIGKILL)


def _import_all() -> None:
    import cdxmill

    for module in pkgutil.walk_packages(cdxmill.__path__, "cdxmill."):
        if not module.name.startswith(("cdxmill.jobs", "cdxmill.__main__")):
            import_module(module.name)
    for name in _LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    with suppress(ImportError):
        read_services_once()
        import boto3  # type: ignore[import-untyped]

        boto3.session.Session().client("s3", region_name="us-east-1")


def read_services_once() -> None:
    """Let all sessions of boto3 share what they read of its services: 0.1 s for each client."""
    from botocore import loaders  # type: ignore[import-untyped]

    loaders.create_loader = lru_cache(loaders.create_loader)


def _become_command(args: list[str], cwd: str, environ: dict[str, str], outputs: list[int]) -> NoReturn:
    from cdxmill.cli.main import main

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for number, opened in zip((1, 2), outputs, strict=True):
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["cdxmill", *args]
    status = main()
    sys.stdout.flush()
    os._exit(status)  # the end of Python takes as long as its start


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    serve(socket.socket(fileno=int(sys.argv[1])))
