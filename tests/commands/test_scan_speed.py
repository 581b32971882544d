"""Records that `scan` refuses without reading them: the same rows as if each was read."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from cdxmill.cli.main import main

PAGES = 2000
"""More than the first records, which are all measured."""


def _page(number: int) -> bytes:
    """A page. Some are encoded, some are gzip files themselves."""
    rng = Random(number)
    text = rng.randbytes(2200).hex().encode() + (b"Zebra" if number % 7 == 0 else b"")
    if number % 5 == 0:
        return b"Content-encoding: gzip\r\n\r\n" + gzip.compress(text, mtime=0)
    if number % 11 == 0:  # another archive: its members begin as those around it
        return b"\r\n" + gzip.compress(b"WARC/1.0\r\n\r\n" + text, mtime=0) * 2
    return b"\r\n" + text


def _member(number: int) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + _page(number)
    header = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h{number % 3}.example.com/{number}\r\n"
        f"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    level = 0 if number % 11 == 0 else 6
    return gzip.compress(header.encode() + block + b"\r\n\r\n", level, mtime=0)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "a.warc.gz"
    path.write_bytes(b"".join(map(_member, range(PAGES))))
    return path


def rows(path: Path, out: Path, *where: str) -> tuple[list[tuple[str, int, int]], int]:
    given = [word for one in where for word in ("--where", one)]
    status = main(["scan", "-q", "-p", "1", "--to", "jsonl", "-o", str(out), *given, str(path)])
    lines = (out / f"{path.name.removesuffix('.gz')}.jsonl").read_bytes().splitlines()
    return [(row["url"], row["offset"], row["length"]) for row in map(json.loads, lines)], status


@pytest.mark.parametrize(
    ("quick", "slow"),
    [
        (["url:/7"], ["url~/7"]),
        (["host=h1.example.com", "url!:3"], ["url~//h1[.]", "url!~3"]),
        (["type=revisit"], ["warc.type=revisit"]),
        (["type=response"], ["warc.type=response"]),
        (["body@zebra", "url!:9"], ["body:Zebra", "url!~9"]),
    ],
)
def test_rows_are_those_of_conditions_that_read_each_record(
    quick: list[str], slow: list[str], archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zebra").write_text("Zebra\nnowhere\n")
    found = rows(archive, tmp_path / "quick", *quick)
    assert found == rows(archive, tmp_path / "slow", *slow)
    assert found[1] == 0


@pytest.mark.parametrize("where", ["url:/190", "url:/40"])
@pytest.mark.parametrize("from_end", [1000, 100])
def test_damage_is_reported_whether_the_record_matches_or_not(
    where: str, from_end: int, archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data, member = archive.read_bytes(), _member(1901)
    start = data.index(member)
    hit = start + len(member) - from_end
    (tmp_path / "cut.warc.gz").write_bytes(data[:hit] + data[hit + 100 :])
    found, status = rows(tmp_path / "cut.warc.gz", tmp_path / "out", where)
    assert status == 1
    assert f"cut.warc.gz@{start}: " in capfd.readouterr().err
    wanted = [number for number in range(PAGES) if f"/{number}".startswith(where[4:]) and number != 1901]
    assert [int(url.rpartition("/")[2]) for url, *_ in found] == wanted


STARTED = """
import sys
from cdxmill.cli.main import main
status = main(["scan", "-q", "-p", "1", "--to", "jsonl", "-o", *sys.argv[1:]])
slow = "multiprocessing", "zstandard", "socket", "cdxmill.stages.pages.parse_page", "cdxmill.stages.records.write_record"
print(status, *(name for name in slow if name in sys.modules))
"""


@pytest.mark.parametrize(("where", "loaded"), [("url:/7", "0\n"), ("url~/7", "0 multiprocessing socket\n")])
def test_a_scan_that_needs_no_bodies_starts_no_process_and_imports_little(
    archive: Path, tmp_path: Path, where: str, loaded: str
) -> None:
    command = [sys.executable, "-c", STARTED, str(tmp_path / "out"), "--where", where, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == loaded, "a regular expression may take hours, so it is watched"
