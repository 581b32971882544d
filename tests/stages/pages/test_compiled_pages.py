"""What compiled code tells of a page's bytes: what Python tells, and so the same page."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdxmill.stages import native
from cdxmill.stages.pages.decode_text import decode_text
from cdxmill.stages.pages.page_links import LinkBase
from cdxmill.stages.pages.parse_page import Page
from tests.material.sanitizers import run_sanitized

pytestmark = pytest.mark.skipif(native.odd_utf8 is None, reason="nothing was compiled")
NAMES = (b"script", b"style", b"noscript", b"iframe", b"area", b"base")
PIECES = [
    b"<", b"<a href=/x>x</a>", b"<A HREF=y#z>y", b"<area href='//b.org/'>", b"<BASE href=/d/>", b"<Script>no</script>", b"<style>",
    b"</style>", b"<noscript><a href=n>n", b"</noscript>", b"<iframe>", b"<title> t", b"</title>", b"<svg>", b"</svg>", b"<head>", b"<body>",
    b"<template>", b"<p>text ", b"<!-- <base href=/c/> -->", b"<ba\0se href=/0/>", b"\xc3\xa9", b"\xff", b"<textarea>", b"<meta name=a content=b>",
]  # fmt: skip
PAGES = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
CHARACTERS = [
    b"a" * 15, b"\xc3\xa9", b"\xe6\x97\xa5", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80",
    b"\xf0\x80\x80\x80", b"\x80", b"\xed\x9f\xbf", b"\xf4\x8f\xbf\xbf", b"\xe2\x82", b"\xf5", b"\xee\x80\x80",
]  # fmt: skip
CHECK = """
import sys
import _native as native
native.path_urls("http://a.org", ["/", "/x", "", "/ ", None, "/." * 9, "/x\\u00e9"])
texts = bytes.fromhex(sys.argv[1]), b"<bas", b"<", b""
for text in texts:
    for start in range(len(text)):
        native.odd_utf8(text[start:])
        native.odd_utf8(text[: len(text) - start])
        native.elements_in(text[: len(text) - start], (b"base", b"script", b"a"))
"""


@given(st.lists(st.sampled_from(CHARACTERS) | st.binary(max_size=4), max_size=9).map(b"".join))
def test_utf8_is_what_python_decodes(data: bytes) -> None:
    assert native.odd_utf8 is not None
    try:
        data.decode()
        at = -1
    except UnicodeDecodeError as error:
        at = error.start
    assert native.odd_utf8(data) == at
    assert decode_text(data) is not None


@given(PAGES | st.binary(max_size=20))
def test_elements_that_may_be_in_a_page(html: bytes) -> None:
    assert native.elements_in is not None
    assert native.elements_in(html, NAMES) == [name for name in NAMES if b"<" + name in html.lower()]


@given(PAGES)
@example(b"<svg><a xlink:href=/x>x</a><title>t</title></svg><a href=/y>")
@example(b"<body><title>late</title>")
def test_a_page_is_the_same_without_compiled_code(html: bytes) -> None:
    found, expected = Page("http://a.org/p", html), Page("http://a.org/p", html)
    expected._odd_elements = NAMES  # what it takes without compiled code
    assert (found.title, found.links, found.text) == (expected.title, expected.links, expected.text)
    head = expected.tree.head
    title = (head and head.css_first("title")) or expected.tree.css_first("title")
    assert found.title == (" ".join(title.text().split()) if title else "")


@given(
    st.sampled_from(
        ["http://a.org/d/p", "https://b\u00e9.org/", "dns:a.org", "", "http://[::1]/x", "HTTP://A.org/"]
    ),
    st.lists(
        st.none() | st.text("/.#\\\\ ab?;:h\u00e9\n\x7f\x00", max_size=6) | st.just("http://c.org/e#f"),
        max_size=6,
    ),
)
@example("http://a.org/", ["/\u00e9?", "/\u00e9;"])
@example("HTTP://A.org/", ["/\u00e9"])
@example("https://b\u00e9.org/", ["/x?", "/x;"])
def test_links_are_those_of_python(url: str, hrefs: list[str | None]) -> None:
    base = LinkBase(url)
    assert base.absolute(hrefs) == base.absolute_one_by_one(hrefs)


def test_wrong_arguments_are_refused() -> None:
    assert native.elements_in is not None
    assert native.path_urls is not None
    assert native.odd_utf8 is not None
    for wrong in ((b"", [b"a"]), ("", (b"a",)), (b"", ("a",)), (b"", (b"",)), (b"", (b"a",) * 17)):
        with pytest.raises(TypeError):
            native.elements_in(*wrong)
    with pytest.raises(TypeError):
        native.path_urls("http://a.org", ("/x",))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        native.odd_utf8("text")  # type: ignore[arg-type]


def test_no_byte_beyond_the_page_is_read(tmp_path: Path) -> None:
    run_sanitized(CHECK, tmp_path, b"".join([*CHARACTERS, *PIECES]).hex())
