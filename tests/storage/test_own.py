"""Names that cdxmill chose: what somebody else has put there is neither followed nor changed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.storage.own import append_rows, create_own, open_own, own_directory, read_own

from ..material.open_files import open_files

CREATING = os.O_RDWR | os.O_CREAT


def link(path: Path) -> None:
    (path.parent / "precious").write_bytes(b"mine")
    path.symlink_to("precious")


def link_nowhere(path: Path) -> None:
    path.symlink_to("absent")


def hard_link(path: Path) -> None:
    (path.parent / "precious").write_bytes(b"mine")
    path.hardlink_to(path.parent / "precious")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


@pytest.mark.parametrize("flags", [os.O_RDWR, CREATING, CREATING | os.O_APPEND, os.O_WRONLY])
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (link, "a symbolic link"),
        (link_nowhere, "a symbolic link"),
        (hard_link, "a file of somebody else"),
        (Path.mkdir, "a directory of somebody else"),
        (os.mkfifo, "a pipe or device"),
        (unix_socket, "a pipe or device"),
    ],
)
def test_what_is_not_of_cdxmill_stays_as_it_is(
    make: Callable[[Path], object], what: str, flags: int, tmp_path: Path
) -> None:
    make(tmp_path / "o")
    before = sorted(tmp_path.iterdir())
    told = f"{tmp_path / 'o'}: is {what}, and cdxmill needs this name"
    with pytest.raises(UsageError, match=told):
        open_own(tmp_path / "o", flags)
    assert open_files(tmp_path) == []
    assert sorted(tmp_path.iterdir()) == before
    assert [path.read_bytes() for path in tmp_path.glob("precious")] in ([], [b"mine"])


def test_a_file_is_created_only_if_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "o"
    with pytest.raises(FileNotFoundError):
        open_own(path, os.O_RDWR)
    assert not path.exists()
    os.close(open_own(path, CREATING, 0o600))
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"kept")
    os.close(open_own(path, CREATING))
    assert path.read_bytes() == b"kept"
    with pytest.raises(NotADirectoryError):
        open_own(path / "below", CREATING)


def test_a_file_that_another_process_creates_at_the_same_time_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opens = tmp_path / "o", os.open

    def open_late(name: Path, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT and not path.exists():
            path.write_bytes(b"theirs")
        return opens(name, flags, *mode)

    monkeypatch.setattr(os, "open", open_late)
    handle = open_own(path, CREATING)
    assert os.pread(handle, 9, 0) == b"theirs"
    os.close(handle)


def test_a_file_with_two_names_is_read(tmp_path: Path) -> None:
    hard_link(tmp_path / "o")
    assert read_own(tmp_path / "o") == b"mine"


@pytest.mark.parametrize("name", ["absent", "file/below"])
def test_what_does_not_exist_is_empty(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_own(tmp_path / name) == b""


def test_a_new_file_of_a_run_replaces_what_has_its_name(tmp_path: Path) -> None:
    link(tmp_path / "o")
    for name in ("o", "new"):
        with create_own(tmp_path / name) as file:
            file.write(b"new")
    assert ((tmp_path / "o").is_symlink(), (tmp_path / "o").read_bytes()) == (False, b"new")
    assert (tmp_path / "precious").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("make", "what"), [(link, "a symbolic link"), (link_nowhere, "a symbolic link"), (Path.touch, "a file")]
)
def test_a_name_that_is_taken_is_no_directory(
    make: Callable[[Path], object], what: str, tmp_path: Path
) -> None:
    make(tmp_path / "o")
    with pytest.raises(UsageError, match=f"is {what}"):
        own_directory(tmp_path / "o")
    (tmp_path / "mine").mkdir()
    (tmp_path / "to").symlink_to("mine")
    with pytest.raises(UsageError, match="is a symbolic link"):
        own_directory(tmp_path / "to")
    own_directory(tmp_path / "mine")


def test_rows_are_on_the_disk_and_so_is_the_name_of_a_new_file(tmp_path: Path, calls: list[str]) -> None:
    append_rows(tmp_path / "o.tsv", [])
    assert not (tmp_path / "o.tsv").exists()
    append_rows(tmp_path / "o.tsv", [["a", "b"]])
    append_rows(tmp_path / "o.tsv", [["c", "d"]])
    assert calls == ["sync file", f"sync {tmp_path.name}/", "sync file"]
    assert (tmp_path / "o.tsv").read_bytes() == b"a\tb\nc\td\n"


_FULL_DISK = """
import os, resource, signal, sys
from pathlib import Path
from cdxmill.storage.own import append_rows
path, fstat = Path(sys.argv[1]), os.fstat
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8, resource.RLIM_INFINITY))

def append_too(handle):
    if fstat(handle).st_size == 8:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        path.write_bytes(path.read_bytes() + b"theirs\\n")
    return fstat(handle)

if sys.argv[2:]:
    os.fstat = append_too
append_rows(path, [["c" * 100]])
"""


@pytest.mark.parametrize(("words", "left"), [([], b""), (["and others append"], b"cccctheirs\n")])
def test_half_a_row_is_an_error_and_stays_only_if_others_follow(
    words: list[str], left: bytes, tmp_path: Path
) -> None:
    table = tmp_path / "failures.tsv"
    append_rows(table, [["a", "b"]])
    command = [sys.executable, "-c", _FULL_DISK, str(table), *words]
    done = subprocess.run(command, capture_output=True, check=False)
    assert b"StoppedError" in done.stderr
    assert b"No space left on device" in done.stderr
    assert table.read_bytes() == b"a\tb\n" + left


def test_a_row_after_half_a_row_has_its_own_line(tmp_path: Path) -> None:
    """One of several processes is killed in the middle of a row. The others go on."""
    table = tmp_path / "failures.tsv"
    append_rows(table, [["a", "b"]])
    with table.open("ab") as file:
        file.write(b"half a")
    append_rows(table, [["c", "d"], ["e", "f"]])
    assert table.read_bytes() == b"a\tb\nhalf a\nc\td\ne\tf\n"
