"""The writers of a scan's rows, and the columns that a directory records."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from cdxmill.commands.scanning import rows, table
from cdxmill.commands.scanning.rows import check_format, packer, row_writer
from cdxmill.errors import AbsentError, InputError, StoppedError, UsageError
from cdxmill.stages.scan.columns import Columns, Type
from cdxmill.stages.scan.fields import CallError
from cdxmill.storage.location import Location, locate
from cdxmill.storage.walk import Listing

COLUMNS: Columns = {
    "text": Type.TEXT,
    "int": Type.INT,
    "double": Type.DOUBLE,
    "bool": Type.BOOL,
    "list": Type.LIST,
    "json": Type.JSON,
}


def members(data: bytes) -> list[bytes]:
    """The contents of the gzip members or zstd frames."""
    found = list[bytes]()
    while data:
        is_gzip = data[:2] == b"\x1f\x8b"
        inflater: Any = zlib.decompressobj(zlib.MAX_WBITS | 16)
        inflater = inflater if is_gzip else zstandard.ZstdDecompressor().decompressobj()
        found.append(inflater.decompress(data))
        data = inflater.unused_data
    return found


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ([], [b""]),
        ([1], [b"1"]),
        ([1, 2], [b"1\n2"]),
        ([1, 22], [b"1\n22"]),
        ([1, 2, 3], [b"1\n2\n3", b""]),
        ([1, 2, 3, 4], [b"1\n2\n3", b"4"]),
        ([123456, 7, 8, 9], [b"123456", b"7\n8\n9", b""]),
    ],
)
@pytest.mark.parametrize("to", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_lines_are_packed_when_there_are_enough(
    values: list[int], parts: list[bytes], to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six bytes here. An output without rows has one empty member."""
    monkeypatch.setattr(rows, "_HELD", 6)
    monkeypatch.setattr(rows, "json_line", lambda row: b"%d\n" % row)
    file = io.BytesIO()
    writer, packed = row_writer(to, file, {}), list[int]()
    for value in values:
        writer.write(value)  # type: ignore[arg-type]
        packed.append(len(file.getvalue()))
    writer.close()
    texts = [part + b"\n" for part in parts if part] or [b""]
    data = file.getvalue()
    if to == "jsonl":
        assert data == b"".join(texts)
    else:
        assert members(data) == texts
    assert (packed[-1:] == [len(data)]) == (bool(values) and not parts[-1])
    assert len({size for size in packed if size}) == len(parts) - 1
    assert not file.closed


def test_the_packer_of_an_ending() -> None:
    assert packer("gz").library.startswith("libdeflate")
    assert packer("zst").library.startswith("zstd")
    assert gzip.decompress(packer("gz").pack(b"x")) == b"x"
    assert zstandard.decompress(packer("zst").pack(b"x")) == b"x"


def test_a_row_that_is_no_json_is_an_error_in_every_format() -> None:
    for to in ("jsonl", "jsonl.gz", "parquet"):
        file = io.BytesIO()
        writer = row_writer(to, file, {"json": Type.JSON})
        with pytest.raises(CallError, match="the row cannot be written as JSON"):
            writer.write({"json": object()})
        writer.write({"json": 1})
        writer.close()
        if to == "parquet":
            file.seek(0)
            assert pyarrow.parquet.read_table(file)["json"].to_pylist() == ["1"]


def test_the_types_of_a_table() -> None:
    file = io.BytesIO()
    writer = row_writer("parquet", file, COLUMNS)
    writer.write(
        {
            "text": "ä",
            "int": 1 << 40,
            "double": 0.5,
            "bool": True,
            "list": ["a", "b"],
            "json": {"b": [1, "ä"]},
        }
    )
    writer.write({"text": None, "json": "x"})
    writer.write(dict.fromkeys(COLUMNS))
    writer.close()
    assert not file.closed
    file.seek(0)
    found = pyarrow.parquet.read_table(file)
    assert {field.name: str(field.type) for field in found.schema} == {
        "text": "string",
        "int": "int64",
        "double": "double",
        "bool": "bool",
        "list": "list<element: string>",
        "json": "string",
    }
    assert found.to_pylist() == [
        {
            "text": "ä",
            "int": 1 << 40,
            "double": 0.5,
            "bool": True,
            "list": ["a", "b"],
            "json": '{"b":[1,"ä"]}',
        },
        {**dict.fromkeys(COLUMNS), "json": '"x"'},
        dict.fromkeys(COLUMNS),
    ]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        (Type.TEXT, "a", "a"),
        (Type.TEXT, None, None),
        (Type.LIST, ["a"], ["a"]),
        (Type.JSON, None, None),
        (Type.JSON, "a", '"a"'),
        (Type.JSON, [], "[]"),
        (Type.JSON, {"": 1}, '{"":1}'),
    ],
)
def test_a_cell(kind: Type, value: Any, cell: Any) -> None:
    assert rows._cell(kind, value) == cell


@pytest.mark.parametrize(
    ("number", "batch", "size", "groups"),
    [
        (0, 3, 99, []),
        (2, 3, 99, [2]),
        (3, 3, 99, [3]),
        (7, 3, 99, [3, 3, 1]),
        (5, 99, 20, [2, 2, 1]),
        (6, 99, 21, [3, 3]),
    ],
)
def test_rows_are_added_when_there_are_enough(
    number: int, batch: int, size: int, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is ten bytes of JSON here."""
    monkeypatch.setattr(rows, "_BATCH", batch)
    monkeypatch.setattr(rows, "_BATCH_SIZE", size)
    file = io.BytesIO()
    writer = row_writer("parquet", file, {"int": Type.INT})
    for value in range(number):
        writer.write({"int": value})
    writer.close()
    file.seek(0)
    found = pyarrow.parquet.ParquetFile(file)
    sizes = [found.metadata.row_group(one).num_rows for one in range(found.num_row_groups)]
    assert sizes == groups
    assert found.read()["int"].to_pylist() == list(range(number))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (pyarrow.ArrowInvalid("two\n  lines"), "two lines"),
        (MemoryError(), "not enough memory"),
        (pyarrow.ArrowMemoryError("malloc"), "malloc"),
    ],
)
@pytest.mark.parametrize("call", ["write_table", "close"])
def test_a_table_without_some_rows_is_not_written(
    call: str, error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []

    def fails(*_: object) -> None:
        if not failed:  # it is closed once more when it is deleted
            failed.append(1)
            raise error

    writer = row_writer("parquet", io.BytesIO(), {"int": Type.INT})
    writer.write({"int": 1})
    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, call, fails)
    with pytest.raises(StoppedError) as found:
        writer.close()
    assert str(found.value) == f"cannot write Parquet ({reason}); use fewer processes, or --to jsonl.gz"
    assert failed


@pytest.mark.parametrize("to", ["parquet", "jsonl.gz", "warc.gz"])
def test_only_a_table_needs_a_library(to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(rows, "import_module", missing)
    if to == "parquet":
        with pytest.raises(UsageError, match=r"pyarrow is not installed; .*\[parquet\]"):
            check_format(to)
    else:
        check_format(to)


A: Columns = {"a": Type.TEXT, "b": Type.INT}
B: Columns = {"a": Type.TEXT}
TEXT = b"a\ttext\nb\tint\n"


def place_with(directory: Path, columns: Columns, *files: str) -> Location:
    place = locate(directory)
    table.record_columns(place, columns, [])
    for name in files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)
    return place


def test_columns_are_recorded(tmp_path: Path) -> None:
    place = place_with(tmp_path, A)
    assert (tmp_path / "_cdxmill/columns.tsv").read_bytes() == TEXT
    (tmp_path / "x.parquet").touch()
    table.record_columns(place, A, [])
    assert (tmp_path / "x.parquet").exists()


def test_files_with_other_columns_are_deleted_before_they_are_written(tmp_path: Path) -> None:
    place = place_with(tmp_path, A, "x.parquet", "d/y.parquet", "z.jsonl", "x.parquet.tsv")
    (tmp_path / "l.parquet").symlink_to("z.jsonl")
    written = [place / name for name in ("x.parquet", "d/y.parquet", "l.parquet", "new.parquet")]
    table.record_columns(place, B, written)
    assert (tmp_path / "_cdxmill/columns.tsv").read_bytes() == b"a\ttext\n"
    kept = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert kept == ["_cdxmill/columns.tsv", "x.parquet.tsv", "z.jsonl"]
    assert not (tmp_path / "l.parquet").is_symlink()


@pytest.mark.parametrize(("others", "said"), [(["y"], "1 such file"), (["y", "z"], "2 such files")])
def test_a_file_with_other_columns_that_would_remain_is_refused(
    others: list[str], said: str, tmp_path: Path
) -> None:
    place = place_with(tmp_path, A, "x.parquet", *(f"{name}.parquet" for name in others))
    with pytest.raises(UsageError) as found:
        table.record_columns(place, B, [place / "x.parquet"])
    message = str(found.value)
    assert message.startswith(f"{tmp_path}/y.parquet: has other columns ({said}; see {tmp_path}/_cdxmill")
    assert (tmp_path / "x.parquet").exists()
    assert (tmp_path / "_cdxmill/columns.tsv").read_bytes() == TEXT


def test_the_record_is_written_after_old_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_with(tmp_path, A, "x.parquet")

    def fails(_: Location) -> None:
        raise StoppedError("it cannot be deleted")

    monkeypatch.setattr(Location, "remove", fails)
    with pytest.raises(StoppedError, match="it cannot be deleted"):
        table.record_columns(place, B, [place / "x.parquet"])
    assert (tmp_path / "_cdxmill/columns.tsv").read_bytes() == TEXT


def test_columns_at_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    place = locate("s3://b/t")

    def absent(one: Location) -> bytes:
        raise AbsentError(one.text, "is not there")

    def known(one: Location) -> bytes:
        assert one == place / "_cdxmill/columns.tsv"
        return TEXT

    monkeypatch.setattr(Location, "read_bytes", absent)
    assert table._recorded(place) == b""
    monkeypatch.setattr(Location, "read_bytes", known)
    assert table._recorded(place) == TEXT
    table.record_columns(place, A, [])


@pytest.mark.parametrize(
    ("found", "parts"),
    [
        (Listing(["t/a.parquet", "t/a.tsv"], ["t/l.parquet", "t/l"]), ["t/a.parquet", "t/l.parquet"]),
        (AbsentError("t", "is not there"), []),
        (InputError("t", "cannot be listed"), None),
    ],
)
def test_the_files_of_a_table(found: Any, parts: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def below(path: str) -> Listing:
        assert path == "t"
        if isinstance(found, Exception):
            raise found
        return Listing(found.files, found.links)

    monkeypatch.setattr(table, "files_below", below)
    if parts is None:
        with pytest.raises(StoppedError, match="t: cannot be listed"):
            table._parts(locate("t"))
    else:
        assert table._parts(locate("t")) == parts
