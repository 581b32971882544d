"""`cdxmill scan --to parquet`: each column has its type before the first row, and the outputs are one table."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from cdxmill.cli.main import main
from cdxmill.stages.scan.fields import NAMES
from tests.commands.test_scan import archive

EVERY = ",".join(["sample", *(name for name in NAMES if not name.endswith(".NAME"))])
STEPS = """
from typing import TypedDict


class Words(TypedDict):
    words: int
    ratio: float | None


def half(record): return 1.5 if record.url.endswith("/1200") else 1
def odd(record) -> float: return [float("nan"), float("inf"), -float("inf"), 2.5][int(record.url[-1])]
def halves(record) -> float: return half(record)
def large(record) -> int: return 2**70 if record.url.endswith("/1") else 7
def anything(record): return {"a": half(record), "b": [record.url]}
def words(page) -> Words: return {"words": len(page.text.split()), "ratio": 1}
def wrong(page) -> Words: return {"words": "1"} if page.url.endswith("/1") else {"words": 1}
def more(page) -> Words: return {"other": 1}
def skips(record) -> bool: return False
"""


def scan(*args: str | Path, to: str = "parquet") -> int:
    return main(["scan", "-q", "--to", to, *map(str, args)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a module of the user."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_steps.py").write_text(STEPS)
    monkeypatch.delitem(sys.modules, "own_steps", raising=False)
    return tmp_path


def rows(path: Path) -> list[dict[str, Any]]:
    return list(pyarrow.parquet.read_table(path).to_pylist())


def query(sql: str) -> list[list[Any]]:
    """The rows that DuckDB finds, in a process of its own: it reports leaks at its end."""
    code = (
        "import duckdb, json, sys; duckdb.execute('SET enable_progress_bar = false');"  # after 2 s, on stdout
        "print(json.dumps(duckdb.execute(sys.argv[1]).fetchall()))"
    )
    run = subprocess.run([sys.executable, "-c", code, sql], check=True, stdout=subprocess.PIPE)
    return list(json.loads(run.stdout))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def types(path: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in pyarrow.parquet.read_schema(path)}


def test_the_first_rows_do_not_decide_the_types(here: Path) -> None:
    late = b'<p>the <a href="/x">link</a><script type="application/ld+json">{"a": [1.5]}</script>'
    path = archive(here / "a.warc.gz", [b"x"] * 1100 + [late] * 150, "text/plain")
    path.write_bytes(path.read_bytes() + archive(here / "b.warc.gz", [late] * 9).read_bytes())
    fields = "url,links,link_count,confidence,jsonld,meta"
    assert scan("-o", "out", "--extract", fields, "--call", "n:own_steps.half:double", path) == 0
    found = rows(here / "out/a.warc.parquet")
    assert len(found) == 1259
    assert found[0]["links"] is found[0]["link_count"] is found[0]["jsonld"] is None
    assert (found[-1]["links"], found[-1]["link_count"]) == (["http://example.com/x"], 1)
    assert json.loads(found[-1]["jsonld"]) == [{"a": [1.5]}]
    assert (found[1200]["n"], found[0]["n"]) == (1.5, 1.0)


def test_a_file_without_rows_has_the_columns_of_all_others(here: Path) -> None:
    archive(here / "a.warc.gz", [b"<title>one</title>"])
    archive(here / "b.warc.gz", [b"<title>two</title>"])
    assert scan("-o", "out", "--where", "title=one", "--extract", EVERY, "a.warc.gz", "b.warc.gz") == 0
    assert types(here / "out/a.warc.parquet") == types(here / "out/b.warc.parquet")
    assert query("SELECT filename, title FROM read_parquet('out/*')") == [["a.warc.gz", "one"]]


def test_what_a_function_declares_is_the_type_of_its_column(here: Path) -> None:
    path = archive(here / "a.warc.gz", [b"<p>two words"] * 2)
    calls = ("n:own_steps.half:double", "own_steps:anything", "h:own_steps.halves", "s:own_steps.skips")
    args = [word for call in calls for word in ("--call", call)]
    assert scan("-o", "out", "--extract", "url", *args, "--call-page", "own_steps:words", path) == 0
    assert types(here / "out/a.warc.parquet") == {
        "url": "string", "n": "double", "anything": "string", "h": "double", "s": "bool", "words": "int64", "ratio": "double",
    }  # fmt: skip
    first = rows(here / "out/a.warc.parquet")[0]
    assert json.loads(first.pop("anything")) == {"a": 1, "b": ["http://example.com/0"]}
    assert [*first.values()] == ["http://example.com/0", 1.0, 1.0, False, 2, 1.0]


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    ("call", "reason", "written"),
    [
        (("--call", "n:own_steps.large"), "is no int", 1),
        (("--call", "n:own_steps.half:text"), "1 is no text", 0),
        (("--call-page", "own_steps:wrong"), "'1' is no int", 1),
        (("--call-page", "own_steps:more"), "does not declare the column 'other'", 0),
    ],
)
def test_a_value_that_does_not_fit_is_a_reported_record(
    to: str, call: tuple[str, str], reason: str, written: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(here / "a.warc.gz", [b"<p>one", b"<p>two"])
    assert scan("-o", "out", *call, path, to=to) == 1
    assert reason in capsys.readouterr().err
    found = here / f"out/a.warc.{to}"
    assert (len(rows(found)) if to == "parquet" else found.read_bytes().count(b"\n")) == written


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--call", "n:own_steps.half:decimal"), "'decimal' is no type; expected text, int, double"),
        (("--call", "url:own_steps.half"), "two columns have the name url"),
        (("--call", "n:own_steps:int"), "expected MODULE:FUNCTION, or NAME:MODULE.FUNCTION:TYPE"),
        (("--extract", ","), "a Parquet file has at least one column"),
    ],
)
def test_wrong_columns_are_refused(
    args: tuple[str, str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scan("-o", "out", *args, archive(here / "a.warc.gz", [b"<p>one"])) == 2
    assert message in capsys.readouterr().err
    assert not (here / "out").exists()


def test_records_of_runs_are_not_beside_the_parts_of_the_table(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(here / "a.warc.gz", [b"<p>one"] * 3)
    path.write_bytes(path.read_bytes()[:-9])
    assert scan("-o", "out", path, to="jsonl") == 1
    assert (here / "out/failures.tsv").exists()
    (here / "out/a.warc.jsonl").unlink()
    assert scan("-o", "out", path) == 1
    assert names(here / "out") == ["_cdxmill", "a.warc.parquet"]
    assert (here / "out/_cdxmill/failures.tsv").read_text().count("truncated") == 1
    written = (here / "out/a.warc.parquet").stat().st_mtime_ns
    archive(path, [b"<p>one"] * 3)
    assert scan("-o", "out", path) == 0
    assert (here / "out/a.warc.parquet").stat().st_mtime_ns > written
    assert not (here / "out/_cdxmill/failures.tsv").exists()
    capsys.readouterr()


def test_one_directory_has_one_set_of_columns(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = archive(here / "a.warc.gz", [b"<p>"]), archive(here / "b.warc.gz", [b"<p>"])
    assert scan("-o", "out", "--extract", "url,size", first) == 0
    assert (here / "out/_cdxmill/columns.tsv").read_text() == "url\ttext\nsize\tint\n"
    assert scan("-o", "out", "--extract", "url,time", second) == 2
    assert "a.warc.parquet: has other columns (1 such file; see " in capsys.readouterr().err
    assert not (here / "out/b.warc.parquet").exists()
    assert scan("-o", "out", "--extract", "url,size", second) == 0
    assert scan("-o", "out", "--replace", "--extract", "url,time", first, second) == 0
    assert query("SELECT count(time) FROM read_parquet('out/*')") == [[2]]


@pytest.mark.parametrize("existing", ["--replace", "--update"])
def test_files_with_other_columns_do_not_remain(
    existing: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = archive(here / "a.warc.gz", [b"<p>"]), archive(here / "b.warc.gz", [b"<p>"])
    assert scan("-o", "out", "--extract", "url,size", first, second) == 0
    before = {path.name: path.read_bytes() for path in (here / "out").glob("*.parquet")}
    assert scan("-o", "out", existing, "--extract", "url,time", first) == 2
    assert "scan all archives with --replace" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (here / "out").glob("*.parquet")} == before
    if existing == "--update":
        assert scan("-o", "out", existing, "--extract", "url,time", first, second) == 2
        return
    second.unlink()
    second.symlink_to("nowhere")
    assert scan("-o", "out", existing, "--extract", "url,time", first, second) == 1
    assert names(here / "out") == ["_cdxmill", "a.warc.parquet"]


def test_a_file_of_unknown_columns_is_not_made_a_part(here: Path) -> None:
    (here / "out").mkdir()
    (here / "out/own.parquet").write_bytes(b"of the user")
    assert scan("-o", "out", archive(here / "a.warc.gz", [b"<p>"])) == 2
    assert names(here / "out") == ["_cdxmill", "own.parquet"]


def test_readers_skip_no_output_for_its_name(here: Path) -> None:
    for name in ("in/_a.warc.gz", "in/.b/_c.warc.gz", "in/d_.warc.gz", "in/_e/f.warc.gz"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        archive(here / name, [b"<p>"])
    (here / "in/_e/f.warc").write_bytes(gzip.decompress((here / "in/_e/f.warc.gz").read_bytes()))
    assert scan("-o", "out", "--extract", "filename", "in") == 0
    tables = {str(path.relative_to(here / "out")) for path in (here / "out").rglob("*.parquet")}
    assert {"file_a.warc.parquet", "file.b/file_c.warc.parquet", "d_.warc.parquet"} <= tables
    assert pyarrow.parquet.read_table(here / "out").num_rows == len(tables) == 5


def test_a_double_without_a_value_is_null_in_both_formats(here: Path) -> None:
    path = archive(here / "a.warc.gz", [b"<p>"] * 4)
    for to in ("parquet", "jsonl"):
        assert scan("-o", to, "--call", "n:own_steps.odd", path, to=to) == 0
    lines = (here / "jsonl/a.warc.jsonl").read_bytes().splitlines()
    found = rows(here / "parquet/a.warc.parquet")
    assert found == [json.loads(line) for line in lines]
    assert [row["n"] for row in found] == [None, None, None, 2.5]


def test_a_link_under_the_name_of_the_records_is_not_followed(here: Path) -> None:
    (here / "out").mkdir()
    (here / "other").mkdir()
    (here / "out/_cdxmill").symlink_to(here / "other")
    assert scan("-o", "out", archive(here / "a.warc.gz", [b"<p>"])) == 2
    assert not names(here / "other")


def test_rows_that_cannot_be_written_leave_no_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each failed write: memory that ends, and an error of the library."""
    path = archive(here / "a.warc.gz", [b"<p>"] * 2)
    for error in (pyarrow.ArrowMemoryError("malloc of size 64 failed"), pyarrow.ArrowInvalid("odd")):

        def fails(*args: object, error: Exception = error, **more: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(pyarrow.parquet.ParquetWriter, "write_table", fails)
            assert scan("-o", "out", path) == 3
        assert f"cannot write Parquet ({error}); use fewer processes" in capsys.readouterr().err
        assert names(here / "out") == ["_cdxmill"]


def test_a_full_disk_leaves_no_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = archive(here / "a.warc.gz", [os.urandom(30_000).hex().encode() for _ in range(9)])
    command = 'ulimit -f 100; exec "$@"'  # a file of at most 100 KiB
    run = subprocess.run(
        ["bash", "-c", command, "bash", sys.executable, "-m", "cdxmill", "scan", "-q", "-o", "out", "--to",
         "parquet", "--extract", "html", str(path)], capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 3, run.stderr
    assert "Traceback" not in run.stderr
    assert names(here / "out") == ["_cdxmill"]


def test_every_field_of_real_archives_is_the_same_in_json_lines_and_in_a_table(
    samples: Path, pywb_warcs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All programs read the folder as one table, with its records and without the names of its files. Spark: tests/spark."""
    import pandas  # type: ignore[import-untyped]  # slow to import
    import polars

    named = re.compile(r"arc(\.w[ae]t)?(\.gz)?$")
    below = [path for folder in (pywb_warcs, samples) for path in sorted(folder.rglob("*"))]
    found = [path for path in below if path.is_file() and named.search(path.name)]
    (tmp_path / "in").mkdir()
    for number, path in enumerate(found[:245]):
        (tmp_path / f"in/{number}-{path.name}").symlink_to(path)
    for to in ("parquet", "jsonl"):
        assert scan("-p", "2", "-o", tmp_path / to, "--extract", EVERY, tmp_path / "in", to=to) == 1
    capsys.readouterr()
    folder, tables = tmp_path / "parquet", sorted(tmp_path.glob("parquet/*.parquet"))
    assert len(tables) == len(found[:245]) == 245
    assert len({tuple(types(path).items()) for path in tables}) == 1
    size = sum(map(_same_rows, tables))
    assert size > 4_000
    counted = (
        "SELECT count(*), count(title), sum(link_count), sum(word_count), count(DISTINCT filename) FROM "
    )
    (table,) = query(f"{counted} read_parquet('{folder}/*')")
    assert table[0] == size
    assert query(f"{counted} read_json('{tmp_path}/jsonl/*.jsonl', maximum_object_size=100000000)") == [table]
    columns = ["filename", "url", "link_count"]
    assert len(pandas.read_parquet(folder, columns=columns)) == size
    assert pyarrow.parquet.read_table(folder, columns=columns).num_rows == size
    assert polars.scan_parquet(f"{folder}/*.parquet").select(columns).collect().height == size


def _same_rows(path: Path) -> int:
    """Check the rows of a table, and return how many there are."""
    lines = path.parent.with_name("jsonl") / path.with_suffix(".jsonl").name
    found = rows(path)
    for row in found:
        row.update({name: json.loads(row[name]) for name in ("meta", "jsonld", "tags") if row[name]})
    assert found == [json.loads(line) for line in lines.read_bytes().splitlines()], path
    return len(found)
