"""What is indexed, and how: record types, keys, and header values as the text of an index line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cdxmill.formats.lines.surt import surt, unsurt
from cdxmill.regex import regex

_SPACE = regex(rb"[\x00-\x20\x7f]")
_URL_SPACE = regex(rb"[ \x0b\x0c\0]")
_MIME_END = regex(rb"[;\s]")
_PLAIN = bytes(range(0x21, 0x7F)).replace(b"<", b"")
"""Bytes that need no change in a URL or a key. Most consist of these alone."""
DEFAULT_RECORDS = frozenset((b"response", b"revisit", b"resource", b"metadata", b"conversion"))
RECORD_TYPES = DEFAULT_RECORDS | {b"request", b"warcinfo", b"continuation"}


def text_of(value: bytes | None) -> bytes | None:
    """A header's value as UTF-8; a value that is not UTF-8 is read as Latin-1. None for an empty value."""
    if not value:
        return None
    if value.isascii():
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1").encode()
    return value


def media_type(content_type: bytes) -> bytes:
    """A Content-Type without its parameters."""
    return _MIME_END.split(content_type, maxsplit=1)[0]


def clean_url(value: bytes | None) -> bytes | None:
    """The URL in a header's value, with spaces escaped. None for an empty value."""
    if value and not value.translate(None, _PLAIN):
        return value
    url = text_of(value)
    if url is None:
        return None
    if url[:1] == b"<" and url[-1:] == b">":  # as wget 1.19 writes URLs
        url = url[1:-1]
    return _URL_SPACE.sub(_percent, url)


def escape_space(key: bytes) -> bytes:
    """A key without white space and control bytes: they are percent-encoded."""
    return _SPACE.sub(_percent, key) if key.translate(None, _PLAIN) else key


def _percent(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match.group()[0]


def parse_record_types(names: Iterable[str]) -> frozenset[bytes] | None:
    """The record types of these names; None if one is "all". Raises ValueError for an unknown name.

    >>> sorted(parse_record_types(["response", "Revisit"])), parse_record_types(["all"])
    ([b'response', b'revisit'], None)
    """
    types = frozenset(name.strip().lower().encode() for name in names)
    if types == {b"all"}:
        return None
    for unknown in sorted(types - RECORD_TYPES):
        known = b", ".join(sorted(RECORD_TYPES)).decode()
        raise ValueError(f"invalid record type {unknown.decode()!r}: expected all, or some of {known}")
    return types


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """What is indexed, and how. `records` of None means every record that has a URL.

    With `check_digests`, a record whose bytes do not have the digest in its header is damage.
    """

    records: frozenset[bytes] | None = DEFAULT_RECORDS
    post_append: bool = False
    minimal: bool = False
    unsurt: bool = False
    keep_www: bool = False
    check_digests: bool = False

    @property
    def lineless(self) -> frozenset[bytes]:
        """Record types that get no line, whatever they contain. Readers may return them as CrawlNotes."""
        if self.records is None or self.post_append or b"request" in self.records:
            return frozenset()
        return frozenset((b"request", b"metadata"))

    def urlkey(self, url: bytes) -> bytes:
        """The sort key of `url`. A URL without a SURT is its own key; spaces in it are escaped."""
        try:
            key = surt(url, self.keep_www)
        except ValueError:
            return escape_space(url)
        return escape_space(unsurt(key) if self.unsurt else key)
