"""The compiled way to count a record finds what the general way finds, or leaves the record to it."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdxmill.capture import Record
from cdxmill.stages import native
from cdxmill.stages.counting.counters import COUNTERS, BadRecord, NotWanted
from cdxmill.stages.counting.tally import DictTally, Tally
from cdxmill.stages.records.parse_header import RecordError
from cdxmill.stages.records.take_record import take_whole
from tests.material.sanitizers import run_sanitized

COMPILED = ("tags", "servers", "words")
PIECES = [
    b"", b'"', b"\\", b"\\u00e9", b"\\ud83d", b"\\ude00", b"\\x", b"\n", b"\r", b"\r\n", b"\t", b" ", b":", b";", b",", b"{",
    b"}", b"[", b"]", b"\xc3\xa9", b"\xff", b"\0", b"-", b"0", b"1.5e+3", b"1e999", b"null", b"true", b"NaN", b"{}", b'"Server":"x"',
    b'"SERVER" : ["x"]', b"Headers", b"server: y\r\n", b"Server :z\r\n", b"Content-Encoding: gzip\r\n", b"Content-Type: text/plain\r\n",
    b"unknown/", b"\x1b$B<b\x1b(B", b"; charset=utf-16\r\n", b"TEXT/HTML ", b"application/xhtml+xml", b"\xff\xfe", b"\x89PNG", b"<p", b"<script>", b"\xe2\x80\x83",
]  # fmt: skip
JSON = json.dumps({
    "Container": {"Offset": "1", "Compressed": True, "x": [1, -2.5e-7, None, {}, [], "\U0001f600 \u20ac \uff01", "\\/\""]},
    "Envelope": {
        "WARC-Header-Metadata": {"WARC-Target-URI": "http://a.org/"},
        "Payload-Metadata": {"HTTP-Response-Metadata": {
            "Response-Message": {"Status": "200"},
            "Headers": {"Date": "today", "Server": "nginx/1.2 (\u00fc)".encode("ascii", "ignore").decode(), "ETag": '"1"', "Set-Cookie": ["a", "b"]},
            "HTML-Metadata": {"Links": [{"path": "A@/href", "url": "http://b.org/"}]},
        }},
    },
}).encode()  # fmt: skip
HTML = b"HTTP/1.1 200 OK\r\nServer: nginx \r\nContent-Type: text/html; charset=utf-8\r\nX: y\r\n\r\n<p>a <b>b</b><!-- <i> -->"
WAT = (b"metadata", b"application/json", JSON)
PAGE = (b"response", b"application/http; msgtype=response", HTML)
NO_MEDIA = (*PAGE[:2], HTML.replace(b"text/html; charset=utf-8", b""))
TEXT = (b"conversion", b"text/plain", b"to be or not to be \xc3\xa9 \xe2\x80\x83x\n")
KINDS = st.sampled_from(
    [b"response", b"metadata", b"request", b"conversion", b"resource", b"revisit", b"warcinfo", b"continuation", b"Response"]
)  # fmt: skip
MEDIA = st.sampled_from(
    [b"application/json", b"application/jsonx", b"text/plain", b"text/plain; x", b"text/html"]
)


def content(kind: bytes, media: bytes, block: bytes, more: bytes = b"", length: int | None = None) -> bytes:
    """The content of a member with one record."""
    size = len(block) if length is None else length
    head = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: http://a.org/\r\n%b" % (kind, more)
    return head + b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (media, size, block)


@st.composite
def changed(draw: st.DrawFn, data: bytes) -> bytes:
    """Data with some of its bytes replaced by others."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3)))
    parts = [data[: places[0]]] if places else [data]
    for start, end in pairwise([*places, len(data)]):
        cut = draw(st.integers(0, 3))
        parts += [draw(st.sampled_from(PIECES)), data[start + cut : end]]
    return b"".join(parts)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Records that look as crawlers write them, and others."""
    kind, media, block = draw(st.sampled_from([WAT, WAT, PAGE, PAGE, TEXT]))
    if draw(st.integers(0, 3)) == 0:
        kind, media = draw(KINDS), draw(MEDIA)
    more = draw(st.sampled_from([
        b"", b"", b"WARC-Identified-Payload-Type: text/html\r\n", b"WARC-Identified-Payload-Type: image/png\r\n",
        b"WARC-Identified-Payload-Type: TEXT/html ; x\r\n", b"WARC-Target-URI: ftp://b\r\n", b" folded\r\n",
    ]))  # fmt: skip
    found = content(kind, media, draw(changed(block)), more)
    return draw(changed(found)) if draw(st.integers(0, 4)) == 0 else found


def rows(tally: Tally) -> Counter[bytes]:
    pairs = (line.split(b"\t") for line in tally.take(b"\n").splitlines())
    return Counter({item: int(count) for item, count in pairs})


def counted_by_python(what: str, data: bytes) -> Counter[bytes] | None:
    """The counts of a record; None if there is something to report."""
    counter, tally = COUNTERS[what], DictTally()
    try:
        record = take_whole(0, 0, data, None)
        assert isinstance(record, Record)
        kind = record.headers.get(b"warc-type")
        if kind == b"warcinfo":
            return None
        if kind not in counter.others:
            counter.add(record, tally)
    except NotWanted as reason:
        return None if str(reason) else Counter()
    except (RecordError, BadRecord):
        return None
    return rows(tally)


def counted_by_c(what: str, data: bytes) -> Counter[bytes] | None:
    """The counts; None if the record is left to Python."""
    assert native.Tally is not None
    assert native.count is not None
    tally = native.Tally()
    found = native.count(tally, what, data)
    counts = rows(tally)
    assert bool(counts) <= bool(found)
    return None if found is None else counts


@given(records())
@example(content(*WAT))
@example(content(*PAGE))
@example(content(*TEXT))
@settings(max_examples=300)
def test_it_finds_what_python_finds_or_leaves_the_record_to_it(data: bytes) -> None:
    for what in COMPILED:
        found = counted_by_c(what, data)
        assert found is None or found == counted_by_python(what, data), (what, data)


@pytest.mark.parametrize(
    ("what", "kind", "expected"),
    [
        ("tags", PAGE, {b"p": 1, b"b": 1}),
        ("servers", PAGE, {b"nginx": 1}),
        ("servers", WAT, {b"nginx/1.2 ()": 1}),
        ("words", TEXT, {b"to": 2, b"be": 2, b"or": 1, b"not": 1, b"\xc3\xa9": 1, b"x": 1}),
        ("tags", WAT, {}),
        ("words", PAGE, {}),
    ],
)
def test_usual_records_are_not_left_to_python(
    what: str, kind: tuple[bytes, bytes, bytes], expected: dict[bytes, int]
) -> None:
    record = content(*kind)
    assert counted_by_c(what, record) == expected
    assert counted_by_c(what, record.replace(b"URI: http:", b"URI: https:")) == expected


def test_json_that_ends_early_or_is_too_deep_is_left_to_python() -> None:
    for end in range(len(JSON)):
        assert counted_by_c("servers", content(b"metadata", b"application/json", JSON[:end])) is None
    deep = b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"
    assert counted_by_c("servers", content(b"metadata", b"application/json", deep)) is None
    assert counted_by_python("servers", content(b"metadata", b"application/json", deep)) == {}


def test_wrong_arguments() -> None:
    assert native.count is not None
    for arguments in ((), (1, "tags", b""), (native.Tally, "tags", b"")):
        with pytest.raises(TypeError):
            native.count(*arguments)


_DAMAGE = """
import ctypes, random, sys, _native
drawn = random.Random(7)
seeds = [bytes.fromhex(line) for line in open(sys.argv[1])]
_native.Tally().add(b"", 1)
def count(data):
    exact = (ctypes.c_char * len(data)).from_buffer_copy(data)  # bytes have a NUL after the last byte
    for what in ("tags", "servers", "words"):
        found.append(_native.count(tally, what, exact))
tally, found = _native.Tally(), []
for seed in seeds:
    head, _, block = seed.partition(b"\\r\\n\\r\\n")
    head, _, length = head.rpartition(b" ")
    for _ in range(800):
        data = bytearray(block[:-4])
        for _ in range(drawn.choice((0, 1, 1, 2, 5))):
            data[drawn.randrange(len(data))] = drawn.choice((0, 34, 92, 123, 125, 91, 93, 44, 58, 10, 13, 60, 117, 255))
        data = data[: drawn.choice((len(data), drawn.randrange(len(data))))]
        count(b"%b %d\\r\\n\\r\\n%b\\r\\n\\r\\n" % (head, len(data), data))
    for end in range(len(seed)):
        count(seed[:end])
assert min(map(found.count, (None, False, True))) > 1000
"""


def test_it_reads_no_byte_outside_of_damaged_records(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    seeds.write_text("".join(content(*each).hex() + "\n" for each in (WAT, PAGE, NO_MEDIA, TEXT)))
    run_sanitized(_DAMAGE, tmp_path, str(seeds))
