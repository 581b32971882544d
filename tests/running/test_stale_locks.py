"""Whether the run that wrote a lock at a URL still lives, and locks that the file system refuses."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from cdxmill.errors import StoppedError
from cdxmill.running.lock import LOCK, hold, killed_run
from cdxmill.storage.location import Location

HERE, LONG_AGO = os.uname().nodename, 0.0
NOBODY = 2**22 + 1
"""A number that no process has."""


@pytest.mark.parametrize(
    ("changed", "is_killed"),
    [
        ({}, False),
        ({"renewed": LONG_AGO}, True),
        ({"host": HERE}, False),
        ({"host": HERE, "renewed": LONG_AGO}, True),
        ({"host": HERE, "process": NOBODY}, True),
        ({"host": HERE, "process": "no number"}, True),
        ({"host": HERE, "process": 10**30}, True),
        ({"host": HERE, "process": float("inf")}, True),
        ({"host": None}, False),
        ({"process": NOBODY}, False),
        ({"renewed": None}, True),
        ({"renewed": 10**400}, True),
    ],
)
def test_a_lock_says_whether_its_run_was_killed(
    changed: dict[str, object], is_killed: bool, tmp_path: Path
) -> None:
    known = {"run": "x", "process": os.getpid(), "host": "elsewhere", "renewed": time.time()}
    (tmp_path / LOCK).write_text(json.dumps(known | changed))
    assert killed_run(Location(str(tmp_path))) == ("x" if is_killed else None)


def test_no_lock_is_that_of_no_run(tmp_path: Path) -> None:
    assert killed_run(Location(str(tmp_path))) is None
    (tmp_path / LOCK).write_text("mine")
    assert killed_run(Location(str(tmp_path))) is None


@pytest.mark.parametrize(("renewed", "killed"), [(None, None), (LONG_AGO, "x")])
def test_a_process_of_another_user_is_no_killed_one(
    renewed: float | None, killed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: int, signal: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    known = {"run": "x", "process": 1, "host": HERE, "renewed": time.time() if renewed is None else renewed}
    (tmp_path / LOCK).write_text(json.dumps(known))
    assert killed_run(Location(str(tmp_path))) == killed


def test_a_file_system_that_fails_is_not_one_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int, flags: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    told: list[str] = []
    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(StoppedError, match="Input/output error"):
        hold(tmp_path, told.append).__enter__()
    assert told == []
