"""Every parser of formats/, with bytes of any kind: it gives an answer that holds, or raises ValueError.

Half of the inputs are valid ones with small changes. CDXMILL_EXAMPLES sets the number of inputs per parser.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdxmill.capture import Record
from cdxmill.formats.archives import arc_header, http_head, warc_header
from cdxmill.formats.archives.framing import FrameError, frame_end, header_size
from cdxmill.formats.archives.small_member import inflate_members
from cdxmill.formats.clusters import manifest as cluster_manifest
from cdxmill.formats.clusters import split_points
from cdxmill.formats.clusters.zipnum import (
    format_part_line,
    number_of,
    parse_index_line,
    parse_locations,
)
from cdxmill.formats.lines.capture_fields import (
    field_reader,
    is_cdxj,
    line_format,
    parse_fields,
    record_location,
)
from cdxmill.formats.lines.cdx_lines import convert_line
from cdxmill.formats.lines.lookup_query import key_range, narrowed, parse_filter, time_range
from cdxmill.formats.lines.request_query import append_query
from cdxmill.formats.lines.surt import surt, unsurt
from cdxmill.formats.lines.timestamp import timestamp_of
from cdxmill.options.queries import MATCH_TYPES, OUTPUTS
from cdxmill.stages.captures.match_record import capture_of_record, difference
from cdxmill.stages.lines import choose_lines
from cdxmill.stages.lines.choose_lines import parse_collapse
from cdxmill.stages.records.decode_payload import decode_payload
from cdxmill.stages.records.read_records import read_records

EXAMPLES = int(os.environ.get("CDXMILL_EXAMPLES", "150"))
LONGEST = 1 << 20
"""No answer to less than a kilobyte is longer."""

LINE = (
    b'com,a)/ 20200101000000 {"url": "http://a.com/", "mime": "text/html", "status": "200", "digest": "X",'
    b' "length": "2", "offset": "1", "filename": "f"}'
)
WARC = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.com/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    b"Content-Length: 19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\r\n\r\n"
)
TOKENS = [
    *(
        b"\0",
        b"\xff",
        b"\n",
        b"\r\n",
        b" ",
        b"\t",
        b'"',
        b"\\",
        b"\\ud800",
        b"\\u0000",
        b"[" * 3000,
        b"9" * 30,
    ),
    *(
        b"9" * 5000,
        b"-1",
        b"1e999",
        b"NaN",
        b"{",
        b"}",
        b"\x08",
        b"\xc3\xa4",
        b"\xed\xa0\x80",
        b"://",
        b"?&=",
        b"%",
    ),
]


def changed(*seeds: bytes) -> st.SearchStrategy[bytes]:
    """One of the seeds with a few parts replaced; or any bytes."""

    def replace(seed: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
        for at, size, part in edits:
            at %= len(seed) + 1
            seed = seed[:at] + part + seed[at + size :]
        return seed

    parts = st.sampled_from(TOKENS) | st.binary(max_size=6)
    edits = st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 8), parts), max_size=4)
    return st.builds(replace, st.sampled_from(seeds), edits) | st.binary(max_size=400)


def any_surt(data: bytes) -> None:
    key = surt(data)
    if not data.lower().lstrip().startswith((b"filedesc", b"urn")):
        assert re.search(rb"[\x00-\x20\x7f-\xff]", key) is None
    unsurt(key)
    unsurt(data)


def any_query(data: bytes) -> None:
    times, _, text = data.partition(b"|")
    url = text.decode("utf-8", "surrogateescape")
    first, last = times[:9].decode("latin-1"), times[9:].decode("latin-1")
    with contextlib.suppress(ValueError):
        choose_lines.seconds(times.decode("utf-8", "surrogateescape"))
    for match_type in (None, *MATCH_TYPES):
        with contextlib.suppress(ValueError):
            keys = key_range(url, match_type)
            assert keys.low <= keys.high
            assert not keys.is_one_url or keys.low <= keys.low + b" 20200101000000 {}" < keys.high
            narrowed(keys, time_range(first or None, last or None))


def any_line(data: bytes) -> None:
    line = data.replace(b"\n", b"")
    fields = None
    with contextlib.suppress(ValueError):
        fields = parse_fields(line)
    for name in ("url", "status", "urlkey", "timestamp", "filename", "s", "absent"):
        with contextlib.suppress(ValueError):
            found = field_reader(name)(line)
            if fields is not None and name in ("status", "filename") and is_cdxj(line):
                assert found == str(fields.get(name, ""))
    for output in OUTPUTS:
        for names in (None, ("url", "status")):
            with contextlib.suppress(ValueError):
                _check_printed(output, names, line)
    for function in (convert_line, record_location):
        with contextlib.suppress(ValueError):
            function(line)


def _check_printed(output: str, names: tuple[str, ...] | None, line: bytes) -> None:
    make = line_format(output, names)
    if make is None:
        return
    printed = make(line)
    if output == "json":
        json.loads(printed, parse_constant=lambda name: pytest.fail(name))
    if output == "csv":
        import csv

        assert len(list(csv.reader(io.StringIO(printed.decode("utf-8", "surrogateescape"), newline="")))) == 1
    else:
        assert b"\n" not in printed
    if output == "cdx":
        assert printed.count(b" ") == (10 if names is None else 1)


def any_chosen(data: bytes) -> None:
    """All steps of an answer: lines that cannot be parsed are skipped, and never raise."""
    lines = data.split(b"\n")
    skipped: list[bytes] = []

    def invalid(line: bytes, error: Exception) -> None:
        skipped.append(line)

    found: Iterator[list[bytes]] = iter([lines])
    found = choose_lines.resolve_revisits(found, invalid)
    found = choose_lines.keep_passing(found, [parse_filter("!=status:1").passes], invalid)
    found = choose_lines.collapse(found, parse_collapse("4").token, invalid)
    found = choose_lines.sort_closest(found, "2020", None)
    assert sum(map(len, found)) + len(skipped) <= len(lines)


def any_filter(data: bytes) -> None:
    text, _, line = data.partition(b"\n")
    if b"~" not in text[:2]:  # the user's own regular expression may take for ever
        parse_filter(text.decode("utf-8", "surrogateescape")).passes(line)
        parse_collapse(text.decode("utf-8", "surrogateescape")).token(line)


def any_index(data: bytes) -> None:
    parse_locations(data)
    for line in data.split(b"\n"):
        number_of(line)
        with contextlib.suppress(ValueError):
            block = parse_index_line(line)
            assert parse_index_line(format_part_line(block)) == block


def any_splits(data: bytes) -> None:
    lines = sorted({part for part in data.split(b"\n") if part})
    assert split_points.parse(split_points.format_sequence_file(lines)) == lines
    points = split_points.parse(data)
    assert split_points.parse_sequence_file(split_points.format_sequence_file(points)) == points


def any_manifest(data: bytes) -> None:
    assert cluster_manifest.format_manifest(cluster_manifest.parse_manifest(data)) == data


def _odd_header(data: bytes) -> object:
    headers, end = warc_header._parse_odd_header(data)
    return warc_header._in_lower_case(headers), end


def any_warc(data: bytes) -> None:
    results = []
    parsers: list[Callable[[bytes], object]] = [
        lambda data: warc_header.parse_warc_header(data),
        lambda data: _odd_header(data),
        lambda data: warc_header.HeaderShapes().parse(data),
    ]
    for parse in parsers:
        try:
            results.append(parse(data))
        except ValueError:
            results.append(None)
    assert results[0] == results[1] == results[2]


def any_record(data: bytes) -> None:
    """Any record, compared with a line that is not its own."""
    for item in read_records(lambda offset, size: data[offset : offset + size]):
        if isinstance(item, Record):
            difference(capture_of_record(item), record_location(LINE))


def any_http(data: bytes) -> None:
    assert http_head.parse_http_head(data) == http_head._parse_odd_head(data)


def any_arc(data: bytes) -> None:
    arc_header.parse_arc_header(data)


def any_timestamp(data: bytes) -> None:
    stamp = timestamp_of(data)
    assert stamp is None or re.fullmatch(rb"\d{14}", stamp)


def any_frame(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        header_size(data)
    with contextlib.suppress(FrameError):
        assert frame_end(lambda offset, size: data[offset : offset + size], 0) <= len(data)


def any_members(data: bytes) -> None:
    cut = data[0] % 7 if data else 0
    packed = b"".join(zlib.compress(part, 1 + cut, 31) for part in data.split(b"|")) + data[:cut]
    for whole in (data, packed):
        start = 0
        for content, end in inflate_members(whole, 0, 1 << 20):
            inflater = zlib.decompressobj(31)
            assert inflater.decompress(whole[start:end]) == content
            assert inflater.eof
            assert not inflater.unused_data
            start = end


def any_payload(data: bytes) -> None:
    codings = (b"gzip", b"deflate", b"chunked", b"zstd", b"gzip, chunked", b"x", b"deflate, gzip")
    which = codings[data[0] % len(codings)] if data else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: " + which + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert sum(map(len, decode_payload(head, iter([data[1:40], data[40:]])))) < LONGEST


def any_post(data: bytes) -> None:
    kind, _, body = data.partition(b"|")
    types = ("application/x-www-form-urlencoded", "text/plain", "application/json", kind.decode("latin-1"))
    for content_type in (*types, "multipart/form-data; boundary=x"):
        append_query("http://a.com/", "POST", content_type, body)


URL = b"http://u:p@www.Example.com:80/A/../b/;jsessionid=0123456789abcdef0123456789abcdef?z=1&a=2#top"
FORM = b'multipart/form-data; boundary=x|--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--'
CDX_LINE = b"com,a)/ 2020 http://a.com/ text/html 200 X - - 1 2 f"
REVISIT = LINE.replace(b"text/html", b"warc/revisit")
ARC = b"http://a.b/ 1.2.3.4 20080430204825 text/html 10\n"
TARGETS: dict[Callable[[bytes], None], tuple[bytes, ...]] = {
    any_surt: (URL, b"dns:x.com", b"http://[::1]/", b"http://xn--9ca.com/%C3%A9%2525"),
    any_query: (b"2014012014|" + URL, b"|*.a.com", b"20|a.com/*", b"1999|a.com b.com"),
    any_line: (LINE, CDX_LINE, b"com,a)/ 2020 http://a.com/ 1 2 f"),
    any_chosen: (LINE + b"\n" + REVISIT, REVISIT + b"\n" + CDX_LINE),
    any_filter: (b"!=status:200\n" + LINE, b"url:4\n" + CDX_LINE, b"4\n" + LINE),
    any_index: (b"com,a)/ 2020\tcdx-00000.gz\t0\t188\t1\ncdx-00000.gz\t/x\thttp://y\n",),
    any_splits: (b"a 1\nb 2\n", split_points.format_sequence_file([b"a 1", b"b 2"])),
    any_manifest: (b'{"format": 1}', b"{}"),
    any_warc: (WARC,),
    any_record: (WARC, WARC * 2, ARC + b"HTTP/1.1 1\n"),
    any_http: (b"HTTP/1.1 301 F\r\nContent-Type: a/b; c\r\nLocation: /x\r\n\r\nbody",),
    any_arc: (ARC,),
    any_timestamp: (b"2020-01-01T00:00:00+02:00", b"20080430204825", b"2020", b"0000-13-32"),
    any_frame: (b"\x28\xb5\x2f\xfd\x24\x05\x29\x00\x00hello", zlib.compress(b"hello", 6, 31)),
    any_members: (b"\x03abc|def|ghi", zlib.compress(b"hello", 6, 31) * 2),
    any_payload: (b"\x045\r\nhello\r\n0\r\n\r\n", b"\x00" + zlib.compress(b"hello", 6, 31)),
    any_post: (b'x|{"a": [1, {"b": null}]}', FORM),
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_a_parser_answers_or_raises_value_error(target: Callable[[bytes], None]) -> None:
    @settings(max_examples=EXAMPLES, deadline=2000, suppress_health_check=list(HealthCheck))
    @given(changed(*TARGETS[target]))
    def check(data: bytes) -> None:
        with contextlib.suppress(ValueError):
            target(data)

    check()
