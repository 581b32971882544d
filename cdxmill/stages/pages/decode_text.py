"""Bytes of a text -> UTF-8, and its language.

Charsets are found as browsers find them. One rule differs, because many declarations are wrong: bytes that are valid UTF-8, and not only ASCII, are UTF-8.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from cdxmill.regex import regex

_UTF16_BOMS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECODERS = {
    "shift_jis": "cp932",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-11": "cp874",
}
"""What browsers decode a charset with: it has more characters (WHATWG Encoding)."""
_MORE_LABELS = {"x-mac-cyrillic": "mac-cyrillic", "x-mac-ukrainian": "mac-cyrillic"}
"""Labels that resiliparse lacks."""
_ISO_2022_JP = "iso2022_jp"
_TO_JAPANESE, _TO_ASCII = regex(rb"\x1b\$[@B]"), regex(rb"\x1b\([BJ]")
_RUN = regex(rb"\x1b(\(I|\$[@B])([^\x1b]*)")
_JAPANESE = {b"(I": "cp932", b"$@": "euc_jis_2004", b"$B": "euc_jis_2004"}
"""How the characters after an escape are decoded, with their high bits set."""
_HIGH = bytes(byte | 0x80 for byte in range(256))
_FIRST = 512
"""Bytes at the start of a page in UTF-16 of which one is NUL."""
_CHARSET = regex(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.I)
_META = regex(
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
_EAST_ASIAN = regex("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+")
_TAG = regex(r"[a-z]{2,3}(?:-[a-z0-9]{1,8})*")
_LETTER = regex(r"[^\W\d_]")


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
    if data.startswith(codecs.BOM_UTF8):
        return _recoded(data, "utf-8")
    if charset := unlike_ascii(data, content_type):
        return _recoded(data, charset)
    if (at := _first_odd(data)) < 0:
        return Decoded(data, "utf-8")
    declared = _declared(data, content_type)
    if declared == "utf-8":
        declared = "utf-8" if at >= len(data) - _TAIL else ""
    if not declared and _is_mostly_utf8(data):
        declared = "utf-8"
    return _recoded(data, declared or _guess(data))


def markup_of(data: bytes, content_type: bytes | None) -> bytes:
    """`data`, or UTF-8 if the charset is one in which the bytes of markup are not those of ASCII."""
    charset = unlike_ascii(data, content_type)
    return _recoded(data, charset).utf8 if charset else data


def unlike_ascii(data: bytes, content_type: bytes | None = None) -> str:
    """The charset of a page if it has other bytes for ASCII, or ASCII's bytes for other characters; otherwise "".

    In UTF-16, most characters of markup have a NUL byte, so a page without one is not in UTF-16, whatever its header says.
    """
    for bom, charset in _UTF16_BOMS:
        if data.startswith(bom):
            return charset
    if 0 in data[:_FIRST] and (declared := _in_header(content_type)).startswith("utf-16"):
        return declared
    if 0x1B in data:
        declared, is_ascii = _declared(data, content_type), data.isascii()
        if declared == _ISO_2022_JP and (is_ascii or _first_odd(data) >= 0):
            return _ISO_2022_JP
        if not declared and is_ascii and _TO_JAPANESE.search(data):
            return _ISO_2022_JP
    return ""


def _first_odd(data: bytes) -> int:
    """The offset of the first character that is no valid UTF-8; -1 if there is none."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _is_mostly_utf8(data: bytes) -> bool:
    """Whether more characters are valid UTF-8, and not ASCII, than bytes are invalid."""
    text = data.decode("utf-8", "replace")
    return len(text) - len(text.encode("ascii", "ignore")) > 2 * text.count("\ufffd")


def _declared(data: bytes, content_type: bytes | None) -> str:
    """The charset that the HTTP head or a meta element declares, as Python names it; "" if none is known."""
    name = _in_header(content_type)
    if not name:
        found = _META.search(data, 0, _SEARCHED)
        name = _python_name(found[1]) if found is not None else ""
    # A meta element that can be read is not in UTF-16 (HTML, 13.2.3.2), and no more is what has no NUL bytes.
    return "utf-8" if name.startswith("utf-16") else name


def _in_header(content_type: bytes | None) -> str:
    found = _CHARSET.search(content_type or b"")
    return _python_name(found[1]) if found is not None else ""


@lru_cache(maxsize=1000)
def _python_name(label: bytes) -> str:
    from resiliparse.parse.encoding import map_encoding_to_html5

    text = label.decode("ascii", "replace").lower()
    try:
        known = _MORE_LABELS.get(text) or map_encoding_to_html5(text, fallback_utf8=False)
        return str(known) if known and codecs.lookup(known) else ""
    except LookupError:
        return ""


def _guess(data: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    return str(detect_encoding(data) or "utf-8")


def _recoded(data: bytes, charset: str) -> Decoded:
    if charset == _ISO_2022_JP:
        return Decoded(_from_iso_2022_jp(data).encode(), charset)
    try:
        text = data.decode(_DECODERS.get(charset, charset), "replace")
    except (LookupError, UnicodeError):
        charset = "utf-8"
        text = data.decode(charset, "replace")
    return Decoded(text.removeprefix("\ufeff").encode("utf-8", "replace"), charset)


def _from_iso_2022_jp(data: bytes) -> str:
    """The text in ISO-2022-JP. Python's codec lacks characters that many pages have, such as the digits in circles."""

    def utf8(found: re.Match[bytes]) -> bytes:
        return found[2].translate(_HIGH).decode(_JAPANESE[found[1]], "replace").encode()

    return _TO_ASCII.sub(b"", _RUN.sub(utf8, data)).decode("utf-8", "replace")


class Language(NamedTuple):
    """An ISO 639-1 code, "" if it is unknown, and a confidence from 0 to 1, with two digits.

    The confidence is the distance from the language's profile (resiliparse's rank) on a scale on which 1200, where
    results are usually false, is 0. It is no probability. It is 1 for a language that is found by its script.
    """

    code: str
    confidence: float


UNKNOWN = Language("", 0.0)


def language_tag(text: str | None) -> str | None:
    """The tag of a language in lower case (BCP 47), such as `en-us`; None if the text is none.

    >>> language_tag(" en_US "), language_tag("English")
    ('en-us', None)
    """
    tag = (text or "").strip().lower().replace("_", "-")
    return tag if _TAG.fullmatch(tag) else None


def has_letters(text: str) -> bool:
    """Whether a text has any letter."""
    return _LETTER.search(text) is not None


def detect_language(text: str) -> Language:
    """The language of the first 10,000 characters of `text`."""
    from resiliparse.parse.lang import detect_fast

    if not text.isascii() and (found := _by_script(text[:LOOKED_AT:_STEP])):
        return found
    if not has_letters(text):  # resiliparse gives a language for it
        return UNKNOWN
    code, rank = detect_fast(text[:LOOKED_AT], cutoff=_FARTHEST)
    if code == "unknown":
        return UNKNOWN
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
