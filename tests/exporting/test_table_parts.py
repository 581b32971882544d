"""The parts of a table: its record batches, its files and their names, and what a task says of them."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from cdxmill.commands.exporting import arrow, parquet_files, table_part
from cdxmill.commands.exporting.arrow import COLUMNS, HOST_COLUMNS, ArrowTable
from cdxmill.commands.exporting.parquet_files import PartWriter, count_rows
from cdxmill.commands.exporting.table_part import TableTask, TableWork, write_empty, write_part
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.formats.lines.url_parts import split_host
from cdxmill.options.exports import Exporting
from cdxmill.storage.location import locate

from ..material.cdx_files import write_plain
from ..material.open_files import open_files

NONE = "__HIVE_DEFAULT_PARTITION__"
WHOLE = KeyRange(b"", b"\xff")


def line(host: str, number: int = 0, crawl: str = "", rest: str = "") -> bytes:
    name = f"crawl-data/{crawl}/segments/1/warc/a.warc.gz" if crawl else "a.warc.gz"
    return (
        f'x,{host})/{number:04d} 20200101000000 {{"url": "http://{host}/{number}", "filename": "{name}"{rest}}}'
    ).encode()


def asked(**options: Any) -> Exporting:
    return Exporting("c.cdxj", format="parquet", output="t", **options)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TableWork]:
    """Work on a CDX file of these lines."""
    monkeypatch.chdir(tmp_path)

    def made(lines: Sequence[bytes], query: str | None = None, **options: Any) -> TableWork:
        write_plain(tmp_path / "c.cdxj", lines)
        return TableWork(asked(**options), query, locate(tmp_path / "t"), arrow.libraries())

    return made


@pytest.mark.parametrize("encoded", [False, True])
def test_a_batch_has_the_types_of_the_schema(encoded: bool) -> None:
    table = ArrowTable(encoded)
    host = "dictionary<values=string, indices=int32, ordered=0>" if encoded else "string"
    others = {
        "url_port": "int32",
        "fetch_time": "timestamp[ms, tz=UTC]",
        "fetch_status": "int16",
        "warc_record_offset": "int64",
        "warc_record_length": "int64",
        "cdx_line": "binary",
    }
    kinds = {**dict.fromkeys(COLUMNS, "string"), **dict.fromkeys(HOST_COLUMNS, host), **others}
    rest = ', "status": "404", "offset": "7", "length": "5000000000"'
    lines = [line("a.co.uk:8080", rest=rest), line("b.com"), line("a.co.uk", 1), b"odd"]
    batch = table.batch(lines)
    for schema in (table.schema, batch.schema):
        assert {field.name: str(field.type) for field in schema} == kinds
    assert table.schema.metadata == {b"public_suffix_list": arrow.suffix_list().encode()}
    found = batch.to_pydict()
    assert found["url_host_name"] == ["a.co.uk", "b.com", "a.co.uk", None]
    assert found["url_host_registered_domain"] == ["a.co.uk", "b.com", "a.co.uk", None]
    assert found["url_host_registry_suffix"] == ["co.uk", "com", "co.uk", None]
    assert found["url_host_name_reversed"] == ["uk.co.a", "com.b", "uk.co.a", None]
    assert found["url_host_4th_last_part"] == [None] * 4
    assert (found["url_port"], found["fetch_status"]) == ([8080, None, None, None], [404, None, None, None])
    assert found["warc_record_length"] == [5_000_000_000, None, None, None]
    assert str(found["fetch_time"][0]) == "2020-01-01 00:00:00+00:00"
    assert found["cdx_line"] == [None, None, None, b"odd"]
    assert (table.columns.lines, sum(table.columns.lost.values()) > 0) == (1, True)
    assert table.reader([lines, lines[:1]]).read_all().num_rows == 5
    assert [one.num_rows for one in table.batches([[], lines])] == [0, 4]


def test_a_host_is_split_once_while_it_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for = list[str]()

    def noted(host: str, suffixes: Any) -> Any:
        asked_for.append(host)
        return split_host(host, suffixes)

    monkeypatch.setattr(arrow, "split_host", noted)
    monkeypatch.setattr(arrow, "_MOST_HOSTS", 2)
    hosts = arrow._Hosts()
    names = ["a.com", "b.com", "a.com", "b.com", "c.com", "c.com", "a.com", "c.com", "b.com"]
    assert [hosts.parts_of(name).name for name in names] == names
    assert asked_for == ["a.com", "b.com", "c.com", "a.com", "b.com"]
    assert hosts.parts_of(None) == (None,) * len(HOST_COLUMNS)


@pytest.mark.parametrize("name", ["pyarrow", "publicsuffixlist"])
def test_a_library_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    for needs in (arrow.require, ArrowTable):
        with pytest.raises(UsageError, match=rf"{name} is not installed; .*\[parquet\]"):
            needs()


def test_the_libraries_are_named_with_their_versions() -> None:
    assert arrow.libraries() == [f"pyarrow {pyarrow.__version__}", arrow.suffix_list()]
    assert arrow.suffix_list().startswith("publicsuffixlist ")


def files_in(directory: Path) -> dict[str, int]:
    return {
        str(path.relative_to(directory)): pyarrow.parquet.read_metadata(path).num_rows
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ([], []),
        ([3], [3]),
        ([2, 1], [3]),
        ([2, 2], [2, 2]),
        ([1, 1, 1, 1], [3, 1]),
        ([3, 3], [3, 3]),
        ([2, 2, 1], [2, 3]),
    ],
)
def test_a_file_is_full_before_the_next_one(sizes: list[int], rows: list[int], tmp_path: Path) -> None:
    table = ArrowTable(encoded=True)
    with PartWriter(locate(tmp_path), 7, table, asked(file_lines=3)) as writer:
        for size in sizes:
            writer.write(table.batch([line("a.com", number) for number in range(size)]))
            known = [path for path in writer.written if path.exists()]
            assert known == writer.written[:-1]
    names = [f"part-00007.c{number:03d}.zstd.parquet" for number in range(len(rows))]
    assert files_in(tmp_path) == dict(zip(names, rows, strict=True))
    assert writer.written == [locate(tmp_path) / name for name in names]
    assert [count_rows(file) for file in writer.written] == rows


def test_a_file_says_what_it_has(tmp_path: Path) -> None:
    table = ArrowTable(encoded=True)
    with PartWriter(locate(tmp_path), 0, table, asked()) as writer:
        writer.write(table.batch([line("a.com", number) for number in range(50)]))
    found = pyarrow.parquet.read_metadata(str(writer.written[0]))
    assert found.metadata == {b"public_suffix_list": arrow.suffix_list().encode()}
    columns = {
        found.row_group(0).column(number).path_in_schema: found.row_group(0).column(number)
        for number in range(found.num_columns)
    }
    assert tuple(columns) == COLUMNS
    for name, column in columns.items():
        assert column.compression == "ZSTD"
        assert column.has_dictionary_page == (name not in parquet_files._DISTINCT)
        is_sorted = name in ("url_surtkey", "url", "url_path")
        assert ("DELTA_BYTE_ARRAY" in column.encodings) == is_sorted


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, NONE), ("", ""), (".", "%2E"), ("..", "%2E%2E"), ("...", "..."), ("a.b", "a.b"), ("a/b", "a%2Fb"),
        ("a=b c", "a%3Db c"), ("ä", "%C3%A4"),
    ],
)  # fmt: skip
def test_the_name_of_a_partition(value: str | None, name: str) -> None:
    assert parquet_files._partition(value) == name


def test_each_crawl_and_subset_has_a_directory(tmp_path: Path) -> None:
    table = ArrowTable(encoded=True)
    odd = line("a.com", 9, "A").replace(b"/warc/", b"/robotstxt/")
    lines = [line("a.com"), line("a.com", 1, "A"), line("a.com", 2, "B"), line("a.com", 3, "A"), odd]
    with PartWriter(locate(tmp_path), 1, table, asked(partition=True, file_lines=2)) as writer:
        writer.write(table.batch(lines))
        writer.write(table.batch(lines[1:2]))
    part = "part-00001.c000.zstd.parquet"
    assert files_in(tmp_path) == {
        f"crawl=A/subset=robotstxt/{part}": 1,
        f"crawl=A/subset=warc/{part}": 2,
        "crawl=A/subset=warc/part-00001.c001.zstd.parquet": 1,
        f"crawl=B/subset=warc/{part}": 1,
        f"crawl={NONE}/subset={NONE}/{part}": 1,
    }
    schema = pyarrow.parquet.read_schema(str(writer.written[0]))
    assert schema.names == [name for name in COLUMNS if name not in ("crawl", "subset")]
    urls = pyarrow.parquet.ParquetFile(tmp_path / f"crawl=A/subset=warc/{part}").read()["url"].to_pylist()
    assert urls == ["http://a.com/1", "http://a.com/3"]


@pytest.mark.parametrize("number", [2, 3])
def test_there_are_only_so_many_partitions(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "_MOST_PARTITIONS", 2)
    table = ArrowTable(encoded=True)
    batch = table.batch([line("a.com", one, f"C{one}") for one in range(number)])
    if number == 2:
        with PartWriter(locate(tmp_path), 0, table, asked(partition=True)) as writer:
            writer.write(batch)
            writer.write(batch)
        assert sum(files_in(tmp_path).values()) == 4
    else:
        with (
            pytest.raises(UsageError, match="--partition: more than 2 crawls and subsets; export without it"),
            PartWriter(locate(tmp_path), 0, table, asked(partition=True)) as writer,
        ):
            writer.write(batch)
        assert files_in(tmp_path) == {}


@pytest.mark.parametrize(
    ("partition", "names"),
    [
        (False, ["part-00000.c000.zstd.parquet"]),
        (True, [f"crawl={NONE}/subset={NONE}/part-00000.c000.zstd.parquet"]),
    ],
)
def test_an_empty_table_has_a_file_without_rows(
    partition: bool, names: list[str], work: Callable[..., TableWork], tmp_path: Path
) -> None:
    sizes = write_empty(work([], partition=partition))
    assert files_in(tmp_path / "t") == dict.fromkeys(names, 0)
    assert sizes == {name: (tmp_path / "t" / name).stat().st_size for name in names}
    assert count_rows(locate(tmp_path / "t" / names[0])) == 0


def test_an_error_leaves_no_file_that_is_not_complete(tmp_path: Path) -> None:
    table = ArrowTable(encoded=True)
    batch = table.batch([line("a.com"), line("a.com", 1)])
    with pytest.raises(KeyError), PartWriter(locate(tmp_path), 0, table, asked(file_lines=3)) as writer:
        writer.write(batch)
        writer.write(batch)
        raise KeyError
    assert files_in(tmp_path) == {"part-00000.c000.zstd.parquet": 2}
    assert open_files(tmp_path) == []


def test_the_end_of_a_file_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, ended = pyarrow.parquet.ParquetWriter.close, list[int]()

    def fails(writer: Any) -> None:
        close(writer)
        ended.append(1)
        if len(ended) == 1:
            raise OSError(errno.ENOSPC, "disk full")

    table = ArrowTable(encoded=True)
    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "close", fails)
    with (
        pytest.raises(StoppedError, match=r"zstd\.parquet: cannot be written"),
        PartWriter(locate(tmp_path), 0, table, asked()) as writer,
    ):
        writer.write(table.batch([line("a.com")]))
    assert (files_in(tmp_path), open_files(tmp_path)) == ({}, [])


def test_a_writer_that_fails_at_its_end_does_not_hide_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []

    def fails(writer: object) -> None:
        ended.append(1)
        if len(ended) == 1:  # it is closed once more when it is deleted
            raise OSError("disk full")

    table = ArrowTable(encoded=True)
    with pytest.raises(KeyError), PartWriter(locate(tmp_path), 0, table, asked()) as writer:
        writer.write(table.batch([line("a.com")]))
        monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "close", fails)
        raise KeyError
    assert (ended[:1], files_in(tmp_path), open_files(tmp_path)) == ([1], {}, [])


def test_a_part_says_what_was_written(
    work: Callable[..., TableWork], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = b'x,c.com)/0 20200101000000 {"url": "http://c.com/", "status": "x", "offset": "y"}'
    lines = [*(line("a.com", number) for number in range(5)), line("b.com"), bad]
    counted: list[int] = []
    monkeypatch.setattr(table_part, "count_bytes", counted.append)
    monkeypatch.setattr(table_part, "BATCH", 4)
    part = write_part(work(lines, file_lines=3), TableTask(2, WHOLE))
    names = [f"part-00002.c{number:03d}.zstd.parquet" for number in range(3)]
    assert files_in(tmp_path / "t") == dict(zip(names, (3, 3, 1), strict=True))
    assert part.files == {name: (tmp_path / "t" / name).stat().st_size for name in names}
    assert (part.lines, part.missing_rows) == (7, 1)
    assert part.missing == {"fetch_status": 1, "warc_record_offset": 1}
    assert (part.failures, part.has_skipped) == ([], False)
    assert counted == [sum(map(len, lines[at : at + 3])) for at in (0, 3, 6)]


def test_the_lines_of_a_batch_are_limited(
    work: Callable[..., TableWork], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line("a.com", number) for number in range(5)]
    for name, value, groups in (("BATCH", 2, [2, 2, 1]), ("BATCH_BYTES", 3 * len(lines[0]), [3, 2])):
        with monkeypatch.context() as patch:
            patch.setattr(table_part, name, value)
            (file,) = write_part(work(lines), TableTask(0, WHOLE)).files
        found = pyarrow.parquet.read_metadata(tmp_path / "t" / file)
        assert [found.row_group(number).num_rows for number in range(found.num_row_groups)] == groups


def test_a_part_has_the_lines_of_its_keys_that_are_asked_for(
    work: Callable[..., TableWork], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its failures are printed where all parts come together."""
    lines = [*(line("a.com", number) for number in range(5)), b"x,a.com)/9 2020 {[}"]
    whole = work(lines, filter="url:a.com/")
    part = write_part(whole, TableTask(0, KeyRange(b"x,a.com)/0002", b"x,a.com)/0004")))
    assert (part.lines, part.has_skipped) == (2, False)
    part = write_part(whole, TableTask(1, KeyRange(b"x,a.com)/0004", b"\xff")))
    assert (part.lines, part.has_skipped, len(part.failures)) == (1, True, 1)
    part = write_part(whole, TableTask(2, KeyRange(b"y", b"\xff")))
    assert (part.files, part.lines) == ({}, 0)
    assert capsys.readouterr().err == ""


def test_rows_that_are_missing_stop_the_export(
    work: Callable[..., TableWork], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = work([line("a.com")])
    for wrong in (-1, 1):
        monkeypatch.setattr(table_part, "count_rows", lambda file, wrong=wrong: count_rows(file) + wrong)
        with pytest.raises(StoppedError, match=f"t: {1 + wrong} rows were written of 1 lines; report it"):
            write_part(known, TableTask(0, WHOLE))


def test_other_libraries_stop_a_part(work: Callable[..., TableWork], tmp_path: Path) -> None:
    known = work([line("a.com")])._replace(libraries=["pyarrow 1.0", "x 2"])
    with pytest.raises(
        StoppedError, match=r"a node has pyarrow .*, the driver pyarrow 1.0, x 2: install the same"
    ):
        write_part(known, TableTask(0, WHOLE))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (pyarrow.ArrowInvalid("two\n  lines"), r"cannot write Parquet \(two lines\)"),
        (pyarrow.ArrowMemoryError("malloc"), r"cannot write Parquet \(malloc\)"),
        (MemoryError(), r"cannot write Parquet \(not enough memory\)"),
    ],
)
def test_what_arrow_raises_stops_the_export(
    error: Exception, reason: str, work: Callable[..., TableWork], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Iterator[Any]:
        raise error

    monkeypatch.setattr(ArrowTable, "batches", fails)
    with pytest.raises(StoppedError, match=reason):
        write_part(work([line("a.com")]), TableTask(0, WHOLE))
    monkeypatch.setattr(PartWriter, "write_none", fails)
    with pytest.raises(StoppedError, match=reason):
        write_empty(work([]))
