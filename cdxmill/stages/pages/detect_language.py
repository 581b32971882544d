"""The language of a text: by its script, or else by resiliparse."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

LOOKED_AT = 10_000
"""Characters at the start of a text. More make the detection slower, but hardly better."""
_FARTHEST = 1200
"""The rank from which resiliparse's results are usually false."""

_STEP = 8
"""Every eighth character is enough to find the script of a text."""
_LEAST = 0.1
"""The share of Chinese, Japanese or Korean characters from which a text has one of these languages. Pages about computers
have many English words, and resiliparse then finds another language in every third Japanese text."""
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+")
_LETTER = re.compile(r"[^\W\d_]")


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
