"""Records near to the common kind, drawn at random: what the quick way may take, and what it must not."""

from __future__ import annotations

import gzip
from collections.abc import Callable

from hypothesis import strategies as st

_RECORD_ID = b"<urn:uuid:1d350d22-552e-4b43-aa53-f1875f3c2e53>"
_OTHER_ID = b"<urn:uuid:00000000-552e-4b43-aa53-f1875f3c2e53>"


_Value = Callable[..., bytes]
_VALUES = 20
"""The number of values of a record that can be odd; a record of notes has fewer."""


def _odd(usual: bytes, *others: bytes) -> st.SearchStrategy[bytes]:
    """One of `others`, or the usual value with an odd byte somewhere."""
    spoilt = st.tuples(st.integers(0, len(usual)), st.sampled_from(_ODD)).map(
        lambda spoil: usual[: spoil[0]] + spoil[1] + usual[spoil[0] :]
    )
    return st.one_of(spoilt, st.sampled_from(others)) if others else spoilt


_ODD = (
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n ",
    b'"',
    b"\\",
    b"<",
    b"\0",
    b"\x0b",
    b"\x7f",
    b"\xc3\xa9",
    b":",
    b"",
    b"%",
)
_URLS = (
    b"http://example.com/a/b.html",
    b"https://www2.example.co.uk:8443/Path/?b=2&a=1&a&B=0&a=",
    b"http://example.com/?&=&==&a==",
    b"http://example.com//a/./b/../c",
    b"http://example.com/a/?id=1&page_id=2&cftoken=3&cfid=4",
    b"http://example.com/a;jsessionid=0123456789abcdef0123456789abcdef?SID=0123456789abcdef0123456789abcdef",
    b"http://example.com/(S(0123456789abcdefghijklmn))/x.aspx?a=1",
    b"http://example.com/%C3%A9?%61=b#top",
    b"http://example.com/a?",
    b"http://example.com/?" + b"&".join(b"a%d=%d" % (i, i) for i in range(20, 0, -1)),
    b"http://example.com",
    b"http://example.com:99999/a",
    b"http:///a",
    b"http:/example.com/a/b",
    b"HTTP://example.com/a",
    b"http://1.2.3.4/a/",
    b"https://user@example.com/a",
    b"dns:example.com",
)
_TYPES = (b"request", b"metadata", b"revisit", b"Response", b"resource", b"")
_DATES = (
    b"2024-02-29T00:00:00Z",
    b"2024-05-31T23:59:59Z",
    b"2024-04-31T00:00:00Z",
    b"2024-05-17T23:41:22.5Z",
    b"0000-05-31T00:00:00Z",
    b"2024-13-01T00:00:00Z",
    b"2024-05-17",
)
_STATUS = (
    b"HTTP/1.1 301 Moved",
    b"HTTP/1.0 304 Not Modified\r",
    b"HTTP/2 404",
    b"HTTP/1.1 200",
    b"HTTP/1.1  200 OK",
    b"HTTP/1.1 2000 OK",
    b"ICY 200 OK",
    b"",
)
_HTTP_FIELDS = (
    b"Content-Type: text/html; charset=utf-8",
    b"content-type:application/pdf",
    b"Content-Type: ;x",
    b"Content-Type:",
    b"Content-Type : a/b",
    b"Content-Typex: a/b",
    b"Location: http://example.org/there",
    b"LOCATION:   /relative ",
    b"Location: http://example.org/\xe9",
    b"Location:",
    b"Content-Length: 5",
    b" folded",
    b"no colon",
)
_NOTES = (
    b"fetchTimeMs: 12\r\ncharset-detected: UTF-8\r\n\r\n",
    b"charset-detected: UTF-8\r\nlanguages-cld2: {}\r\n\r\n",
    b'fetchTimeMs: 12\r\ncharset-detected: a"b\r\nlanguages-cld2: {"code-iso-639-3" : "eng"}\r\n\r\n',
    b'fetchTimeMs: \r\ncharset-detected: x\r\nlanguages-cld2: {"code-iso-639-3":"eng","code-iso-639-3":""}\r\n\r\n',
    b"charset-detected: UTF-8",
    b"",
)
_GOOD_NOTES = (
    b'fetchTimeMs: 9\r\ncharset-detected: UTF-8\r\nlanguages-cld2: {"l":[{"code-iso-639-3":"eng"},{"code-iso-639-3":"deu"}]}\r\n\r\n',
    b"fetchTimeMs: 12\r\ncharset-detected: UTF-8\r\n\r\n",
    b"charset-detected: UTF-8\r\nlanguages-cld2: {}\r\n\r\n",
)


@st.composite
def _http(draw: st.DrawFn, value: _Value) -> bytes:
    lines = [
        value(b"HTTP/1.1 200 OK", *_STATUS),
        *draw(st.lists(st.sampled_from(_HTTP_FIELDS[:4]), max_size=3)),
    ]
    lines.append(value(b"Server: x", *_HTTP_FIELDS))
    return b"\r\n".join(lines) + value(b"\r\n\r\n", b"\n\n", b"\r\n") + b"body"


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """The decompressed content of a record in which up to two values are odd."""
    spoilt = draw(st.sets(st.integers(0, _VALUES - 1), max_size=2))
    numbers = iter(range(_VALUES))

    def value(usual: bytes, *others: bytes) -> bytes:
        return draw(_odd(usual, *others)) if next(numbers) in spoilt else usual

    kind = draw(st.sampled_from((b"response", b"response", b"response", b"revisit", b"metadata", b"request")))
    is_notes = kind == b"metadata"
    block = value(draw(st.sampled_from(_GOOD_NOTES)), *_NOTES) if is_notes else draw(_http(value))
    type_of_block = b"application/warc-fields" if is_notes else b"application/http; msgtype=response"
    fields = [
        (b"WARC-Type", value(kind, *_TYPES)),
        (b"WARC-Date", value(b"2024-05-17T23:41:22Z", *_DATES)),
        (b"WARC-Record-ID", draw(st.sampled_from((_RECORD_ID, _OTHER_ID)))),
        (b"WARC-Target-URI", value(draw(st.sampled_from(_URLS)))),
        (b"Content-Type", value(type_of_block, b"application/warc-fields")),
        (b"WARC-Concurrent-To", value(_RECORD_ID, _OTHER_ID)),
        (b"WARC-Payload-Digest", value(b"sha1:YCTSX5TRBTYS76C5PKEW43YWT2AWUSSM", b"sha1:", b"md5:x", b"")),
        (b"WARC-Identified-Payload-Type", value(b"text/html", b"")),
        (b"WARC-Truncated", value(b"length", b"")),
        (b"Content-Length", value(b"%d" % len(block), b"0%d" % len(block), b"9", b"")),
    ]
    fields = draw(st.permutations(fields))
    if value(b"") != b"":
        del fields[draw(st.integers(0, len(fields) - 1))]
    if value(b"") != b"":
        fields.append(draw(st.sampled_from(fields)))
    names = [draw(st.sampled_from((name, name.lower()))) for name, _ in fields]
    lines = [value(b"WARC/1.0", b"WARC/1.1", b"WARC/0.18", b"warc/1.0")]
    lines += [name + b": " + text for name, (_, text) in zip(names, fields, strict=True)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + block + value(b"\r\n\r\n", b"\n\n", b"")


def archive(records: list[bytes]) -> bytes:
    """Each record in a gzip member of its own."""
    return b"".join(gzip.compress(record, 1, mtime=0) for record in records)


_ONE_ODD: dict[str, tuple[bytes, ...]] = {
    "version": (b"WARC/1.0", b"WARC/1.1", b"WARC/0.17", b"WARC/0.18", b"WARC/0.19", b"warc/1.0", b"WARC/1.2", b"WARC/1.0 "),
    "kind": _TYPES,
    "date": (
        *_DATES,
        *(b"%b-01T00:00:00Z" % month for month in (b"2024-00", b"2024-01", b"2024-12", b"2023-13")),
        *(b"2023-%bT00:00:00Z" % day for day in (b"01-00", b"01-31", b"01-32", b"02-28", b"02-29", b"04-30", b"04-31", b"12-31")),
        *(b"2024-01-01T%bZ" % time for time in (b"23:59:59", b"24:00:00", b"00:60:00", b"00:00:60", b"00:59:00")),
        *(b"2024-01-01T00:00:00%bZ" % rest for rest in (b".", b".1", b".123456789", b".1234567890", b".12x", b",5", b"5")),
        b"2024-01-01T00:00:00", b"1000-01-01T00:00:00Z", b"9999-12-31T23:59:59Z", b"2024-01-01 00:00:00Z", b"0999-01-01T00:00:00Z",
    ),
    "url": _URLS,
    "more": (
        *(b"X: %bWARC/%b" % (start, end) for start in (b"", b"a", b"http://a.b/") for end in (b"1.0", b"1.1", b"0.17", b"0.18", b"1.9", b"0.19")),
        b"X: /1.0", b"X: a/1.0", b"X: abcd/1.0", b"X: abc/0.17", b"X: WARC/1.0 ", b"X: warc/1.0", b"X: a ", b"X:  a", b"X:a", b"X", b"X : a",
        b"WARC-Type: response", b"WARC-Truncated: length", b"WARC-Truncated: ", b"WARC-Identified-Payload-Type: a/b", b"x:",
    ),
    "digest": (b"sha1:YCTSX5TRBTYS76C5PKEW43YWT2AWUSSM", b"sha1:", b"md5:x", b"", b"x", b"sha-256:ab", b'sha1:"'),
    "status": (*_STATUS, b"HTTP/1.1 200\rx\nX: y", *(b"HTTP/1.1 %b OK" % code for code in (b"099", b"20", b"20x", b"300", b"302", b"304", b"399", b"400", b"-"))),
    "http": (
        *_HTTP_FIELDS, b"Content-Type: a/b c", b"Content-Type: a/b;c", b'Content-Type: a/"', b"Content-Type: a/b\x7f", b"Content-Type: a\\b",
        b"Content-Type: a/b\r\nContent-Type: c/d", b"Location: http://a.b/ c", b"Location: https://a.b/", b"Location: ftp://a.b/", b"Location: http://a.b/\r\nLocation: http://c.d/",
        b"Content-Type:\ta/b\t", b"Location: http:/", b"Content-Types: a/b", b"Content-Typ: a/b", b"X: y",
    ),
    "end": (b"\r\n\r\n", b"\n\n", b"\r\n", b"", b"\r\n\r\n\r\n"),
    "length": (b"", b"0", b"+", b"x", b" ", b"0" * 17, b"0" * 18),
}  # fmt: skip
"""Values on both sides of what the quick way may take. Those of `length` come before the right number."""


_USUAL = {
    "version": b"WARC/1.0",
    "kind": b"response",
    "date": b"2024-05-17T23:41:22Z",
    "url": b"http://example.com/a",
    "more": b"X: y",
    "digest": b"sha1:YCTSX5TRBTYS76C5PKEW43YWT2AWUSSM",
    "status": b"HTTP/1.1 200 OK",
    "http": b"Content-Type: text/html",
    "end": b"\r\n\r\n",
    "length": b"",
}


def one_odd() -> list[bytes]:
    """The contents of records of which at most one value is odd; then the same with a redirect."""
    return [
        _record_of({**_USUAL, "status": status, name: value})
        for status in (b"HTTP/1.1 200 OK", b"HTTP/1.1 301 Moved")
        for name, values in _ONE_ODD.items()
        for value in values
    ]


def _record_of(values: dict[str, bytes]) -> bytes:
    block = b"%b\r\n%b\r\n\r\nbody" % (values["status"], values["http"])
    fields = [
        values["version"],
        b"WARC-Type: " + values["kind"],
        b"WARC-Date: " + values["date"],
        b"WARC-Target-URI: " + values["url"],
        b"WARC-Record-ID: " + _RECORD_ID,
        values["more"],
        b"WARC-Payload-Digest: " + values["digest"],
        b"Content-Type: application/http; msgtype=response",
        b"Content-Length: %b%d" % (values["length"], len(block)),
    ]
    return b"\r\n".join(fields) + b"\r\n\r\n" + block + values["end"]
