"""A text without a declared charset is UTF-8 if it has more characters of UTF-8 than bytes that are none."""

from __future__ import annotations

import pytest

from cdxmill.stages.pages.decode_text import decode_text, language_tag, markup_of

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


JAPANESE = b"\x1b$B<R\x1b(B"
LATIN = b"text/html; charset=latin1"
ISO = b"text/html; charset=iso-2022-jp"


@pytest.mark.parametrize(
    ("data", "declared", "text", "charset"),
    [
        (JAPANESE, None, "社", "iso2022_jp"),
        (JAPANESE, ISO, "社", "iso2022_jp"),
        (JAPANESE, LATIN, JAPANESE.decode(), "utf-8"),
        (JAPANESE + "é".encode(), None, JAPANESE.decode() + "é", "utf-8"),
        (JAPANESE + "é".encode(), ISO, JAPANESE.decode() + "é", "utf-8"),
        (b"\xff" + JAPANESE, ISO, "\ufffd社", "iso2022_jp"),
        (b"\x1b[31mred", None, "\x1b[31mred", "utf-8"),
        (b"\x1b[31mred", LATIN, "\x1b[31mred", "utf-8"),
        (b"\x1b[31mred", ISO, "\x1b[31mred", "iso2022_jp"),
        (b"plain", ISO, "plain", "utf-8"),
        (b"a\0b", b"text/html; charset=utf-16", "a\ufffd", "utf-16-le"),
        (b"x" * 511 + b"\0", b"text/html; charset=utf-16", "\u7878" * 255 + "x", "utf-16-le"),
        (b"x" * 512 + b"\0", b"text/html; charset=utf-16", "x" * 512 + "\0", "utf-8"),
        (b"a\0b", LATIN, "a\0b", "utf-8"),
        (b"a\0b", None, "a\0b", "utf-8"),
        (b"caf\xe9" + b"x" * 3, b"charset=utf-8", "caf\ufffdxxx", "utf-8"),
        (b"caf\xe9" + b"x" * 4, b"charset=utf-8", "caféxxxx", "cp1252"),
        (b"\xe9", LATIN, "é", "cp1252"),
        (b"\xe9", b"charset='latin1'", "é", "cp1252"),
        (b"<meta charset=koi8-r>\xe9", None, "<meta charset=koi8-r>И", "koi8-r"),
        (b" " * 1002 + b"<meta charset=koi8-r>\xe9", None, " " * 1002 + "<meta charset=koi8-r>И", "koi8-r"),
        (b"<?xml encoding='koi8-r'?>\xe9", None, "<?xml encoding='koi8-r'?>И", "koi8-r"),
        (b"\xe9", b"charset=x-no-such", "é", "cp1252"),
    ],
    ids=range(23),
)
def test_the_charset_of_a_page(data: bytes, declared: bytes | None, text: str, charset: str) -> None:
    found = decode_text(data, declared)
    assert (found.utf8.decode(), found.charset) == (text, charset)
    assert markup_of(data, declared) == (found.utf8 if charset in ("utf-16-le", "iso2022_jp") else data)


def test_a_text_is_cut_before_it_is_decoded() -> None:
    assert decode_text("éé".encode(), None, 3).utf8.decode() == "é\ufffd"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (" EN_us ", "en-us"),
        ("zh-Hant-TW", "zh-hant-tw"),
        ("deu", "deu"),
        ("e", None),
        ("engl", None),
        ("en-", None),
        ("en, de", None),
        ("", None),
        (None, None),
    ],
)
def test_the_tag_of_a_language(text: str | None, tag: str | None) -> None:
    assert language_tag(text) == tag


@pytest.mark.parametrize(
    ("declared", "charset"),
    [("windows-1252", "cp1252"), ("windows-1251", "cp1251"), ("koi8-r", "koi8-r"), ("utf-8", "utf-8"), ("x", "utf-8")],
)  # fmt: skip
@pytest.mark.parametrize("is_in_page", [True, False])
def test_a_charset_is_what_is_declared_if_not_all_is_utf8(
    declared: str, charset: str, is_in_page: bool
) -> None:
    """Only that of UTF-8 has to be true, and here most of the text is."""
    label = declared.encode()
    for odd, found in ((b"", "utf-8"), (b"\xff", charset)):
        data = odd + FRENCH.encode() * 3
        if is_in_page:
            assert decode_text(b"<meta charset=%b>" % label + data, b"text/html").charset == found
        else:
            assert decode_text(data, b"text/html; charset=" + label).charset == found
