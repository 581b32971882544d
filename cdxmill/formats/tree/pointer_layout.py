"""What the pointers of a prefix B-tree consist of: unsigned numbers, little endian, without gaps.

classic   Common Crawl's URL index of 2012: where the ARC record of a URL is
capture   the record of a capture. `archive` is the number of a name: name_groups.py
any other is written as NAME:TYPE,NAME:TYPE... with the types u8, u16, u32 and u64
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import cycle
from typing import NamedTuple

from cdxmill.formats.lines.cdx_lines import quote
from cdxmill.regex import regex

_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
_FIELD = regex(r"([A-Za-z_][\w-]*):(u8|u16|u32|u64)", re.ASCII)
_NAMED = {
    "classic": "segment:u64,date:u64,partition:u32,offset:u64,size:u32",
    "capture": "archive:u32,offset:u64,length:u64,timestamp:u64,status:u16",
}
NAMES = tuple(_NAMED)
_METHOD = b"__wb_method="
"""Where the body of a request starts that was appended to a key."""
_MOST_FIELDS = 256
_AT_ONCE = 512
"""Pointers that one call packs. Its format is compiled once."""


class Layout:
    """The fields of a pointer. `name` is None for a layout that the user wrote."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name = text if text in _NAMED else None
        fields = [_FIELD.fullmatch(part.strip()) for part in _NAMED.get(text, text).split(",")]
        if not all(fields) or len(fields) > _MOST_FIELDS:
            raise ValueError(
                f"invalid layout {text[:80]!r}: expected {', '.join(NAMES)}, or NAME:TYPE,NAME:TYPE... with the"
                f" types {', '.join(_CODES)}"
            )
        self.fields = [match[1] for match in fields if match is not None]
        if len(set(self.fields)) < len(self.fields):
            raise ValueError(f"invalid layout {text[:80]!r}: two fields have the same name")
        self._codes = "".join(_CODES[match[2]] for match in fields if match is not None)
        self._one = struct.Struct(f"<{self._codes}")
        self.size = self._one.size
        self.sizes = bytes(map(struct.calcsize, self._codes))
        """The bytes of each field."""

    @cached_property
    def _many(self) -> struct.Struct:
        return struct.Struct("<" + f"x{self._codes}" * _AT_ONCE)

    def unpack(self, pointer: bytes) -> tuple[int, ...]:
        """The values of one pointer, in the order of `fields`."""
        return self._one.unpack(pointer)

    def tails(self, columns: Sequence[Sequence[int]]) -> list[bytes]:
        r"""The pointers whose values are in `columns`, one column per field, each after a NUL.

        Raises ValueError if a value is too large.

        >>> Layout("a:u8,b:u16").tails([[1, 2], [3, 4]])
        [b'\x00\x01\x03\x00', b'\x00\x02\x04\x00']
        """
        width, count = len(columns), len(columns[0])
        step = width * _AT_ONCE
        values = [0] * -(
            -width * count // step * step
        )  # one format for all, and the last pointers are dropped
        for place, column in enumerate(columns):
            values[place : width * count : width] = column
        try:
            parts = [self._many.pack(*values[start : start + step]) for start in range(0, len(values), step)]
        except (struct.error, OverflowError):
            raise ValueError(self._too_large(values)) from None
        unpack = _splitter(self.size + 1).unpack
        return [one for part in parts for one in unpack(part)][:count]

    def _too_large(self, values: Sequence[int]) -> str:
        for name, code, value in zip(cycle(self.fields), cycle(self._codes), values, strict=False):
            bits = 8 * struct.calcsize(code)
            if not 0 <= value < 1 << bits:
                return f"{name} {value} needs more than {bits} bits"
        return "a value is too large"


@lru_cache(maxsize=8)
def _splitter(size: int) -> struct.Struct:
    return struct.Struct(f"{size}s" * _AT_ONCE)


CLASSIC, CAPTURE = map(Layout, NAMES)


class Pointer(NamedTuple):
    """The values of the layout `capture`. A timestamp or status of 0 is absent."""

    archive: int
    offset: int
    length: int
    timestamp: int
    status: int


def capture_line(key: bytes, pointer: Pointer, archive: str) -> bytes:
    """A capture as a CDXJ line.

    >>> capture_line(b"com,a)/", Pointer(0, 7, 99, 20240101000000, 200), "a.warc.gz")
    b'com,a)/ 20240101000000 {"url": "http://a.com/", "status": "200", "length": "99", "offset": "7", "filename": "a.warc.gz"}'
    """
    status = b'"status": "%d", ' % pointer.status if pointer.status else b""
    filename = quote(archive.encode("utf-8", "surrogateescape"))
    timestamp = b"%d" % pointer.timestamp if pointer.timestamp else b"-"
    start = _without_spaces(key), timestamp, quote(url_of_key(key)), status
    return b'%b %b {"url": %b, %b"length": "%d", "offset": "%d", "filename": %b}' % (
        *start,
        *(pointer.length, pointer.offset, filename),
    )


def url_of_key(key: bytes) -> bytes:
    """A URL with this key. It need not be the one that was archived: keys have no scheme, no www. and no capitals.

    >>> url_of_key(b"com,example:8080)/a?b=c"), url_of_key(b"dns:a.com")
    (b'http://example.com:8080/a?b=c', b'dns:a.com')
    >>> url_of_key(b"com,example)/a?b=c&__wb_method=post&d=e")
    b'http://example.com/a?b=c'
    """
    host, mark, rest = key.partition(b")")
    if not mark or b"/" in host:
        return key
    name, colon, port = host.partition(b":")
    rest = rest[: found - 1] if (found := rest.find(_METHOD)) > 0 else rest
    return b"http://" + b".".join(reversed(name.split(b","))) + colon + port + rest


def classic_line(key: bytes, values: Sequence[int]) -> bytes:
    """An item of the layout `classic` as a CDXJ line, with the URL that its key stands for and the name of the ARC file.

    >>> classic_line(b"com.example.blogs/2012/:http", [1346876860425, 1346903912043, 12, 7, 99])[:64]
    b'com.example.blogs/2012/:http - {"url": "http://blogs.example.com'
    """
    segment, date, partition, offset, size = values
    name = b"parse-output/segment/%d/%d_%d.arc.gz" % (segment, date, partition)
    parts = quote(url_of_classic(key)), size, offset, name
    return b'%b - {"url": %b, "length": "%d", "offset": "%d", "filename": "%b"}' % (
        _without_spaces(key),
        *parts,
    )


def _without_spaces(key: bytes) -> bytes:
    """A key as it can be in a line."""
    return key.replace(b" ", b"%20") if b" " in key else key


def url_of_classic(key: bytes) -> bytes:
    """The URL of a key such as `com.example/path:http`.

    >>> url_of_classic(b"com.example.blogs/a:b:https"), url_of_classic(b"com.example")
    (b'https://blogs.example.com/a:b', b'http://example.com')
    """
    found = re.fullmatch(rb"(.*):([a-z][a-z0-9+.-]*)", key, re.S)
    rest, scheme = (found[1], found[2]) if found is not None else (key, b"http")
    host, slash, path = rest.partition(b"/")
    name, colon, port = host.partition(b":")
    return scheme + b"://" + b".".join(reversed(name.split(b"."))) + colon + port + slash + path


def classic_key(host: str) -> bytes:
    """A host as keys of the layout `classic` begin with it.

    >>> classic_key("blogs.Example.com")
    b'com.example.blogs'
    """
    return b".".join(reversed(host.lower().encode("utf-8", "surrogateescape").strip(b".").split(b".")))


def classic_key_of_url(url: str, with_scheme: bool) -> bytes:
    """The key of a URL in the layout `classic`; without its scheme, how the keys of longer URLs begin.

    >>> classic_key_of_url("http://blogs.example.com/a", True)
    b'com.example.blogs/a:http'
    """
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    name, colon, port = host.partition(":")
    end = f"{colon}{port}{slash}{path}" + (f":{scheme}" if with_scheme else "")
    return classic_key(name) + end.encode("utf-8", "surrogateescape")
