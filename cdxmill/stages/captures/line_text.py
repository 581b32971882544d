"""Header values as the text of an index line: UTF-8, without white space in URLs and keys."""

from __future__ import annotations

import re

_SPACE = re.compile(rb"[\x00-\x20\x7f]")
_URL_SPACE = re.compile(rb"[ \x0b\x0c\0]")
_MIME_END = re.compile(rb"[;\s]")
_PLAIN = bytes(byte for byte in range(0x21, 0x7F) if byte != ord("<"))
"""Bytes that need no change in a URL or a key. Most consist of these alone."""


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
