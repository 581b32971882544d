"""`cdxmill export --to csv` and `--to cdxj`."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.cluster.reader import ClusterReader
from cdxmill.commands.exporting import text
from cdxmill.errors import UsageError
from cdxmill.messages import Step

from ..material.clusters import write_raw_cluster
from .conftest import LINES, build, export, text_of


def test_all_lines_as_cdxj(
    cluster: Path, lines: list[bytes], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert export("c", "--to", "cdxj", "-o", "all.cdxj") == 0
    assert Path("all.cdxj").read_bytes() == text_of(lines)
    assert export("c", "--to", "cdxj", "-o", "all.cdxj.gz") == 0
    assert gzip.decompress(Path("all.cdxj.gz").read_bytes()) == text_of(lines)
    capfdbinary.readouterr()
    assert export("c", "--to", "cdxj", "-o", "-") == 0
    assert capfdbinary.readouterr().out == text_of(lines)


def test_the_lines_of_a_query(cluster: Path, lines: list[bytes]) -> None:
    key = lines[50].split(b")")[0]
    host = ".".join(reversed(key.decode().split(",")))
    assert export("c", f"{host}/*", "--to", "cdxj", "-o", "host.cdxj") == 0
    found = [line for line in lines if line.startswith(key + b")")]
    assert Path("host.cdxj").read_bytes() == text_of(found)
    assert export("c", "--to", "cdxj", "-o", "old.cdxj", "--until", "20240520") == 0
    old = [line for line in lines if line.split(b" ")[1] < b"20240521"]
    assert Path("old.cdxj").read_bytes() == text_of(old)
    assert export("c", "--to", "cdxj", "-o", "new.cdxj", "--from", "20240521") == 0
    assert Path("new.cdxj").read_bytes() == text_of([line for line in lines if line not in old])
    assert export("c", "--to", "cdxj", "-o", "some.cdxj", "--filter", "status:404") == 0
    assert Path("some.cdxj").read_bytes() == text_of([line for line in lines if b'"status": "404"' in line])


@pytest.mark.parametrize("name", ["t.cdxj", "t.csv", "t.cdxj.gz"])
def test_a_file_that_is_written_meanwhile_is_not_replaced_unasked(cluster: Path, name: str) -> None:
    output = Path(name)

    def write_it(_: Step) -> None:
        output.write_bytes(b"mine")

    wanted = "csv" if name == "t.csv" else "cdxj"
    with pytest.raises(UsageError, match=f"{name}: already exists"):
        cdxmill.export("c", format=wanted, output=name, progress=write_it)
    assert output.read_bytes() == b"mine"
    cdxmill.export("c", format=wanted, output=name, replace=True)
    assert output.read_bytes() != b"mine"
    assert not list(Path().glob(".t.*"))


def test_cells_that_could_be_formulas_are_made_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cell = '{"url": "http://a.com/", "mime": "%s", "status": "-"}'
    wrong = ["=1+1", "+1", "@SUM(A1)", "-2", "plain, \\u00e9"]
    build(
        tmp_path / "c", [f"com,a)/{i} 20200101000000 {cell % text}".encode() for i, text in enumerate(wrong)]
    )
    assert export("c", "--to", "csv", "-o", "t.csv", "--fl", "url,mime,status,length") == 0
    rows = list(csv.reader(Path("t.csv").read_text("utf-8-sig").splitlines()))
    assert rows[0] == ["url", "mime", "status", "length"]
    assert [row[1] for row in rows[1:]] == ["'=1+1", "'+1", "'@SUM(A1)", "'-2", "plain, é"]
    assert {(row[0], row[2], row[3]) for row in rows[1:]} == {("http://a.com/", "-", "")}


def test_a_line_that_cannot_be_parsed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_bytes(b"com,a)/ 20200101000000 {[}\n")
    assert export("a.cdxj", "--to", "csv", "-o", "t.csv") == 1
    assert b"com,a)/ 20200101000000 {[}" in Path("t.csv").read_bytes()
    assert export("a.cdxj", "--to", "cdxj", "-o", "t.cdxj") == 0
    assert Path("t.cdxj").read_bytes() == Path("a.cdxj").read_bytes()


@pytest.mark.parametrize(
    ("form", "command"),
    [
        ("{[}", ("export", "--to", "csv", "-o", "out")),
        ("http://a.com/", ("export", "--to", "cdxj", "-o", "out")),
        ("{[}", ("export", "--to", "wacz", "-o", "out.wacz")),
        ("{[}", ("copy", "-o", "out")),
        ("{[}", ("copy", "--dry-run")),
    ],
)
def test_of_many_lines_that_cannot_be_parsed_ten_are_printed(
    form: str,
    command: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_text("".join(f"com,a)/{number} 20200101000000 {form}\n" for number in range(10, 40)))
    assert main([command[0], "a.cdxj", *command[1:]]) == 1
    reported = [line for line in capsys.readouterr().err.splitlines() if line.startswith("a.cdxj: ")]
    assert len(reported) == 11
    assert "20 more failures of this kind: " in reported[-1]


def test_a_line_that_cannot_be_cdxj_is_written_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        "com,a)/ 20200101000000 http://a.com/ text/html 200 A - - 5 6 a.warc.gz",
        "com,b)/ 2020 http://b.com/",
    ]
    Path("a.cdx").write_text(" CDX N b a m s k r M S V g\n" + "".join(f"{line}\n" for line in lines))
    assert export("a.cdx", "--to", "cdxj", "-o", "t.cdxj") == 1
    assert capsys.readouterr().err.count("the line is written as it is") == 1
    first, second = Path("t.cdxj").read_text().splitlines()
    assert first.startswith('com,a)/ 20200101000000 {"url": "http://a.com/"')
    assert second == lines[1]


def test_more_captures_than_excel_shows_are_noted(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rows, said in (
        (LINES + 1, ""),
        (LINES, f"note: Excel shows the first {LINES - 1} of {LINES} captures\n"),
    ):
        monkeypatch.setattr(text, "EXCEL_ROWS", rows)
        assert export("c", "--to", "csv", "-o", "t.csv", "--replace") == 0
        assert capsys.readouterr().err == said


def test_the_lines_of_several_sources_are_exported_in_order(cluster: Path, lines: list[bytes]) -> None:
    Path("a.cdxj").write_bytes(text_of(lines[::2]))
    Path("b.cdxj").write_bytes(text_of(lines[1::2]))
    for form in ("cdxj", "csv", "parquet"):
        assert export("a.cdxj,b.cdxj", "--to", form, "-o", f"t.{form}") == 0
    assert Path("t.cdxj").read_bytes() == text_of(lines)


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("--to", "csv", "-o", "there"), 2),
        (("--to", "csv", "-o", "there", "--replace"), 0),
        (("--to", "csv", "-o", "c", "--replace"), 2),
        (("--to", "csv", "-o", "/dev/full"), 3),
        (("--to", "csv", "-o", "t", "--fl", "nothing"), 2),
        (("--to", "cdxj", "-o", "t", "--fl", "url"), 2),
        (("--to", "csv", "-o", "t", "--partition"), 2),
        (("--to", "table", "-o", "t"), 2),
    ],
)
def test_outputs_and_options_that_are_refused(args: tuple[str, ...], status: int, cluster: Path) -> None:
    Path("there").write_text("precious")
    assert export("c", *args) == status
    assert not Path("t").exists()
    assert (Path("there").read_text() == "precious") == (args[2:] != ("-o", "there", "--replace"))


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("", ""), ("=", "="), ("-", "-"), ("|", "|"), ("==", "'=="), ("=1", "'=1"), ("+1", "'+1"), ("-1", "'-1"), ("@a", "'@a"),
        ("\ta", "'\ta"), ("\ra", "'\ra"), ("\na", "'\na"), ("|a", "'|a"), (" =1", " =1"), ("a=1", "a=1"), (-12, "'-12"), (None, "None"),
    ],
)  # fmt: skip
def test_a_cell_of_two_characters_may_be_a_formula(value: object, cell: str) -> None:
    assert text.safe_cell(value) == cell


@pytest.mark.parametrize(
    ("pieces", "members"),
    [
        ([], [b""]),
        ([b""], [b""]),
        ([b"abc"], [b"abc"]),
        ([b"abcd"], [b"abcd"]),
        ([b"abc", b"d", b""], [b"abcd"]),
        ([b"abc", b"de", b"f"], [b"abcde", b"f"]),
        ([b"abcdefghij", b"k", b"lmn", b"o"], [b"abcdefghij", b"klmn", b"o"]),
    ],
)
def test_a_member_has_what_was_written_when_it_is_large_enough(
    pieces: list[bytes], members: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_HELD", 4)
    file = io.BytesIO()
    packed = text._Packed(file)
    for piece in pieces:
        packed.write(piece)
    assert bool(file.getvalue()) == (len(b"".join(pieces)) >= 4)
    packed.flush()
    found, data = list[bytes](), file.getvalue()
    while data:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found.append(inflater.decompress(data))
        data = inflater.unused_data
    assert found == members


@pytest.mark.parametrize(("form", "noted"), [("csv", True), ("cdxj", False)])
def test_only_a_csv_file_is_for_excel(
    form: str,
    noted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_bytes(b'com,a)/ 20200101000000 {"url": "http://a.com/"}\n')
    monkeypatch.setattr(text, "EXCEL_ROWS", 1)
    assert export("a.cdxj", "--to", form, "-o", "t") == 0
    assert capsys.readouterr().err == "note: Excel shows the first 0 of 1 captures\n" * noted


@pytest.mark.parametrize("form", ["csv", "cdxj"])
def test_a_text_with_fewer_lines_than_the_cluster_has_is_not_written(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_raw_cluster(tmp_path / "c", [b'com,a)/ 20200101000000 {"url": "http://a.com/"}'])
    monkeypatch.setattr(ClusterReader, "total_lines", lambda reader: 2)
    assert export("c", "--to", form, "-o", "t") == 1
    assert "c: has 1 line, but its cluster.json has 2" in capsys.readouterr().err
    assert not Path("t").exists()
    assert export("c", "a.com", "--to", form, "-o", "t") == 0
