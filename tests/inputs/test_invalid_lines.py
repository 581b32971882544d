"""A CDX input with a line that is no CDX line adds no lines, is reported, and costs no other file anything."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..material.cdx_files import as_text, many_lines, sort_unique, write_gzip
from ..material.clusters import check_cluster

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

CDX11 = b"com,a)/ 2020 http://a.com/ text/html 200 AAAA - - 17 5 a.warc.gz"
LINES = many_lines(2000, seed=2)
TEXT = as_text(LINES)


def with_line(line: bytes) -> bytes:
    """1200 lines, then `line`, then the others."""
    return as_text([*LINES[:1200], line, *LINES[1200:]])


ARCHIVE = "it is an archive, not an index; index it first with cdxmill index"
BAD: dict[str, tuple[bytes, str]] = {
    "0 bytes": (b"", "the file is empty; "),
    "NULs": (bytes(5 << 20), "line 1 has NUL bytes; "),
    "a zeroed sector": (TEXT[:51_200] + bytes(512) + TEXT[51_712:], "has NUL bytes; "),
    "truncated": (TEXT[:-20], "line 2000 is truncated, the file ends in it: "),
    "HTML": (b"<!DOCTYPE html>\n<html lang=en>\n", "line 1 is not a CDX or CDXJ line: b'<!DOCTYPE html>'; "),
    "a WARC": (b"WARC/1.0\r\nWARC-Type: warcinfo\r\n", "line 1 is not a CDX or CDXJ line: "),
    "CDX in CDXJ": (with_line(CDX11), "line 1201 is CDX with 11 fields, but the lines before are CDXJ: "),
    "no timestamp": (with_line(b'com,a)/ {"url": "x"}'), "line 1201 is not a CDXJ line: "),
    "no key": (with_line(b' 2020 {"url": "x"}'), "line 1201 is not a CDXJ line: "),
    "NUL in a line": (with_line(b'com,a)/ 2020 {"url": "\0"}'), "line 1201 has NUL bytes; "),
    "a long line": (with_line(b"com,a)/ 2020 {%b}" % (b" " * (16 << 20))), "line 1201 is longer than 16 MiB; "),
}  # fmt: skip


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", BAD)
def test_the_first_invalid_line_is_reported_and_the_file_adds_nothing(
    name: str, pack: Callable[[bytes], bytes], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    data, reason = BAD[name]
    good = write_gzip(tmp_path / "good.cdxj.gz", many_lines(500))
    bad = tmp_path / "bad.cdxj.gz"
    bad.write_bytes(pack(data) if data else data)
    done = run_cdxmill("zipnum", "-q", "-o", tmp_path / "C", "-s", "2", bad, good)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, line.startswith(f"{bad}: "), reason in line) == (1, True, True), line
    hint = ARCHIVE if name == "a WARC" else "rebuild this index"
    assert line.endswith(f"; none of its lines are in the cluster: {hint}")
    check_cluster(tmp_path / "C", sort_unique([good]))
    done = run_cdxmill("sample", "-q", "-o", tmp_path / "s.txt", "-s", "2", bad, good)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, line.startswith(f"{bad}: "), reason in line) == (1, True, True), line
    assert (tmp_path / "s.txt").read_bytes() == (tmp_path / "C/splits.txt").read_bytes()


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_large_sorted_file_with_an_invalid_line_is_no_run(
    processes: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    """Such a file would be used without being spilled."""
    lines = [b'com,a)/%07d 2020 {"url": "%096x"}' % (number, number**20) for number in range(180_000)]
    lines[140_000] = b"com,a)/0140000 2020 no JSON"
    bad = write_gzip(tmp_path / "bad.cdxj.gz", lines, 40)
    assert bad.stat().st_size > 8 << 20
    good = write_gzip(tmp_path / "good.cdxj.gz", many_lines(500))
    done = run_cdxmill("zipnum", "-q", "-o", tmp_path / "C", "-s", "2", "-p", processes, bad, good)
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"{bad}: line 140001 is CDX with 4 fields, but the lines before are CDXJ: ")
    assert done.returncode == 1
    check_cluster(tmp_path / "C", sort_unique([good]))


@pytest.mark.parametrize("name", ["example.warc", "example.warc.gz", "example.arc", "example.arc.gz"])
@pytest.mark.parametrize(
    "command", [("lookup", "example.com"), ("report",), ("zipnum", "-o", "C", "-s", "2")]
)
def test_an_archive_is_no_index(
    name: str, command: tuple[str, ...], pywb_warcs: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    archive = pywb_warcs / name
    done = run_cdxmill(command[0], archive, *command[1:], cwd=tmp_path)
    assert done.returncode == 1
    first = done.stderr.decode().splitlines()[0]
    assert "line 1 is not a CDX or CDXJ line: " in first
    assert first.endswith(ARCHIVE)
