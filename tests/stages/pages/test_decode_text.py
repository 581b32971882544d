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


@pytest.mark.parametrize(
    ("data", "declared", "text", "charset"),
    [
        ("Ávila".encode("latin-1"), b"text/html; charset=iso-8859-1", "Ávila", "cp1252"),
        ("Привет".encode("cp1251"), b"text/html; charset=windows-1251", "Привет", "cp1251"),
        (b"<p>\xc3\xa9\xc3", b"text/html; charset=utf-8", "<p>é\ufffd", "utf-8"),
        (b"<p>\xe4\xb8\xad\xe4\xb8", b"text/html; charset=utf-8", "<p>中\ufffd", "utf-8"),
        (b"Avila", b"text/html; charset=iso-8859-1", "Avila", "utf-8"),
        (b"\xef\xbb\xbf\xc3\xa9", b"text/html; charset=iso-8859-1", "é", "utf-8"),
    ],
)
def test_a_declared_charset_is_used_from_the_first_byte_that_is_no_utf8(
    data: bytes, declared: bytes, text: str, charset: str
) -> None:
    assert decode_text(data, declared) == (text.encode(), charset)
