"""Bytes of a text -> UTF-8. The order is that of browsers: byte order mark, HTTP charset, meta element, and then a guess.

One rule differs, because many declarations are wrong: bytes that are valid UTF-8, and not only ASCII, are UTF-8.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import NamedTuple

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_META = re.compile(
    rb"<(?:meta\b[^>]{0,500}?charset\s*=|\?xml\b[^>]{0,200}?encoding\s*=)\s*[\"']?\s*([\w.:-]{2,40})", re.I
)
_SEARCHED = 1024
"""Bytes in which browsers look for the meta element."""
_TAIL = 4
"""Bytes of the longest character: a truncated text may end within one."""


class Decoded(NamedTuple):
    """A text as UTF-8 and the name of its charset."""

    utf8: bytes
    charset: str


def decode_text(data: bytes, content_type: bytes | None = None, max_size: int | None = None) -> Decoded:
    """The text of `data`, with U+FFFD for bytes that are invalid. `content_type` is that of the HTTP head.

    >>> decode_text("<meta charset=windows-1251>Привет".encode("cp1251"))[0].decode()[-6:]
    'Привет'
    """
    data = data[:max_size]
    for bom, charset in _BOMS:
        if data.startswith(bom):
            return _recoded(data[len(bom) :], charset)
    at = _first_odd(data)
    if at < 0:
        declared = _declared(data, content_type) if data.isascii() else "utf-8"
        return Decoded(data, "utf-8") if _is_ascii_based(declared) else _recoded(data, declared)
    declared = _declared(data, content_type)
    if declared == "utf-8" and at < len(data) - _TAIL:
        declared = ""
    return _recoded(data, declared or _guess(data))


def _first_odd(data: bytes) -> int:
    """The offset of the first character that is no valid UTF-8; -1 if there is none."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _is_ascii_based(charset: str) -> bool:
    return not charset.startswith(("iso2022", "hz", "utf-16", "utf-7"))


def _declared(data: bytes, content_type: bytes | None) -> str:
    """The charset that the HTTP head or a meta element declares, as Python names it; "" if none is known."""
    found = _CHARSET.search(content_type or b"")
    name = _python_name(found[1]) if found is not None else ""
    if not name:
        found = _META.search(data, 0, _SEARCHED)
        name = _python_name(found[1]) if found is not None else ""
        if name.startswith("utf-16"):  # the element could be read, so this is wrong (HTML, 13.2.3.2)
            name = "utf-8"
    return name


@lru_cache(maxsize=1000)
def _python_name(label: bytes) -> str:
    from resiliparse.parse.encoding import map_encoding_to_html5

    text = label.decode("ascii", "replace")
    try:
        known = map_encoding_to_html5(text, fallback_utf8=False)
        return str(known) if known and codecs.lookup(known) else ""
    except LookupError:
        return ""


def _guess(data: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    return str(detect_encoding(data) or "utf-8")


def _recoded(data: bytes, charset: str) -> Decoded:
    try:
        text = data.decode(charset, "replace")
    except (LookupError, UnicodeError):
        charset = "utf-8"
        text = data.decode(charset, "replace")
    return Decoded(text.encode("utf-8", "replace"), charset)
