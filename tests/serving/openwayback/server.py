"""OpenWayback's own classes in one JVM, used over HTTP. Maven fetches them and compiles the class that starts them."""

from __future__ import annotations

import fcntl
import http.client
import shutil
import subprocess
from concurrent.futures import Executor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from ..conftest import Answer

HERE = Path(__file__).parent
GET_JAVA = "install Java 17 and Maven (Debian, Ubuntu: apt install openjdk-17-jdk-headless maven)"
MAVEN = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "--strict-checksums", "compile"]
MAVEN_SECONDS = 600


def class_path(root: Path) -> str:
    """OpenWayback's jars and the classes beside this file, as `java -cp` takes them.

    Maven runs only if build/openwayback does not have them. Then it may need the network.
    """
    build = root / "build/openwayback"
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_fresh(build):
            _require("java", "javac", "mvn")
            _run_maven()
            (build / "made-from").write_bytes(_sources())
    _require("java")
    return f"{build / 'classes'}:{(build / 'classpath').read_text()}"


def is_fresh(build: Path) -> bool:
    """Whether the folder has the classes of the current sources, and Maven's cache has all jars."""
    made_from, jars = build / "made-from", build / "classpath"
    return (
        made_from.exists()
        and made_from.read_bytes() == _sources()
        and all(Path(jar).exists() for jar in jars.read_text().split(":"))
    )


def _sources() -> bytes:
    return b"".join(path.read_bytes() for path in [HERE / "pom.xml", *sorted(HERE.glob("*.java"))])


def _require(*tools: str) -> None:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        pytest.fail(f"not found: {', '.join(missing)}; {GET_JAVA}", pytrace=False)


def _run_maven() -> None:
    done = subprocess.run(
        MAVEN, cwd=HERE, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAVEN_SECONDS
    )
    if done.returncode != 0:
        said = (line.partition("[ERROR] ")[2] for line in done.stdout.splitlines())
        reason = next(filter(None, said), f"exit status {done.returncode}")
        pytest.fail(f"Maven could not fetch and compile OpenWayback's parts: {reason}", pytrace=False)


class OpenWayback:
    """A running OpenWayback.java. One thread, that of `network`, sends all requests."""

    def __init__(self, classes: str, webapp: Path, collection: Path, log: Path, network: Executor) -> None:
        self._network = network
        self._log = log
        # UTF-8, because the CDX server compresses its answers in the charset of the JVM.
        command = ["java", "-Xmx256m", "-Dfile.encoding=UTF-8", "-cp", classes, "OpenWayback"]
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
