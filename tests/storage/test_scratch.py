"""A run's directory for temporary files is deleted at its end, or by a later run if it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from cdxmill.storage.scratch import Scratch, temporary_directory

CHILD = """
import os, signal, sys
from pathlib import Path
from cdxmill.storage.scratch import temporary_directory
with temporary_directory(sys.argv[1]) as directory:
    (Path(directory) / "below").mkdir()
    (Path(directory) / "below/run").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_directory_is_deleted_at_the_end(tmp_path: Path) -> None:
    with temporary_directory(str(tmp_path)) as directory:
        (Path(directory) / "run").write_text("x")
        assert Path(directory).parent == tmp_path
    assert names(tmp_path) == set()
    opened = [one for one in Path("/proc/self/fd").iterdir() if os.path.lexists(one)]
    assert [one for one in opened if str(one.readlink()).startswith(str(tmp_path))] == []


def test_a_later_run_deletes_only_the_directories_of_killed_runs(tmp_path: Path) -> None:
    foreign = {"cdxmill-branches", "cdxmill-run-x", "cdxmill-run-notes.txt", "cdxmill-run-linked00"}
    for name in foreign - {"cdxmill-run-linked00"}:
        (tmp_path / name).mkdir()
    (tmp_path / "cdxmill-run-linked00").symlink_to(tmp_path / "cdxmill-branches")
    (tmp_path / "cdxmill-run-file0000").write_text("mine")
    with temporary_directory(str(tmp_path)) as directory:  # another run that lives
        killed = subprocess.run([sys.executable, "-c", CHILD, tmp_path], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(names(tmp_path)) == len(foreign) + 3
        with temporary_directory(str(tmp_path)) as other:
            kept = foreign | {"cdxmill-run-file0000", Path(directory).name, Path(other).name}
            assert names(tmp_path) == kept


OFTEN = """
import sys
from cdxmill.storage.scratch import temporary_directory
for _ in range(300):
    with temporary_directory(sys.argv[1]) as directory:
        pass
"""


def test_runs_that_start_at_the_same_time_do_not_delete_the_directories_of_each_other(tmp_path: Path) -> None:
    runs = [subprocess.Popen([sys.executable, "-c", OFTEN, tmp_path]) for _ in range(6)]
    assert [run.wait() for run in runs] == [0] * 6
    assert names(tmp_path) == set()


def test_a_scratch_file_creates_its_directories_and_others_join_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "deep/below")
    for name in ("a", "b"):
        with scratch.create(name) as file:
            file.write(name.encode())
    assert [scratch.reader(name)(0, 9) for name in ("a", "b")] == [b"a", b"b"]
