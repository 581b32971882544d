"""Bytes of a text -> UTF-8, and its language.

Charsets are found as browsers find them. One rule differs, because many declarations are wrong: bytes that are valid UTF-8, and not only ASCII, are UTF-8.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
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
LOOKED_AT = 10_000
"""Characters at the start of a text. More make the detection slower, but hardly better."""
_FARTHEST = 1200
"""The rank from which resiliparse's results are usually false."""
_STEP = 8
"""Every eighth character is enough to find the script of a text."""
_LEAST = 0.1
"""The share of Chinese, Japanese or Korean characters from which a text has one of these languages. resiliparse finds
another language in every third Japanese text about computers."""
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+")
_LETTER = re.compile(r"[^\W\d_]")


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
        is_ascii_based = not declared.startswith(("iso2022", "hz", "utf-16", "utf-7"))
        return Decoded(data, "utf-8") if is_ascii_based else _recoded(data, declared)
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


class Language(NamedTuple):
    """An ISO 639-1 code, "" if it is unknown, and a confidence from 0 to 1, with two digits.

    The confidence is the distance from the language's profile (resiliparse's rank) on a scale on which 1200, where
    results are usually false, is 0. It is no probability. It is 1 for a language that is found by its script.
    """

    code: str
    confidence: float


_UNKNOWN = Language("", 0.0)


def detect_language(text: str) -> Language:
    """The language of the first 10,000 characters of `text`."""
    from resiliparse.parse.lang import detect_fast

    if not text.isascii() and (found := _by_script(text[:LOOKED_AT:_STEP])):
        return found
    if _LETTER.search(text) is None:  # resiliparse gives a language for it
        return _UNKNOWN
    code, rank = detect_fast(text[:LOOKED_AT], cutoff=_FARTHEST)
    if code == "unknown":
        return _UNKNOWN
    return Language(code, round(1 - rank / _FARTHEST, 2))


def _by_script(text: str) -> Language | None:
    """Japanese, Chinese or Korean, by the characters that only these languages have. The confidence is 1."""
    with suppress(UnicodeEncodeError):
        text.encode("latin-1")  # as most texts can be: this takes no time, and they have no such characters
        return None
    letters = "".join(_EAST_ASIAN.findall(text))
    if len(letters) <= _LEAST * len(text):
        return None
    kana = sum("\u3040" <= letter <= "\u30ff" for letter in letters)
    hangul = sum(letter >= "\uac00" for letter in letters)
    if kana > _LEAST * len(letters):
        return Language("ja", 1.0)
    return Language("ko" if 2 * hangul > len(letters) else "zh", 1.0)
