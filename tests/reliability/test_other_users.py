"""An output directory with files of another user: one line says what is wrong, and no file of this user is lost.

Root may do everything. So the commands run as root without its rights: then it is a user like any other.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from ..material.processes import COMMAND

OTHER = 12345
"""The ID of another user."""
SETPRIV = shutil.which("setpriv")
LOCK = b"process 17 on host since 2024-01-01 00:00:00 UTC: cdxmill index"
ROW = b"x.cdx.gz\t/x\ts\t1\t1\te\t2\n"
DENIED = "cannot be written (Permission denied); change the access rights or choose another directory"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or SETPRIV is None, reason="only root can become another user"
)


@contextmanager
def held(out: Path) -> Iterator[None]:
    """The other user's run is alive."""
    with (out / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Case(NamedTuple):
    """Files of the other user in the output directory, and what a command says then."""

    files: dict[str, bytes]
    command: str
    status: int
    message: str
    around: Callable[[Path], AbstractContextManager[object]] = nullcontext


CASES = {
    "nothing": Case({}, "index", 0, ""),
    "lock": Case(
        {".lock": LOCK}, "index", 2, "o/.lock: was left by a run of another user (ID 12345); let this"
    ),
    "held": Case(
        {".lock": LOCK}, "index", 2, "o: another run writes to this directory (process 17 on host", held
    ),
    "record": Case({".outputs.tsv": ROW}, "index", 3, f"o/.outputs.tsv: {DENIED}"),
    "failures": Case({"failures.tsv": b"/x\t\ta\tb\n"}, "index", 3, f"o/failures.tsv: {DENIED}"),
    "work": Case({".work/job.json": b"0"}, "build", 3, f"o/.work/job.json: {DENIED}"),
    "output": Case(
        {"a.cdx.gz": b"precious"},
        "index --replace",
        3,
        "o/a.cdx.gz: cannot be written (Operation not permitted)",
    ),
    "cluster": Case(
        {"cluster.idx": b"precious"}, "build", 2, "o: has cluster.idx, which is not of a cluster of this"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_sticky_directory_that_all_can_write_to(name: str, pywb_warcs: Path, tmp_path: Path) -> None:
    case, out = CASES[name], tmp_path / "o"
    out.mkdir()
    for path, data in case.files.items():
        (out / path).parent.mkdir(exist_ok=True)
        (out / path).write_bytes(data)
        os.chown((out / path).parent, OTHER, -1)
        os.chown(out / path, OTHER, -1)
    out.chmod(0o1777)
    os.chown(out, OTHER, -1)
    with case.around(out):
        assert_said(case, tmp_path, pywb_warcs)
    assert {path: (out / path).read_bytes() for path in case.files} == case.files


def test_a_directory_that_only_its_owner_can_write_to(pywb_warcs: Path, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    os.chown(tmp_path / "o", OTHER, -1)
    for command in ("index", "build", "recompress --to gz"):
        assert_said(Case({}, command, 3, f"o/.lock: {DENIED}"), tmp_path, pywb_warcs)
    assert list((tmp_path / "o").iterdir()) == []


def assert_said(case: Case, directory: Path, archives: Path) -> None:
    """The command has the status of the case, and says its message in one line."""
    shutil.copyfile(archives / "iana.warc.gz", directory / "a.warc.gz")
    call = [
        SETPRIV or "",
        "--bounding-set=-all",
        "--inh-caps=-all",
        str(COMMAND),
        *case.command.split(),
        "-q",
        "-o",
        "o",
        "a.warc.gz",
    ]
    done = subprocess.run(call, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == case.status, done.stderr
    assert len(done.stderr.splitlines()) == bool(case.message), done.stderr
    assert case.message in done.stderr.replace(f"{directory}/", "")
