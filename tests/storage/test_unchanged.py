"""A file that changes while it is read is an error, whatever was read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.api.archives import captures
from cdxmill.errors import InputError
from cdxmill.inputs.cdx_files import read_pieces
from cdxmill.storage.reading import open_unchanged


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def shrink(path: Path) -> None:
    os.truncate(path, 10)


def replace(path: Path) -> None:
    status, other = path.stat(), path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def overwrite(path: Path) -> None:
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    os.utime(path, ns=(0, status.st_mtime_ns + 1))


def remove(path: Path) -> None:
    path.unlink()


CHANGES = [grow, shrink, replace, overwrite, remove]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_an_input_error(change: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"some text" * 10)
    with (
        pytest.raises(InputError, match=r"a\.warc: changed while it was read"),
        open_unchanged(str(path)) as read_at,
    ):
        assert read_at(0, 4) == b"some"
        change(path)


def test_a_file_that_is_only_read_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"some text")
    with open_unchanged(path.as_uri()) as read_at:
        assert read_at(0, 4) == b"some"
        path.chmod(0o600)
    with open_unchanged("/dev/null") as read_at:
        assert read_at(0, 4) == b""


def test_an_error_while_reading_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"some text")
    with pytest.raises(ValueError, match="mine"), open_unchanged(str(path)):
        grow(path)
        raise ValueError("mine")


@pytest.mark.parametrize("change", [grow, shrink])
def test_an_archive_that_changes_is_an_error(
    change: Callable[[Path], None], tmp_path: Path, pywb_warcs: Path
) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes((pywb_warcs / "iana.warc.gz").read_bytes())
    found = captures(str(path), on_failure=lambda failure: None)
    next(found)
    change(path)
    with pytest.raises(InputError, match="changed while it was read"):
        list(found)


def test_a_cdx_file_that_changes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.cdxj"
    path.write_bytes(b"com,a)/ 2020 {}\n" * 1000)
    pieces = read_pieces(str(path), 1000)
    next(pieces)
    grow(path)
    with pytest.raises(InputError, match="changed while it was read"):
        list(pieces)
