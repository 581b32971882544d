"""The scratch files of a copy: records that break off leave nothing in them, and they go with the file that has their records."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill.commands.copying.output import CopyOutput, FileHead, Finished
from cdxmill.commands.copying.unit_files import WARC, Part, UnitFiles, unit_file
from cdxmill.errors import StoppedError
from cdxmill.storage.location import locate

HEAD = FileHead("20200101000000", [])


def rows(*names: str, size: int = 10) -> Part:
    """A part with a record of each name, all of one size."""
    return Part(
        [f"{name}.warc.gz\t0\t9\t-\thttp://{name}.com/\tno" for name in names],
        [size] * len(names),
        [""] * len(names),
    )


def test_a_record_that_breaks_off_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    unit = UnitFiles(tmp_path, 0, False)

    def broken() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise StoppedError("the archive ends")

    unit._write(WARC, ["a", 0, 9, None, "http://a.com/"], (b"first",))
    with pytest.raises(StoppedError):
        unit._write(WARC, ["b", 0, 9, None, "http://b.com/"], broken())
    unit._write(WARC, ["c", 0, 9, None, "http://c.com/"], (b"second",))
    unit.close()
    assert unit_file(tmp_path, 0, WARC).read_bytes() == b"firstsecond"
    assert unit.result.parts[WARC].sizes == [5, 6]


def test_a_record_that_cannot_be_written_stops_the_copy(tmp_path: Path) -> None:
    def full() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    unit = UnitFiles(tmp_path, 0, False)
    with pytest.raises(StoppedError, match="No space left"):
        unit._write(WARC, ["a", 0, 9, None, "http://a.com/"], full())
    unit.close()


def test_the_file_of_a_unit_is_deleted_when_its_records_are_in_a_whole_file(tmp_path: Path) -> None:
    target, units = tmp_path / "copy", [tmp_path / name for name in ("1", "2", "3")]
    target.mkdir()
    for number, unit in enumerate(units):
        unit.write_bytes(b"%d" % number * 20)
    with CopyOutput(Finished(locate(target)), 10_000, HEAD) as output:
        for number, unit in enumerate(units[:2]):
            assert output.add(WARC, unit, rows(f"a{number}", f"b{number}")) == 2
        assert all(unit.exists() for unit in units), "a killed run continues with them"
        output.finish()
        assert [unit.exists() for unit in units] == [False, False, True]
    written = (target / "copy-00000.warc.gz").read_bytes()
    assert written.endswith(b"0" * 20 + b"1" * 20)
    with CopyOutput(Finished(locate(target)), 10_000, HEAD) as output:
        assert output.add(WARC, units[2], rows("a0", "b1")) == 0
        assert output.add(WARC, units[2], rows("a0", "c")) == 1
        output.finish()
    assert (target / "copy-00001.warc.gz").read_bytes().endswith(b"2" * 10)
    assert not units[2].exists()


def test_an_empty_list_is_of_another_tool_and_stays(tmp_path: Path) -> None:
    target, unit = tmp_path / "copy", tmp_path / "unit"
    target.mkdir()
    unit.write_bytes(b"0" * 20)
    (target / "copy-00000.warc.gz").write_bytes(b"theirs")
    (target / "copy-00000.tsv").touch()
    with CopyOutput(Finished(locate(target)), 10_000, HEAD) as output:
        assert output.add(WARC, unit, rows("a", "b")) == 2
        output.finish()
    assert (target / "copy-00000.warc.gz").read_bytes() == b"theirs"
    assert (target / "copy-00001.warc.gz").read_bytes().endswith(b"0" * 20)


def test_records_are_written_where_the_system_copies_no_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it stops after some bytes."""
    copy, calls = os.copy_file_range, iter((3,))

    def some(source: int, target: int, size: int, start: int) -> int:
        for most in calls:
            return copy(source, target, most, start)
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", some)
    unit = tmp_path / "unit"
    unit.write_bytes(b"0123456789" * 2)
    (tmp_path / "copy").mkdir()
    with CopyOutput(Finished(locate(tmp_path / "copy")), 10_000, HEAD) as output:
        assert output.add(WARC, unit, rows("a", "b")) == 2
        output.finish()
    assert (tmp_path / "copy/copy-00000.warc.gz").read_bytes().endswith(b"0123456789" * 2)
    (row, last) = (tmp_path / "copy/copy-00000.tsv").read_text().splitlines()[1:]
    assert int(row.split("\t")[6]) + 10 == int(last.split("\t")[6])
    assert (tmp_path / "copy/copy-00000.warc.gz").stat().st_size == int(last.split("\t")[6]) + 10


def test_a_file_has_at_most_the_wanted_bytes_unless_one_record_has_more(tmp_path: Path) -> None:
    unit, names = tmp_path / "unit", ("a", "b", "c", "d", "e")
    unit.write_bytes(b"0123456789" * 5)

    def sizes(number: int, most: int) -> list[int]:
        target = tmp_path / str(number) / "copy"
        target.mkdir(parents=True)
        with CopyOutput(Finished(locate(target)), most, HEAD) as output:
            assert output.add(WARC, unit, rows(*names)) == 5
            output.finish()
        unit.write_bytes(b"0123456789" * 5)
        archives = [path.read_bytes() for path in sorted(target.glob("*.warc.gz"))]
        assert (output.files, output.bytes) == (len(archives), sum(map(len, archives)))
        assert sorted(path.name for path in target.iterdir()) == sorted(
            f"copy-{at:05d}.{kind}" for at in range(len(archives)) for kind in ("warc.gz", "cdxj", "tsv")
        )
        return list(map(len, archives))

    (whole,) = sizes(0, 1 << 20)
    assert sizes(1, whole - 30)[0] == whole - 30
    assert sizes(2, whole - 31)[0] == whole - 40
    assert len(sizes(3, 1)) == 5
