"""Ranges of archives on a server that is far: the next one is asked for while the records of the last are checked."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.inputs import joined_ranges

from .range_server import RangeServer

PAGES = 300
APART = 3
"""One page of each `APART` is copied. The pages between are too large to be read along, so a unit has four requests."""


@pytest.fixture
def lines(tmp_path: Path, server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Index lines of pages that are far apart, in two archives on a server that counts as far."""
    monkeypatch.setattr(joined_ranges, "_FAR", -1.0)
    noise = random.Random(5)
    for name in ("a.warc.gz", "b.warc.gz"):
        (tmp_path / name).write_bytes(
            b"".join(
                record(f"http://{name[0]}.com/{page:03d}", noise.randbytes(9000)) for page in range(PAGES)
            )
        )
        server.add(f"/{name}", (tmp_path / name).read_bytes())
    archives = [str(tmp_path / name) for name in ("a.warc.gz", "b.warc.gz")]
    assert main(["index", "-q", "-o", str(tmp_path / "all.cdxj"), *archives]) == 0
    return (tmp_path / "all.cdxj").read_bytes().splitlines(keepends=True)[::APART]


def record(url: str, body: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:{url}>\r\nWARC-Date: 2024-05-17T01:02:03Z\r\n"
        f"WARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6, mtime=0)


def copy(directory: Path, server: RangeServer, lines: list[bytes]) -> tuple[int, list[bytes]]:
    """The exit status of a copy, and the records that it has."""
    (directory / "wanted.cdxj").write_bytes(b"".join(lines))
    out = directory / "out"
    call = ["copy", "-q", "-p", "1", "-o", str(out), "--archives", server.url, str(directory / "wanted.cdxj")]
    status = main(call)
    return status, [line for path in sorted(out.glob("*.cdxj")) for line in path.read_bytes().splitlines()]


def test_each_range_is_asked_for_once(tmp_path: Path, server: RangeServer, lines: list[bytes]) -> None:
    status, copied = copy(tmp_path, server, lines)
    assert status == 0
    assert [line.split(b', "length')[0] for line in copied] == [line.split(b', "length')[0] for line in lines]
    assert len(server.seen) == len(set(server.seen)) == len(lines)
    server.seen.clear()
    found = cdxmill.copy(
        tmp_path / "wanted.cdxj", output=tmp_path / "again", archives=server.url, processes=1
    )
    assert found.requests == len(server.seen) > 0
    assert found.fetched > 0


def test_a_record_that_is_too_large_for_memory_is_fetched_in_pieces(
    tmp_path: Path, server: RangeServer, lines: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # both files begin with it
    wanted = lines[::10]
    status, whole = copy(tmp_path, server, wanted)
    assert status == 0
    requests = len(server.seen)
    monkeypatch.setattr(joined_ranges, "_HELD", 5000)
    monkeypatch.setattr(joined_ranges, "_FETCH_PIECE", 4000)
    (tmp_path / "pieces").mkdir()
    status, copied = copy(tmp_path / "pieces", server, wanted)
    assert (status, copied) == (0, whole)
    assert len(whole) == len(wanted)
    assert len(server.seen) - requests == 3 * len(wanted)
    files = [sorted((tmp_path / place).glob("*.warc.gz")) for place in ("out", "pieces/out")]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]] != []


def test_a_range_that_cannot_be_read_is_reported_for_its_own_records(
    tmp_path: Path, server: RangeServer, lines: list[bytes], capfd: pytest.CaptureFixture[str]
) -> None:
    server.files["/b.warc.gz"].statuses = [404] * 999
    status, copied = copy(tmp_path, server, lines)
    told = capfd.readouterr().err.splitlines()
    of_a = [line for line in lines if line.startswith(b"com,a)")]
    assert (status, len(copied), len(of_a)) == (1, PAGES // APART, PAGES // APART)
    failed = (tmp_path / "out/copy-failures.tsv").read_text().splitlines()
    assert len(failed) == len(lines) - len(of_a)
    assert all("http://b.com/" in row and "404" in row for row in failed)
    assert len(told) == 11  # the rest is only listed
    assert told[10].endswith(
        f"b.warc.gz: {len(failed) - 10} more failures of this kind: cannot be read (N Not Found)"
    )
    server.files["/b.warc.gz"].statuses = []
    assert copy(tmp_path, server, lines)[0] == 0
    assert len(copy(tmp_path, server, lines)[1]) == len(lines)


@pytest.mark.usefixtures("hurry")
def test_busy_servers_and_truncated_answers_change_nothing(
    tmp_path: Path, server: RangeServer, lines: list[bytes]
) -> None:
    server.files["/a.warc.gz"].statuses = [503, 429]
    server.files["/b.warc.gz"].cuts = [100, 5000]
    status, copied = copy(tmp_path, server, lines)
    assert (status, len(copied)) == (0, len(lines))
