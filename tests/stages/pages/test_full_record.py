"""What a record is, whether its header was parsed or only matched."""

from __future__ import annotations

import pytest

from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content

BLOCK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbody"


@pytest.mark.parametrize("is_matched", [False, True])
@pytest.mark.parametrize(
    ("kind", "url", "is_http"),
    [
        (b"response", b"http://a.org/", True),
        (b"revisit", b"<https://a.org/>", True),
        (b"request", b"http://a.org/", True),
        (b"response", b"dns:a.org", False),
        (b"resource", b"http://a.org/", False),
        (b"conversion", b"http://a.org/", False),
    ],
)
def test_a_block_is_a_message_by_the_type_and_the_url(
    kind: bytes, url: bytes, is_http: bool, is_matched: bool
) -> None:
    header = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: %b\r\nContent-Length: %d\r\n\r\n"
    data = header % (kind, url, len(BLOCK)) + BLOCK + b"\r\n\r\n"
    shapes = HeaderShapes()
    shapes.parse(data)
    found = shapes.match(data) if is_matched else None
    assert (found is not None) is is_matched
    record = FullRecord(Content(0, len(data), len(data), data), 0, shapes, found)
    assert (record.is_http, record.http.status) == (is_http, b"200" if is_http else None)
