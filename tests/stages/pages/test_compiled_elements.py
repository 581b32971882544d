"""The elements that compiled code finds in a page's bytes: a page is the same with and without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdxmill.stages import native
from cdxmill.stages.pages.parse_page import Page
from tests.material.sanitizers import run_sanitized

pytestmark = pytest.mark.skipif(native.elements_in is None, reason="nothing was compiled")
NAMES = (b"script", b"style", b"noscript", b"iframe", b"area", b"base")
PIECES = [
    b"<", b"<a href=/x>x</a>", b"<A HREF=y#z>y", b"<area href='//b.org/'>", b"<BASE href=/d/>", b"<Script>no</script>", b"<style>",
    b"</style>", b"<noscript><a href=n>n", b"</noscript>", b"<iframe>", b"<title> t", b"</title>", b"<svg>", b"</svg>", b"<head>", b"<body>",
    b"<template>", b"<p>text ", b"<!-- <base href=/c/> -->", b"<ba\0se href=/0/>", b"\xc3\xa9", b"\xff", b"<textarea>", b"<meta name=a content=b>",
]  # fmt: skip
PAGES = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
CHECK = """
import sys
import _native as native
texts = bytes.fromhex(sys.argv[1]), b"<bas", b"<", b""
for text in texts:
    for start in range(len(text)):
        native.elements_in(text[: len(text) - start], (b"base", b"script", b"a"))
"""


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
    title = (head and head.css_first("title")) or expected.tree.css_first("title:not(svg title)")
    assert found.title == (" ".join(title.text().split()) if title else "")


def test_no_byte_beyond_the_page_is_read(tmp_path: Path) -> None:
    run_sanitized(CHECK, tmp_path, b"".join(PIECES).hex())
