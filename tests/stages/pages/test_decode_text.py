"""A text without a declared charset is UTF-8 if it has more characters of UTF-8 than bytes that are none."""

from __future__ import annotations

import pytest

from cdxmill.stages.pages.decode_text import decode_text

FRENCH = "Les élèves étaient très fâchés à côté "
ODD = 9
"""Letters of it that are not ASCII."""


@pytest.mark.parametrize(
    ("valid", "charset"),
    [(0, "cp1252"), (ODD - 1, "cp1252"), (ODD, "cp1252"), (ODD + 1, "utf-8"), (40, "utf-8")],
)
@pytest.mark.parametrize("times", [1, 3])
def test_what_is_mostly_utf8_is_utf8(times: int, valid: int, charset: str) -> None:
    data = (FRENCH.encode("latin-1") + "é".encode() * valid) * times
    assert decode_text(data).charset == charset
