"""failures.tsv: an archive that failed stays listed until it was indexed, whatever else is indexed in between."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.per_archive import task
from cdxmill.formats.own_records import parse_row
from cdxmill.storage.location import Location


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`good.warc.gz`, and `cut.warc.gz`, which is truncated, in the current directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example2.warc.gz", "good.warc.gz")
    shutil.copyfile(pywb_warcs / "example.warc.gz", "whole.warc.gz")
    Path("cut.warc.gz").write_bytes(Path("whole.warc.gz").read_bytes()[:3000])
    return tmp_path


def index(*args: str) -> int:
    return main(["index", "-q", "-p", "1", "-o", "out", *args])


def listed() -> list[str]:
    """The names of the archives in the list, one per row."""
    path = Path("out/failures.tsv")
    rows = path.read_bytes().splitlines() if path.exists() else []
    return [parse_row(row)[0].rpartition("/")[2] for row in rows]


def test_other_archives_do_not_make_a_failure_forgotten(directory: Path) -> None:
    assert index("cut.warc.gz") == 1
    assert index("good.warc.gz") == 0
    assert listed() == ["cut.warc.gz"]
    assert index("--update", "cut.warc.gz", "good.warc.gz") == 1
    assert index("cut.warc.gz", "good.warc.gz") == 1
    assert index("--replace", "good.warc.gz") == 0
    assert listed() == ["cut.warc.gz"]
    assert index("--replace", "good.warc.gz", "cut.warc.gz") == 1
    assert listed() == ["cut.warc.gz"]


@pytest.mark.parametrize("command", ["index", "recompress"])
def test_a_failure_of_an_archive_of_a_manifest_names_its_line(
    command: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("list").write_text("good.warc.gz\ncut.warc.gz\n")
    assert main([command, "-q", "-p", "1", "-o", "out", "--manifest", "list"]) == 1
    assert capsys.readouterr().err.startswith("list:2: cut.warc.gz@")
    assert listed() == ["cut.warc.gz"]


def test_rows_are_added_to_a_list_that_a_kill_has_cut_and_not_to_another_name_of_it(directory: Path) -> None:
    shutil.copyfile("cut.warc.gz", "other.warc.gz")
    assert index("cut.warc.gz") == 1
    whole = Path("out/failures.tsv").read_bytes()
    for data in (whole, whole[:-1]):
        Path("out/failures.tsv").write_bytes(data)
        Path("copy.tsv").unlink(missing_ok=True)
        Path("copy.tsv").hardlink_to("out/failures.tsv")
        assert index("--replace", "other.warc.gz") == 1
        assert listed() == ["cut.warc.gz", "other.warc.gz"]
        assert Path("copy.tsv").read_bytes() == data
    Path("out/failures.tsv").write_bytes(whole[:-1])
    assert index("--replace", "other.warc.gz") == 1
    assert listed() == ["cut.warc.gz", "other.warc.gz"]


def test_another_spelling_is_the_same_archive(directory: Path) -> None:
    Path("list").write_text("cut.warc.gz\n")
    assert index("cut.warc.gz") == 1
    assert index("--update", "./cut.warc.gz") == 1
    for root in (".", str(directory)):
        assert index("--update", "--manifest", "list", "--root", root) == 1
    assert listed() == ["cut.warc.gz"]


@pytest.mark.parametrize("name", ["a\nb\tc.warc.gz", "100%09.warc.gz", "\udcff.warc.gz"])
def test_every_name_is_found_again(name: str, directory: Path) -> None:
    shutil.move("cut.warc.gz", name)
    assert index(name) == 1
    assert len(listed()) == 1
    assert index(name, "--update") == 1
    assert listed() == [name]
    shutil.copyfile("whole.warc.gz", name)
    assert index(name, "--update") == 0
    assert listed() == []


def test_an_archive_that_is_whole_again_is_no_longer_listed(directory: Path) -> None:
    assert index("cut.warc.gz", "absent.warc.gz") == 1
    assert sorted(listed()) == ["absent.warc.gz", "cut.warc.gz"]
    for name in ("cut.warc.gz", "absent.warc.gz"):
        shutil.copyfile("whole.warc.gz", name)
    assert index("cut.warc.gz") == 0
    assert listed() == ["absent.warc.gz"]
    assert index("cut.warc.gz", "absent.warc.gz") == 0
    assert not Path("out/failures.tsv").exists()


def test_an_archive_that_is_gone_keeps_its_output_and_is_listed(directory: Path) -> None:
    assert index("good.warc.gz") == 0
    before = Path("out/good.cdx.gz").read_bytes()
    Path("good.warc.gz").rename("elsewhere")
    for option in ("-q", "--update", "--replace"):
        assert index("good.warc.gz", option) == 1
        assert listed() == ["good.warc.gz"]
        assert Path("out/good.cdx.gz").read_bytes() == before


@pytest.mark.parametrize("moment", ["list_in", "append_made", "remove"])
@pytest.mark.parametrize("is_mended", [False, True])
def test_a_kill_at_any_moment_loses_no_row(moment: str, is_mended: bool, directory: Path) -> None:
    """In a process of its own, because it is killed."""
    if is_mended:
        assert index("cut.warc.gz") == 1
        shutil.copyfile("whole.warc.gz", "cut.warc.gz")
    child = os.fork()
    if not child:
        setattr(
            Location if moment == "remove" else task, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        )
        index("cut.warc.gz")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if Path("out/cut.cdx.gz").exists() or is_mended:
        assert listed() == ["cut.warc.gz"]
    assert index("cut.warc.gz") == (0 if is_mended else 1)
    assert listed() == ([] if is_mended else ["cut.warc.gz"])


def test_an_empty_archive_is_a_failure(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("empty.warc.gz").touch()
    assert index("empty.warc.gz", "good.warc.gz") == 1
    assert capfd.readouterr().err == "empty.warc.gz@0: the file is empty; fetch the file again\n"
    assert listed() == ["empty.warc.gz"]
    assert main(["index", "-q", "-p", "1", "-o", "-", "empty.warc.gz"]) == 1


def test_a_part_of_a_row_does_not_swallow_the_next(directory: Path) -> None:
    assert index("good.warc.gz") == 0
    Path("out/failures.tsv").write_bytes(b"/other/archive.warc.gz\t1")
    assert index("cut.warc.gz") == 1
    assert listed() == ["archive.warc.gz", "cut.warc.gz"]


@pytest.mark.parametrize("name", ["failures.tsv", ".outputs.tsv"])
@pytest.mark.parametrize(
    "data", [b"mine", b"mine\n", b"my\tnotes\n", b"my\tnotes\tof\ttoday\n", b"a\t1\nb\t2\n", b"a\t1\t\n\n"]
)
def test_a_table_of_somebody_else_is_not_appended_to(
    name: str, data: bytes, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    Path("out", name).write_bytes(data)
    assert index("cut.warc.gz") == 2
    assert f"out/{name}: is " in capfd.readouterr().err
    assert [(path.name, path.read_bytes()) for path in Path("out").iterdir()] == [(name, data)]


@pytest.mark.parametrize("data", [b"my\tnotes", b"my\t1x"])
def test_a_list_of_failures_is_known_by_its_offsets(data: bytes, directory: Path) -> None:
    """Only the first row of a killed run may be cut."""
    Path("out").mkdir()
    Path("out/failures.tsv").write_bytes(data)
    assert index("cut.warc.gz") == 2


def records_of(count: int, date: bytes, length: bytes) -> bytes:
    """A plain WARC file of `count` records that have this date and this Content-Length."""
    head = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.com/%d\r\nWARC-Record-ID: <urn:x:%d>\r\n"
    end = b"WARC-Date: %b\r\nContent-Length: %b\r\n\r\nx\r\n\r\n" % (date, length)
    return b"".join(head % (number, number) + end for number in range(count))


def test_one_note_per_record_does_not_flood_the_screen(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("odd.warc").write_bytes(records_of(1000, b"never", b"1"))
    assert index("odd.warc", "good.warc.gz") == 0
    lines = capfd.readouterr().err.splitlines()
    reason = "missing or invalid date; the timestamp is -"
    assert [line.partition(": note: ")[2] for line in lines[:10]] == [reason] * 10
    assert lines[10:] == [f"note: 990 more notes of this kind: {reason}"]


def test_one_failure_per_record_is_listed_and_does_not_flood_the_screen(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = Path("whole.warc.gz").read_bytes()
    Path("bad.warc.gz").write_bytes((whole[:400] + whole) * 30)
    assert index("bad.warc.gz", "absent.warc.gz") == 1
    lines = capfd.readouterr().err.splitlines()
    rows = Path("out/failures.tsv").read_bytes().splitlines()
    more = [int(line.split(": ")[1].split()[0]) for line in lines if "more failures of this kind" in line]
    assert len(more) >= 1
    assert len(rows) == len(lines) - len(more) + sum(more)
    assert any(line.startswith("absent.warc.gz: cannot be read") for line in lines)
    assert main(["index", "-q", "-p", "1", "-o", "-", "bad.warc.gz"]) == 1
    assert len(capfd.readouterr().err.splitlines()) == len(rows) - 1, "on stdout this is the only list"
