"""The type and the URL of a record as compiled code reads them: those of the Python reader, or left to it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages import native
from cdxmill.stages.records.take_record import is_one_record

RECORD = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <http://a.org/b>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    b"Content-Length: 5\r\n\r\nabcde\r\n\r\n"
)
pytestmark = pytest.mark.skipif(native.head is None, reason="nothing was compiled")
PIECES = [
    b"", b"\r\n", b"\n", b"\r", b" ", b":", b"0", b"WARC/1.1", b"WARC-Type: revisit\r\n", b"A", b"warc-target-uri: http://c/\r\n",
    b" folded\r\n", b"\xff", b"\0", b"WARC-Type", b"Content-Length: 5\r\n", b"<", b">",
]  # fmt: skip


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    places = sorted(draw(st.lists(st.integers(0, len(RECORD)), max_size=3)))
    parts = [RECORD[: places[0]]] if places else [RECORD]
    for start, end in pairwise([*places, len(RECORD)]):
        parts += [draw(st.sampled_from(PIECES)), RECORD[start + draw(st.integers(0, 3)) : end]]
    return b"".join(parts)


@given(changed())
@example(RECORD.replace(b"response", b"Response"))  # types are the same in any case
def test_it_is_what_python_reads(data: bytes) -> None:
    assert native.head is not None
    found = native.head(data)
    if found is None:
        return
    assert is_one_record(data, HeaderShapes())
    headers, _ = HeaderShapes().parse(data)
    assert found == (headers[b"warc-type"], headers.get(b"warc-target-uri", b""))


def test_a_usual_record_is_read() -> None:
    assert native.head is not None
    assert native.head(RECORD) == (b"response", b"<http://a.org/b>")
    assert [native.head(data) for data in (b"", RECORD[:-1], RECORD + RECORD)] == [None, None, None]
    with pytest.raises(TypeError):
        native.head("text")  # type: ignore[arg-type]
