"""Run `cdxmill` in its own process group, so that tests can stop it halfway."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

COMMAND = Path(sys.executable).parent / "cdxmill"
PATIENCE = 30.0


class Started:
    """Start a command; its standard error is captured."""

    def __init__(self, *args: str | Path) -> None:
        self._process = subprocess.Popen(
            [COMMAND, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_for(self, directory: Path, pattern: str) -> None:
        """Wait until a file that matches the pattern exists in the folder."""
        start = time.monotonic()
        while not _has(directory, pattern):
            if self._process.poll() is not None or time.monotonic() - start > PATIENCE:
                raise AssertionError(f"{pattern} did not appear")
            time.sleep(0.0005)

    def kill_all(self) -> None:
        """kill -9 for every process of the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=PATIENCE)

    def send(self, number: signal.Signals, to_all: bool) -> tuple[int, list[str]]:
        """Send a signal to the group, as a terminal does, or only to the command; return its status and messages."""
        (os.killpg if to_all else os.kill)(self._process.pid, number)
        _, stderr = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, stderr.decode().splitlines()

    def is_anyone_left(self) -> bool:
        """Whether a process of the group is still alive some time after the command has ended."""
        for _ in range(100):
            try:
                os.killpg(self._process.pid, 0)
            except ProcessLookupError:
                return False
            time.sleep(0.02)
        return True


def is_alive(process: object) -> bool:
    """Whether the process of this number runs. One that has ended, and that nobody waits for, has no command line."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def outliving(processes: Collection[int]) -> list[int]:
    """Those that are still alive some time after their parent has ended. They are killed."""
    end = time.monotonic() + PATIENCE
    while any(map(is_alive, processes)) and time.monotonic() < end:
        time.sleep(0.01)
    left = [process for process in processes if is_alive(process)]
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left


def wait_for(path: Path) -> None:
    """Wait until a file exists: another process makes it."""
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.001)


def _has(directory: Path, pattern: str) -> bool:
    """Whether a file matches. The command may delete a directory while it is searched."""
    with contextlib.suppress(FileNotFoundError):
        return any(directory.glob(pattern))
    return False


def stopped_at(directory: Path, pattern: str, args: Sequence[str | Path], tries: int = 1) -> None:
    """Run the command until a file that matches the pattern exists in the folder, then kill -9.

    With more `tries`, a command that may run again is started anew if it ends before the file is seen.
    """
    run = Started(*args)
    try:
        run.wait_for(directory, pattern)
    except AssertionError:
        if tries == 1:
            raise
        stopped_at(directory, pattern, args, tries - 1)
    finally:
        run.kill_all()
