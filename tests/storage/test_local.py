"""Local files: what is read, listed, renamed and deleted, and errors that are not "no such file"."""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdxmill.errors import InputError, OutageError, RefusedError, StoppedError, UsageError
from cdxmill.running.resume import WorkDirectory
from cdxmill.storage import local
from cdxmill.storage.location import Location, locate

from ..material.failing_disk import fail_reads
from ..material.open_files import open_files


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_any_error_but_absent_is_an_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, **_: object) -> os.stat_result:
        raise OSError(number, os.strerror(number), path)

    (tmp_path / "a").touch()
    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(RefusedError if number == errno.EACCES else InputError, match=os.strerror(number)):
        locate(tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["absent", "file/below", "a\0b", "x" * 300, "loop"])
def test_what_cannot_exist_is_absent(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert not locate(tmp_path / name).exists()


def test_links_that_lead_nowhere_are_no_entries(tmp_path: Path) -> None:
    for name, target in {"self": "self", "one": "two", "two": "one", "dangling": "absent", "up": "."}.items():
        (tmp_path / name).symlink_to(target)
    assert list(locate(tmp_path).entries()) == ["up"]


def test_of_a_link_to_a_directory_the_link_is_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    for remove in (Location.remove, Location.remove_tree):
        (tmp_path / "link").symlink_to("mine")
        remove(locate(tmp_path / "link"))
        assert not os.path.lexists(tmp_path / "link")
        assert (tmp_path / "mine/file").exists()


def test_a_work_directory_is_emptied_after_a_restart_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = tmp_path / "boot_id"
    monkeypatch.setattr("cdxmill.running.resume._BOOT_ID", boot)
    for text, kept in (("one", None), ("one", 1), ("two", None)):
        boot.write_text(text)
        work = WorkDirectory(tmp_path / "work", "job")
        assert work.load("result") == kept
        work.save("result", 1)
    boot.unlink()
    assert WorkDirectory(tmp_path / "work", "job").load("result") is None
    assert WorkDirectory(tmp_path / "work", "job") is not None


def test_what_cannot_be_renamed_stops_the_run(tmp_path: Path) -> None:
    """Also if two directories cannot be exchanged for another reason than that the system has no such call."""
    (tmp_path / "a").mkdir()
    here, absent = locate(tmp_path / "a"), locate(tmp_path / "absent")
    with pytest.raises(StoppedError, match="No such file or directory"):
        here.exchange(absent)
    with pytest.raises(StoppedError, match="No such file or directory"):
        absent.move(here)


def test_a_file_is_closed_after_its_reads_and_what_cannot_be_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file on a network, a read may return less than is there."""
    (tmp_path / "a").write_bytes(bytes(range(100)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, offset: pread(file, min(size, 7), offset))
    with local.open_ranges(str(tmp_path / "a")) as read_at:
        assert open_files(tmp_path) == ["a"]
        assert read_at(10, 80) == bytes(range(10, 90))
        assert read_at(90, 80) == bytes(range(90, 100))
    for name, told in (
        ("", "Is a directory"),
        ("absent", "No such file"),
        ("a\0b", "no file can have this name"),
    ):
        with pytest.raises(InputError, match=told), local.open_ranges(f"{tmp_path}/{name}"):
            pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="save it to a file"), local.open_ranges(str(tmp_path / "pipe")):
        pass
    assert open_files(tmp_path) == []


def test_a_disk_that_fails_later_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"x")
    with local.open_ranges(str(tmp_path / "a")) as read_at:
        fail_reads(monkeypatch, "a")
        with pytest.raises(OutageError, match=r"a: cannot be read \(Input/output error\)"):
            read_at(0, 1)
    with pytest.raises(OutageError), local.open_ranges(str(tmp_path / "a")):
        pass
    assert open_files(tmp_path) == []


def test_an_error_without_a_number_is_told_by_its_text(tmp_path: Path) -> None:
    assert str(local.input_error("a", OSError("odd"))) == "a: cannot be read (odd)"
    with pytest.raises(StoppedError, match=r"a: cannot be written \(odd\)"), local.stopping(tmp_path / "a"):
        raise OSError("odd")


def test_a_file_is_no_directory_for_outputs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for check in (local.make_directory, local.check_directory):
        with pytest.raises(UsageError, match="file: is not a directory; choose another output directory"):
            check(tmp_path / "file")
        check(tmp_path)
    local.check_directory(tmp_path / "absent")
    local.check_above(str(tmp_path / "absent/below"))
    for name in ("file/below", "file/far/below"):
        with pytest.raises(UsageError, match="file is not a directory; choose another output"):
            local.check_above(str(tmp_path / name))
    with pytest.raises(StoppedError, match="cannot be written"):
        local.make_directory(tmp_path / "file/below")


@pytest.mark.parametrize(("number", "found"), [(errno.ENOENT, True), (errno.EIO, False)])
def test_an_entry_may_be_deleted_while_it_is_listed(
    number: int, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    entry = SimpleNamespace(name="a", path="a", is_dir=lambda: False, is_file=lambda: True, stat=fail)
    monkeypatch.setattr(os, "scandir", lambda path: nullcontext([entry]))
    with nullcontext() if found else pytest.raises(OutageError, match="a: cannot be read"):
        assert local.list_directory(str(tmp_path)) == {}


def test_a_directory_that_cannot_be_listed_is_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "file").touch()
    for name in ("absent", "file", "a\0b"):
        assert local.list_directory(str(tmp_path / name)) == {}
    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(RefusedError):
        local.list_directory(str(tmp_path))


def test_a_directory_with_files_is_deleted_as_a_tree_only(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").touch()
    with pytest.raises(StoppedError, match="not empty"):
        local.remove(str(tmp_path / "a"))
    assert (tmp_path / "a/file").exists()
    local.remove_tree(str(tmp_path / "a"))
    for remove in (local.remove, local.remove_tree):
        (tmp_path / "empty").mkdir()
        remove(str(tmp_path / "empty"))
        remove(str(tmp_path / "empty"))
    assert list(tmp_path.iterdir()) == []


def test_access_rights_are_copied_and_directories_exchanged(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    (tmp_path / "a").chmod(0o711)
    local.copy_mode(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o711
    local.copy_mode(str(tmp_path / "absent"), str(tmp_path / "b"))
    assert local.exchange(str(tmp_path / "a"), str(tmp_path / "b"))
    assert (tmp_path / "a/b").exists()
    assert (tmp_path / "b/a").exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, None, errno.EIO])
def test_a_system_that_cannot_exchange_directories_says_so(
    number: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(number or 0)
        return -1

    library = SimpleNamespace(**{} if number is None else {"renameat2": refuse})
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    with pytest.raises(StoppedError, match="Input/output") if number == errno.EIO else nullcontext():
        assert local.exchange(str(tmp_path / "a"), str(tmp_path / "b")) is False
