"""OpenWayback's own classes in one JVM, used over HTTP."""

from __future__ import annotations

import http.client
import subprocess
from concurrent.futures import Executor
from pathlib import Path
from urllib.parse import urlencode

from cdxmill.spark.java import QUICK

from ..conftest import Answer


class OpenWayback:
    """A running OpenWayback.java. One thread, that of `network`, sends all requests."""

    def __init__(self, classes: str, webapp: Path, collection: Path, log: Path, network: Executor) -> None:
        self._network = network
        self._log = log
        # UTF-8, because the CDX server compresses its answers in the charset of the JVM.
        command = ["java", *QUICK.split(), "-Xmx256m", "-Dfile.encoding=UTF-8", "-cp", classes, "OpenWayback"]
        self._process = network.submit(self._start, [*command, webapp, collection]).result()
        self._port = self._read_port()

    def get(self, path: str, **params: object) -> Answer:
        """Request a path of the server, with a query."""
        query = "?" + urlencode(params, doseq=True) if params else ""
        return self._network.submit(self._get, path + query).result()

    def cdx(self, **params: object) -> bytes:
        """The CDX server's answer."""
        answer = self.get("/search/cdx", **params)
        assert answer.status == 200, answer
        return answer.body

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _start(self, command: list[str | Path]) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def _read_port(self) -> int:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            port = said.readline()
        if not port:
            self.stop()
            raise RuntimeError(f"OpenWayback did not start: {self._log.read_text()}")
        return int(port)

    def _get(self, path: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()
