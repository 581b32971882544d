"""The lines of an archive that is being written are those of `index` over the finished one."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from cdxmill.capture import Damage
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import CaptureLines, index_archive, read_packed
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.pack_contents import Packed
from cdxmill.stages.records.read_contents import Content

OPTIONS = CaptureOptions()
KINDS = (b"response", b"request", b"metadata", b"revisit", b"resource", b"warcinfo")


def record(kind: bytes, number: int, more: bytes = b"\r\n\r\n", size: int | None = None) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nHi %d" % number
    if kind == b"metadata":
        block = b"fetchTimeMs: 9\r\ncharset-detected: UTF-8\r\nlanguages-cld2: {}\r\n"
    of_kind = b"application/warc-fields" if kind == b"metadata" else b"application/http"
    return (
        b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: http://a.com/%d\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
        b"WARC-Concurrent-To: <urn:x:0>\r\nWARC-Record-ID: <urn:x:%d>\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b%b"
        % (kind, number, number if kind == b"response" else 99, of_kind, len(block) if size is None else size, block, more)
    )  # fmt: skip


GOOD = [record(kind, number) for number in range(2) for kind in KINDS]


def content(data: bytes, is_large: bool) -> Content:
    def stream() -> Iterator[bytes]:
        return iter((data[:40], data[40:]))

    return Content(1000, 9, len(data), None if is_large else bytearray(data), stream)


def lines_of(items: list[bytes], is_large: bool) -> tuple[list[bytes], list[Damage]]:
    packed: list[Packed | Damage] = []
    offset = 0
    for data in items:
        packed.append(Packed(content(data, is_large), offset, len(gzip.compress(data, mtime=0))))
        offset += len(gzip.compress(data, mtime=0))
    packed.append(Damage(5, "from before"))
    lines = CaptureLines(make_captures(read_packed(packed, b"x", OPTIONS), b"x", OPTIONS), "cdxj")
    return [line for some in lines for line in some], lines.findings.damage


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("is_large", [False, True])
def test_what_is_written_gets_the_lines_of_the_archive(
    is_large: bool, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr(native, "read", None)
    archive = b"".join(gzip.compress(data, mtime=0) for data in GOOD)
    whole = index_archive(lambda offset, size: archive[offset : offset + size], b"x", OPTIONS)
    wanted = [line for some in whole for line in some]
    assert len(wanted) == 6
    assert sum(b'"charset": "UTF-8"' in line for line in wanted) == 1
    assert lines_of(GOOD, is_large) == (wanted, [Damage(5, "from before")])


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(b"response", 9, size=900), "Content-Length is 900"),
        (record(b"response", 9, b"\r\nmore\r\n"), "Content-Length is too short"),
        (record(b"response", 9) + record(b"response", 8), "more than one record"),
        (b"\r\n\r\n", ""),
    ],
    ids=["truncated", "more", "two", "blank"],
)
def test_a_record_that_is_no_good_costs_only_its_own_line(bad: bytes, reason: str, is_large: bool) -> None:
    wanted, _ = lines_of(GOOD, is_large)
    lines, (*damage, last) = lines_of([*GOOD, bad], is_large)
    assert lines == wanted
    assert last.reason == "from before"
    assert [one.offset for one in damage] == [1000] * bool(reason)
    assert all(reason in one.reason for one in damage)
