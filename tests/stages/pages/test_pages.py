"""Pages: charset, text, links and the rest, on pages as they are found in archives."""

from __future__ import annotations

import gzip
import zlib

import brotli  # type: ignore[import-not-found, import-untyped, unused-ignore]
import pytest

from cdxmill.stages import native
from cdxmill.stages.pages import parse_page
from cdxmill.stages.pages.decode_text import decode_text
from cdxmill.stages.pages.parse_page import CUT, Page
from cdxmill.stages.records.decode_payload import decode_body

HTML = b"text/html"


@pytest.mark.parametrize(
    ("data", "content_type", "charset"),
    [
        (b"\xef\xbb\xbf<p>\xc3\xa9", b"text/html; charset=latin1", "utf-8"),
        ("<p>é".encode("utf-16"), HTML, "utf-16-le"),
        ("<p>Привет, мир".encode("cp1251"), b"text/html; charset=windows-1251", "cp1251"),
        ("<meta charset=koi8-r><p>Привет".encode("koi8-r"), HTML, "koi8-r"),
        ("<p>日本語".encode("shift_jis"), b"text/html;charset=x-sjis", "shift_jis"),
        ("<p>日本語".encode("iso2022_jp"), b"text/html; charset=ISO-2022-JP", "iso2022_jp"),
        ("<p>é".encode(), b"text/html; charset=iso-8859-1", "utf-8"),  # the declaration is wrong
        (
            "<p>caf\xe9 au lait, d\xe9j\xe0 vu, \xe0 bient\xf4t".encode("latin-1"),
            b"text/html; charset=utf-8",
            None,
        ),
        (b"<p>plain", b"text/html; charset=nonsense", "utf-8"),
        (b"\xef\xbb\xbf<p>\xc3\xa9 <meta charset=koi8-r>", b"text/html; charset=utf-16", "utf-8"),
        ("<p>é".encode("utf-16-be"), b"text/html; charset=utf-16be", "utf-16-be"),
        ("<p>é".encode("utf-16-le"), b"text/html; charset=unicode", "utf-16-le"),
        ("<meta charset=utf-16><p>é".encode(), HTML, "utf-8"),
        ("<p>é".encode("cp1252") + b"<meta charset=koi8-r>", b"text/html; charset=latin1", "cp1252"),
        ("<p>①髙㈱".encode("cp932"), b"text/html; charset=Shift_JIS", "shift_jis"),
        ("<p>€".encode("gb18030"), b"text/html; charset=gb2312", "gbk"),
        ("<p>똠방각하".encode("cp949"), b"text/html; charset=euc-kr", "euc_kr"),
        ("<p>привіт".encode("mac_cyrillic"), b"text/html; charset=x-mac-ukrainian", "mac-cyrillic"),
    ],
)
def test_charsets(data: bytes, content_type: bytes, charset: str | None) -> None:
    found = decode_text(data, content_type)
    found.utf8.decode()
    assert "\ufffd" not in found.utf8.decode()
    assert charset in (None, found.charset)


def test_characters_of_iso_2022_jp() -> None:
    data = b"<p>\x1b$B<R\x2d\x21\x1b(I123\x1b(J a\x1b(B</p>"
    assert decode_text(data, b"text/html; charset=iso-2022-jp").utf8.decode() == "<p>社①ｱｲｳ a</p>"


def test_one_wrong_byte_does_not_make_a_page_another_charset() -> None:
    text = "<p>Grüße aus Köln, schöne Tage"
    for content_type in (HTML, b"text/html; charset=utf-8"):
        found = decode_text(text.encode() + b"\xe9 and" + text.encode(), content_type)
        assert found == (f"{text}\ufffd and{text}".encode(), "utf-8")


def test_a_text_that_ends_within_a_character_keeps_its_charset() -> None:
    found = decode_text("<p>déjà vu é".encode()[:-1], b"text/html; charset=utf-8")
    assert found.utf8.decode() == "<p>déjà vu \ufffd"


def test_nested_encodings_are_undone_and_a_truncated_body_is_kept() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\n\r\n"
    assert decode_body(head, brotli.compress(gzip.compress(b"x" * 999))) == (b"x" * 999, "")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\n\r\n"
    data, problem = decode_body(head, zlib.compress(bytes(range(256)) * 99)[:-5])
    assert data.startswith(bytes(range(256)))
    assert "truncated" in problem


def test_a_bomb_stops_at_the_limit() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    data, problem = decode_body(head, gzip.compress(bytes(9_000_000)), 1_000_000)
    assert len(data) == 1_000_000
    assert "larger than" in problem


def test_a_page() -> None:
    page = Page(
        "http://a.com/x/y",
        b"<title> A\n page</title><meta name=Description content='about it'><script>no()</script>"
        b'<script type="application/ld+json">{"@type": "Thing"}</script><script type="application/ld+json">{</script>'
        b"<body><noscript><a href=/n>n</a></noscript><p>one<p>two<a href=z#f>three</a><style>p {}</style>",
    )
    assert (page.title, page.text) == ("A page", "one two three")
    assert page.links == ["http://a.com/n", "http://a.com/x/z"]  # whatever was asked for first
    assert page.metas == {"description": "about it"}
    assert (page.json_ld, page.json_ld_errors) == ([{"@type": "Thing"}], 1)
    assert page.tags["p"] == 2
    assert page.problem == ""


@pytest.mark.parametrize(("more", "problem"), [(0, ""), (-1, CUT)])
def test_a_page_has_a_largest_size(more: int, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    html = b"<p>" + b"word " * 99
    monkeypatch.setattr(parse_page, "MAX_HTML", len(html) + more)
    page = Page("http://a.com/", html)
    assert (page.problem, page.html) == (problem, html[: len(html) + more])


@pytest.mark.parametrize(
    "data", [b"", b"<frameset><frame src=a></frameset>", b"\xff\xfe\x00", b"<" * 9999, b"<svg><title>"]
)
def test_odd_pages_do_no_harm(data: bytes) -> None:
    page = Page("", data)
    assert (page.links, page.metas, page.json_ld, page.language.code) == ([], {}, [], "")
    assert isinstance(page.text + page.title, str)


def test_languages() -> None:
    german = "<p>Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller staatlichen Gewalt."
    language = Page("", german.encode()).language
    assert language.code == "de"
    assert 0.2 < language.confidence <= 1
    assert language.confidence == round(language.confidence, 2)


def test_the_title_of_a_drawing_is_not_that_of_the_page() -> None:
    drawing = b"<p><svg><title>s</title></svg>"
    assert [Page("", drawing + more).title for more in (b"", b"<title>t</title>")] == ["", "t"]


def test_a_link_of_svg_without_href_is_no_link() -> None:
    page = Page(
        "http://a.com/", b'<svg><a xlink:href="/x">x</a></svg><svg><a href="/y" xlink:href="/z">y</a></svg>'
    )
    assert page.links == ["http://a.com/y"]


PAGE = (
    b"<title>T</title><base href='/d/'><meta name=a content><meta name=b content=x>"
    b"<p>one<p>two<script>no</script><a href=c>three</a><area href=e>"
)


def test_what_is_asked_of_a_page_first_does_not_change_the_rest() -> None:
    page, other = Page("http://a/", PAGE), Page("http://a/", PAGE)
    assert page.tree is page.tree, "it is parsed once"
    assert page.text_lines == "T\none\ntwo three"
    assert page.text == other.text
    assert other.text_lines == page.text_lines
    assert page.metas == other.metas == {"a": "", "b": "x"}


@pytest.mark.parametrize("name", ["outline", "elements_in"])
def test_a_page_is_read_without_compiled_code_as_with_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, name, None)
    page = Page("http://a/", PAGE)
    assert (page.title, page.links) == ("T", ["http://a/d/c", "http://a/d/e"])
    assert Page("http://a/", b"<a href=c>").links == ["http://a/c"]
    assert Page("http://a/", b"<body><svg><title>x</title></svg>").title == ""
    assert page.text_lines == "T\none\ntwo three"
