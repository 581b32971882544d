"""Tables of offsets: which are found, whose they are, and what is none."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.formats.offset_table import HEADER, row_format
from cdxmill.outputs.offset_tables import find_tables, first_names, is_table_of, read_table
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.move_lines import Names
from cdxmill.storage.location import Location

from ..material.failing_disk import fail_reads

ROWS = b"".join(row_format("a.warc.gz", "ä.zst") % (at, 12, at // 2, 6) for at in (0, 12))
NAMES = Names(b"a.warc.gz", "ä.zst".encode())


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(data))
    return path


def test_tables_are_found_by_their_names_and_each_is_of_one_archive(tmp_path: Path) -> None:
    one = write(tmp_path / "new/a.zst.offsets.gz", HEADER + ROWS)
    write(tmp_path / "new/empty.zst.offsets.gz", HEADER)
    write(tmp_path / "new/other.gz", b"mine")
    for named in ([str(tmp_path / "new")], [str(one)], [str(one), str(tmp_path / "new")]):
        assert find_tables(named, Failures()) == {str(one): NAMES}
    write(tmp_path / "copy/a.zst.offsets.gz", HEADER + ROWS)
    with pytest.raises(UsageError, match="are tables of the same archive"):
        find_tables([str(tmp_path / "new"), str(tmp_path / "copy")], Failures())
    (tmp_path / "none").mkdir()
    with pytest.raises(UsageError, match="no tables of offsets"):
        find_tables([str(tmp_path / "none")], Failures())


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (HEADER + ROWS, NAMES),
        (HEADER, None),
        (b"", InputError),
        (ROWS, InputError),
        (b"mine\n" + HEADER + ROWS, InputError),
        (HEADER + b"a\tb\n" + ROWS, InputError),
    ],
)
def test_the_first_row_of_a_table_says_whose_it_is(data: bytes, names: object, tmp_path: Path) -> None:
    table = Location(str(write(tmp_path / "t", data)))
    if names is InputError:
        with pytest.raises(
            InputError, match="is not a table of offsets; write it again with cdxmill recompress"
        ):
            first_names(table)
    else:
        assert first_names(table) == names
    assert is_table_of(table, "a.warc.gz", "ä.zst") is (names is not InputError)
    assert is_table_of(table, "b.warc.gz", "ä.zst") is (names is None)


def test_a_table_is_read_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t", HEADER + ROWS)
    assert read_table(str(path)).find(12, 12) == (6, 6)
    whole = path.read_bytes()
    for data, reason in (
        (whole[:-9], "the file is truncated inside a gzip member"),
        (whole[:-1], "the file is truncated inside a gzip trailer"),
        (b"", "is not a table of offsets"),
        (gzip.compress(ROWS), "is not a table of offsets"),
        (gzip.compress(HEADER + ROWS + b"x\n"), "is a corrupt table of offsets"),
    ):
        path.write_bytes(data)
        with pytest.raises(
            InputError, match=rf"t: {reason}.*; write it again with cdxmill recompress --offsets"
        ):
            read_table(str(path))
    fail_reads(monkeypatch, "t")
    with pytest.raises(OutageError):
        is_table_of(Location(str(path)), "a.warc.gz", "ä.zst")


def test_a_table_that_is_cut_anywhere_is_an_error_of_its_file(tmp_path: Path) -> None:
    table = write(tmp_path / "new/a.zst.offsets.gz", HEADER + ROWS)
    data = table.read_bytes()
    for size in (11, 15, len(data) // 2, len(data) - 1):
        table.write_bytes(data[:size])
        for read in (first_names, lambda place: read_table(str(place))):
            with pytest.raises(InputError) as caught:
                read(Location(str(table)))
            assert (caught.value.path, "truncated" in caught.value.reason) == (str(table), True)
