"""`cdxmill scan --sample`: a uniform sample over all archives, which is the same in each run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.stages.scan.sampling import parse_sample

PAGES = "status=200 and not mime:css"


@pytest.fixture(scope="module")
def archives(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Archives of several tools, with and without record ids; one of them also recompressed under another name."""
    found = [
        next(samples.rglob(name))
        for name in ("iana.warc.gz", "example.warc.gz", "IAH-*blackbook.arc.gz", "IAH-*blackbook.warc.gz")
    ]
    return list(map(str, found))


def scan(out: Path, *args: object) -> list[dict[str, Any]]:
    status = main(["scan", "-q", "-o", str(out), "--extract", "url,time,offset,sample", *map(str, args)])
    assert status == 0
    return rows(out)


def rows(out: Path) -> list[dict[str, Any]]:
    files = sorted(out.rglob("*.jsonl.gz"))
    return [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_a_sample_is_the_records_with_the_smallest_numbers(archives: list[str], tmp_path: Path) -> None:
    everything = scan(tmp_path / "all", "--where", PAGES, *archives)
    smallest = sorted(row["sample"] for row in everything)
    assert len({row["sample"] for row in everything}) == len(smallest) > 40
    assert abs(sum(smallest) / len(smallest) - 0.5) < 0.15
    chosen = [row for row in everything if row["sample"] <= smallest[14]]
    for processes in (1, 2):
        out = tmp_path / f"{processes}"
        assert scan(out, "--where", PAGES, "--sample", 15, "-p", processes, *archives) == chosen
    assert len({row["offset"] for row in chosen}) > 1
    share = scan(tmp_path / "share", "--where", PAGES, "--sample", "20%", *reversed(archives))
    assert share == [row for row in everything if row["sample"] < 0.2] != []
    more = scan(tmp_path / "more", "--where", PAGES, "--sample", 10_000, *archives)
    assert more == everything
    other = scan(tmp_path / "other", "--where", PAGES, "--sample", 15, "--seed", 7, *archives)
    assert len(other) == 15
    assert {row["url"] for row in other} != {row["url"] for row in chosen}


def test_a_sample_continues_and_is_kept(
    archives: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    before = scan(out, "--sample", 9, *archives)
    lost = max(out.rglob("*.jsonl.gz"), key=lambda path: path.stat().st_size)
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("*.jsonl.gz") if path != lost}
    lost.unlink()
    assert scan(out, "--sample", 9, *archives) == before
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert main(["scan", "-q", "-o", str(out), "--sample", "8", *archives]) == 2
    assert "was made with other options" in capsys.readouterr().err


def test_copies_of_a_record_are_chosen_together(archives: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.warc.gz"
    copy.write_bytes(Path(archives[0]).read_bytes())
    found = scan(tmp_path / "out", "--sample", 5, archives[0], copy)
    assert len(found) == 6
    assert len({row["sample"] for row in found}) == 3
    summary = cdxmill.scan(archives[0], output=tmp_path / "api", sample=5, seed=1)
    assert summary.matches == 5


def test_numbers_do_not_depend_on_the_file(archives: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "renamed.warc.zst"
    assert main(["recompress", "-q", "-o", str(tmp_path), "--to", "zst", archives[0]]) == 0
    next(tmp_path.glob("*.warc.zst")).rename(copy)
    ours = scan(tmp_path / "one", "--sample", 10, archives[0])
    theirs = scan(tmp_path / "two", "--sample", 10, copy)
    assert [row["sample"] for row in ours] == [row["sample"] for row in theirs]


def test_a_function_and_index_lines_choose_before_the_sample(
    archives: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "choosing.py").write_text("def is_short(record):\n    return len(record.url) < 40\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = scan(tmp_path / "short", "--call", "choosing:is_short", "--sample", 12, archives[0])
    assert len(found) == 12
    assert all(len(row["url"] or "") < 40 for row in found)
    lines = tmp_path / "lines.cdxj"
    assert main(["index", "-q", "-o", str(lines), archives[0]]) == 0
    indexed = {json.loads(line.split(b" ", 2)[2])["url"] for line in lines.read_bytes().splitlines()}
    found = scan(tmp_path / "indexed", "--captures", lines, "--sample", 5, archives[0])
    assert len(found) == 5
    assert {row["url"] for row in found} <= indexed


def test_a_damaged_archive_is_reported_once(
    tmp_path: Path, archives: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cut, out = tmp_path / "cut.warc.gz", tmp_path / "out"
    cut.write_bytes(Path(archives[0]).read_bytes()[:-100])
    assert main(["scan", "-q", "-o", str(out), "--sample", "3", str(cut)]) == 1
    assert capsys.readouterr().err.count("truncated") == 1
    assert (out / "failures.tsv").read_text().count("truncated") == 1


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "0%", "101%", "%", "all", "1e3", ""])
def test_a_wrong_sample_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match="expected a number of records, such as 1000, or a share, such as 1%"
    ):
        parse_sample(text)
