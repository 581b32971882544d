"""The language of a text, by resiliparse."""

from __future__ import annotations

import re
from typing import NamedTuple

LOOKED_AT = 10_000
"""Characters at the start of a text. More make the detection slower, but hardly better."""
_FARTHEST = 1200
"""The rank from which resiliparse's results are usually false."""

_LETTER = re.compile(r"[^\W\d_]")


class Language(NamedTuple):
    """An ISO 639-1 code, "" if it is unknown, and a confidence from 0 to 1, with two digits.

    The confidence is the distance from the language's profile (resiliparse's rank) on a scale on which 1200, where
    results are usually false, is 0. It is no probability.
    """

    code: str
    confidence: float


_UNKNOWN = Language("", 0.0)


def detect_language(text: str) -> Language:
    """The language of the first 10,000 characters of `text`."""
    from resiliparse.parse.lang import detect_fast

    if _LETTER.search(text) is None:  # resiliparse gives a language for it
        return _UNKNOWN
    code, rank = detect_fast(text[:LOOKED_AT], cutoff=_FARTHEST)
    if code == "unknown":
        return _UNKNOWN
    return Language(code, round(1 - rank / _FARTHEST, 2))
