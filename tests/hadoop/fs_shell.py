"""The commands of `hadoop fs`, by Hadoop's own code in one Java for all of them (Shell.java)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SHELL = Path(__file__).with_name("Shell.java")
_START = """
. "$HADOOP_HOME/etc/hadoop/classes.sh"
options="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:SharedArchiveFile=$archive -Xlog:disable"
exec "$JAVA_HOME/bin/java" $options -cp "$(hadoop classpath)" "$0"
"""


class FsShell:
    """Started with the first command, with the variables `env`; `close` ends it."""

    def __init__(self, hadoop_dev: Path, directory: Path, env: Mapping[str, str] | None = None) -> None:
        self._dev, self._directory, self._env = hadoop_dev, directory, env or {}
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *words: str | Path) -> bytes:
        """What a command prints; a status but 0 is an AssertionError with all that it said."""
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join(map(str, words)).encode() + b"\n")
        process.stdin.flush()
        status, *sizes = map(int, process.stdout.readline().split())
        stdout, stderr = (process.stdout.read(size) for size in sizes)
        assert status == 0, f"{words}: {status}: {(stdout + stderr).decode(errors='replace')}"
        return stdout

    def _start(self) -> subprocess.Popen[bytes]:
        with (self._directory / "shell.log").open("wb") as log:
            return subprocess.Popen(
                [self._dev, "run", "bash", "-c", _START, SHELL],
                env={**os.environ, **self._env, "CDXMILL_HADOOP_DEV": str(self._directory)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate()
