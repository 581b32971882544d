"""`cdxmill export --to csv` and `--to cdxj`."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from .conftest import build, export, text_of


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
