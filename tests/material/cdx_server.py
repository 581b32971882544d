"""A running `cdxmill cdx-server`, which tests ask over HTTP."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

COMMAND = Path(sys.executable).parent / "cdxmill"
SECONDS = 60


class HttpAnswer(NamedTuple):
    """A response as it was received."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


class CdxServer:
    """The server, its address and its process. `cdxmill`: the command, if it is not that of this environment."""

    def __init__(self, *arguments: object, cdxmill: Path = COMMAND) -> None:
        command = [str(cdxmill), "cdx-server", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.match(r"http://(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)/: ", line)
        assert found, line + self.process.stderr.read()
        self.port = int(found[1])
        self.site = f"http://127.0.0.1:{self.port}"

    def get(self, path: str, method: str = "GET", **headers: str) -> HttpAnswer:
        """Ask for a path, with its query; names of headers have `_` for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(
                method, path, headers={name.replace("_", "-"): text for name, text in headers.items()}
            )
            response = connection.getresponse()
            return HttpAnswer(
                response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def ask(self, path: str, params: Mapping[str, object] | None = None, **more: object) -> HttpAnswer:
        """Ask an endpoint, with parameters."""
        return self.get(
            f"{path}?{urlencode({**(params or {}), **more}, doseq=True, errors='surrogateescape')}"
        )

    def stop(self) -> tuple[int, str]:
        """Stop it as systemd does. Its exit status, and what it said."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextmanager
def cdx_server(*arguments: object, cdxmill: Path = COMMAND) -> Iterator[CdxServer]:
    """A server that runs until the end of the `with`."""
    server = CdxServer(*arguments, cdxmill=cdxmill)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
