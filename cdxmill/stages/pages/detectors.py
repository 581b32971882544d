"""The detectors of languages: that of cdxmill, which is fast, or py3langid, which is right more often (docs/scan-quality.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdxmill.stages.pages.decode_text import Language

FAST, PY3LANGID = "fast", "py3langid"
_chosen: ContextVar[str] = ContextVar("detector", default=FAST)


@contextmanager
def detecting(name: str) -> Iterator[None]:
    """Detect languages with this detector, in this thread."""
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def detect_language(text: str) -> Language:
    """The language of the first 10,000 characters of `text`. The confidence of py3langid is a probability."""
    from cdxmill.stages.pages import decode_text  # slow to import

    if _chosen.get() == FAST:
        return decode_text.detect_language(text)
    if not decode_text.has_letters(text):
        return decode_text.UNKNOWN
    code, probability = _py3langid().classify(text[: decode_text.LOOKED_AT])
    return decode_text.Language(code, round(float(probability), 2))


def known_languages() -> set[str]:
    """The codes that the detector gives."""
    if _chosen.get() == PY3LANGID:
        return set(_py3langid().nb_classes)
    from resiliparse.parse.lang import supported_langs

    return {*supported_langs(), "ja", "ko", "zh"}


@lru_cache(maxsize=1)
def _py3langid() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped, unused-ignore]

    return LanguageIdentifier.from_pickled_model(MODEL_FILE, norm_probs=True)
