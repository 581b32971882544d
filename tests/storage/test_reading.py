"""Ways to read a file: what a missing, refused or failing one is to each of them."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import tempfile
from pathlib import Path

import pytest

from cdxmill.errors import InputError, OutageError, RefusedError
from cdxmill.storage import location
from cdxmill.storage.local import write_atomic
from cdxmill.storage.location import Location, locate
from cdxmill.storage.reading import (
    bytes_if_any,
    first_bytes,
    if_any,
    json_if_any,
    look,
    open_mapped,
    open_unchanged,
    sha256_of,
    written,
)

from ..material.failing_disk import fail_reads
from ..material.open_files import open_files
from ..material.wacz_files import DATA, make_wacz
from .range_server import RangeServer

BODY = bytes(range(256)) * 40


@pytest.fixture
def place(tmp_path: Path) -> Location:
    """A local file."""
    (tmp_path / "a").write_bytes(BODY)
    return locate(tmp_path / "a")


def test_a_file_that_may_be_missing_is_none_only_if_it_is(
    place: Location, server: RangeServer, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote storage answers 403 for a missing file, too; a disk that refuses a file has it."""
    served = server.add("/a", BODY)
    remote = locate(f"{server.url}/a")
    assert bytes_if_any(place) == bytes_if_any(remote) == BODY
    assert bytes_if_any(place.with_name("absent")) is bytes_if_any(remote.with_name("absent")) is None
    served.statuses = [403]
    assert bytes_if_any(locate(remote.text)) is None
    served.statuses = [503] * 99
    with pytest.raises(OutageError):
        bytes_if_any(locate(remote.text))
    monkeypatch.setattr(location, "SMALL", 10)
    assert bytes_if_any(place) is None, "it is too large"
    monkeypatch.undo()
    fail_reads(monkeypatch, "a")
    with pytest.raises(OutageError):
        bytes_if_any(place)


@pytest.mark.parametrize(("is_remote", "is_none"), [(True, True), (False, False)])
def test_a_refusal_counts_as_missing_only_if_it_comes_from_another_machine(
    is_remote: bool, is_none: bool
) -> None:
    def refuse() -> bytes:
        raise RefusedError("a", "refused")

    asked = locate("s3://b/a" if is_remote else "/a")
    if is_none:
        assert if_any(asked, refuse) is None
    else:
        with pytest.raises(RefusedError):
            if_any(asked, refuse)


@pytest.mark.parametrize(
    ("body", "value"),
    [(b'{"a": 1}', {"a": 1}), (b"{", None), (b"", None), (b"\xff", None), (b"[" * 200_000, None)],
    ids=["whole", "truncated", "empty", "no text", "deep"],
)
def test_a_json_file_that_cannot_be_read_is_none(body: bytes, value: object, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(body)
    assert json_if_any(locate(tmp_path / "a.json")) == value
    assert json_if_any(locate(tmp_path / "absent.json")) is None


def test_a_look_at_a_local_file_on_a_failing_disk_is_an_outage(
    place: Location, server: RangeServer, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read of an archive is told when it is read; a size that is unknown would be another input."""
    entry, head = look(place, 5)
    assert (entry, head) == (place.status(), BODY[:5])
    assert look(place, 0) == (entry, b"")
    fail_reads(monkeypatch, "a")
    assert look(place, 5) == (entry, b"")
    assert first_bytes(place, 5) == b""
    server.add("/a", BODY).statuses = [503] * 99
    assert look(locate(f"{server.url}/a"), 5) == (None, b"")

    def fail(path: str) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(OutageError, match="Input/output error"):
        look(place, 5)
    with pytest.raises(OutageError, match="Input/output error"), open_unchanged(place):
        raise AssertionError("not reached")


def test_a_look_into_a_wacz_on_a_server_is_at_the_file_in_it(server: RangeServer) -> None:
    server.add("/x.wacz", make_wacz({DATA: BODY}))
    entry, head = look(locate(f"{server.url}/x.wacz/{DATA}"), 5)
    assert entry is not None
    assert (entry.size, head) == (len(BODY), BODY[:5])
    assert first_bytes(locate(f"{server.url}/x.wacz/{DATA}"), 300) == BODY[:300]


def test_a_file_that_is_gone_changes_nothing_but_its_error(tmp_path: Path) -> None:
    for name in ("absent", "a\0b"):
        with pytest.raises(InputError, match="cannot be read"), open_unchanged(tmp_path / name):
            pass


def test_the_sum_of_what_is_written_is_that_of_what_is_on_the_disk(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[tuple[int, ...]] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda file, *what: dropped.append((calls.count("sync file"), *what))
    )
    with write_atomic(tmp_path / "a", sync_name=False) as file:
        file.write(BODY)
        assert written(file) == hashlib.sha256(BODY).hexdigest()
    assert calls == ["sync file", "sync file", "rename"]
    assert dropped == [(1, 0, 0, os.POSIX_FADV_DONTNEED)], "all of it is read from the disk"
    assert sha256_of(locate(tmp_path / "a")) == hashlib.sha256(BODY).hexdigest()
    with tempfile.TemporaryFile() as spooled:
        assert written(spooled) is None


def test_the_sum_of_a_long_file_is_that_of_all_its_pieces(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "_FILE_PIECE", 1000)
    assert sha256_of(place) == hashlib.sha256(BODY).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 300])
def test_a_mapped_file_is_read_as_any_other(size: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(BODY[:size])
    with open_mapped(str(tmp_path / "a")) as (read_at, known):
        assert known == size
        for offset, wanted in ((0, 1), (0, size), (100, 50), (size, 5), (size + 5, 5)):
            assert read_at(offset, wanted) == BODY[:size][offset : offset + wanted]
        assert len(open_files(tmp_path)) <= 2
    assert open_files(tmp_path) == []


@pytest.mark.parametrize(
    "error", [OSError(errno.ENODEV, "No such device"), ValueError("odd")], ids=["OS", "value"]
)
def test_a_file_that_cannot_be_mapped_is_an_input_error(
    error: Exception, place: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(mmap, "mmap", fail)
    with pytest.raises(InputError, match=r"a: cannot be read \("), open_mapped(place.text):
        pass
    assert open_files(tmp_path) == []
    with pytest.raises(InputError, match="No such file"), open_mapped(str(tmp_path / "absent")):
        pass
