"""Title, links and base of a page without a tree: they are those of lexbor's tree, or the page is left to lexbor."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cdxmill.stages import native
from cdxmill.stages.pages.nesting import NESTED
from cdxmill.stages.pages.parse_page import Page
from tests.material.sanitizers import run_sanitized

pytestmark = pytest.mark.skipif(native.outline is None, reason="nothing was compiled")
NAMES = [
    "a",
    "a",
    "a",
    "a",
    "a",
    "b",
    "b",
    "i",
    "font",
    "span",
    "p",
    "p",
    "div",
    "div",
    "li",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "td",
    "th",
    "tr",
    "table",
    "tbody",
    "caption",
    "col",
    "colgroup",
    "select",
    "option",
    "optgroup",
    "svg",
    "svg",
    "math",
    "g",
    "path",
    "title",
    "desc",
    "foreignObject",
    "template",
    "button",
    "button",
    "form",
    "input",
    "br",
    "img",
    "h1",
    "h2",
    "nobr",
    "body",
    "html",
    "head",
    "object",
    "marquee",
    "area",
    "base",
    "noscript",
    "script",
    "style",
    "textarea",
    "iframe",
    "pre",
    "x-y",
    "rt",
    "ruby",
    "hr",
    "label",
    "address",
    "frameset",
    "image",
    "center",
    "applet",
    "link",
    "meta",
    "summary",
    "mi",
    "xmp",
]
TEXTS = ["text ", "&amp;x", " ", "<!-- c -->", "<![CDATA[>", "]]>", "<br>", "<img src=x>"]
STARTS = ["<!doctype html>", "", "<head>", "<body>", "<title>T</title>"]
CHECK = """
import sys
import _native as native
for text in map(bytes.fromhex, sys.argv[1:]):
    for start in range(0, len(text), 7):
        for only_title in (0, 1):
            native.outline(text[: len(text) - start], only_title, repr)
        native.parsed_size(text[: len(text) - start])
"""


class Writer:
    """Writes random pages: most elements are nested well, and all links differ."""

    def __init__(self, seed: int) -> None:
        self.rng, self._number = random.Random(seed), 0

    def start(self, name: str) -> str:
        self._number += 1
        more = self.rng.choice(["", "", "", " x=y", ' c="d e"', "/", " /"])
        if name in ("a", "area", "base") and self.rng.random() < 0.9:
            more = f" href=/{self._number}{more}"
        return f"<{name}{more}>"

    def nested(self, depth: int) -> str:
        return "".join(self._part(depth) for _ in range(self.rng.randrange(4)))

    def _part(self, depth: int) -> str:
        name, chance = self.rng.choice(NAMES), self.rng.random()
        if depth < 5 and chance < 0.75:
            return f"{self.start(name)}{self.nested(depth + 1)}</{name}>"
        if chance < 0.87:
            return self.rng.choice(TEXTS)
        return self.rng.choice([self.start(name), f"</{name}>"])

    def loose(self) -> str:
        names = [*self.rng.sample(NAMES, 6), "a"]
        tags = (self.start(self.rng.choice(names)), f"</{self.rng.choice(names)}>", "t", " ")
        return "".join(self.rng.choice(tags) for _ in range(self.rng.randrange(1, 14)))

    def page(self) -> bytes:
        text = self.loose() if self.rng.random() < 0.35 else self.rng.choice(STARTS) + self.nested(0)
        return text.encode()


def found_in(page: Page) -> tuple[str, list[str | None], str]:
    return page.title, page.hrefs, page.base.url


def with_tree(html: bytes, url: str = "http://a.org/d/p") -> tuple[str, list[str | None], str]:
    """What the tree has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "outline", None)
        return found_in(Page(url, html))


def outlined(html: bytes) -> bool:
    """Whether a page needs no tree."""
    page = Page("http://a.org/d/p", html)
    assert found_in(page) == with_tree(html)
    return page._tree is None


@pytest.mark.parametrize("seed", range(8))
def test_random_pages_have_what_the_tree_has(seed: int) -> None:
    writer = Writer(seed)
    pages = [writer.page() for _ in range(1000)]
    without_tree = sum(map(outlined, pages))
    assert without_tree > 300


@pytest.mark.parametrize(
    "html",
    [
        b"<title> A &amp; B\n</title><p>x <a href=/1>1</a><ul><li><a href='/2?a=1&b=2'><b>2</b></a></ul>",
        b"<p><a href=/1><img src=x><span>1</span></a></div><b><a href=/2>2</b></a>"[:43],
        b"<a href=/1><div><h3>t</h3><p>p</p></div></a><table><tr><td><a href=/2>2</a><td>3</table>",
        b"<a href=/1><svg viewBox='0 0 1 1'><title>t</title><path d='M0'/><g></g></svg></a><title>T</title>",
        b"<a HREF='/1' href='/2'>1</a><A href=\"a&amp;b\">2</A><area href=/3><base href=/x/><base href=/y/>",
        b"<form><select><option>1<option>2</select><button><a href=/1>1</a></button></form>",
        b"<b><p>x</b><a href=/1>1</a><font size=1><div><a href=/2>2</a></div>",
        b"<a name=x>1</a><a href>2</a><a href=''>3</a><a href='&eacute;&lt=1&copy=2'>4</a><a href='a\rb'>5</a>",
        b"<title>&ouml; &#8211; &nope; \0</title><a href='x&#38;y'>1</a>",
        b"<b><i>x</b></i><a href=/1><div>1</div></a>",
        b"no markup",
    ],
)
def test_usual_pages_need_no_tree(html: bytes) -> None:
    assert outlined(html)


def test_usual_references_need_no_parser() -> None:
    assert native.outline is not None
    html = b"<title>A &amp; B & C</title><a href='/?a=1&b=2&amp;c'>1</a>"
    assert native.outline(html, 0, lambda whole: pytest.fail(repr(whole))) == (
        "A & B & C",
        None,
        ["/?a=1&b=2&c"],
    )


def test_a_character_reference_ends_where_the_tree_says() -> None:
    for byte in range(1, 128):
        outlined(b"<title>&amp%cx=</title><a href='?a&amp%cx=1'>1</a>" % (byte, byte))


@pytest.mark.parametrize(
    "html",
    [
        b"<p><a href=/1>x<div>y</div></a>",  # the parser makes two links of it
        b"<a href=/1>x<a href=/2>y</a>",
        b"<a name=x><p><a href=/1>y</a>",
        b"<table><tr><td><a href=/1>1</a></td></tr><a href=/2>2</a></table>",
        b"<table><a href=/1>1</a></table>",
        b"<p><table><tr><td>1</table><a href=/1><div>2</div></a>",
        b"<b><button><a href=/1><button>1</button></a></button></b>",
        b"<select><a href=/1>1</a></select>",
        b"<template><a href=/1>1</a></template>",
        b"<svg><a href=/1>1</a></svg>",
        b"<svg><title><b>t</b></title></svg>",
        b"<svg><![CDATA[<a href=/1>]]></svg>",
        b"<b><p>x</b><svg><title>t</title></svg>",
        b"<frameset><a href=/1>1</a>",
        b"<title>t",
        b"<table><caption><title>1</title><tr><title>2</title></table>",  # the parser moves the second before the table
        b"<p><object><a href=/1><div>1</div></a></object>",
    ],
)
def test_pages_that_need_the_tree(html: bytes) -> None:
    assert not outlined(html)


def test_a_page_with_too_many_nested_elements_has_the_links_of_its_start() -> None:
    html = b"<a href=/1>1</a>" + b"<div>" * 20_000 + b"<a href=/2>2</a>"
    page = Page("http://a.org/", html)
    assert (page.links, page.problem) == (["http://a.org/1"], NESTED)


def test_a_usual_page_with_many_tags_needs_no_tree() -> None:
    assert outlined(b"<div><a class='x' href=/1>1</a></div>" * 5000)


def test_no_byte_beyond_the_page_is_read(tmp_path: Path) -> None:
    writer = Writer(1)
    pages = [b"".join(writer.page() for _ in range(20)) for _ in range(5)]
    pages += [
        b"<a href='x&amp",
        b"<title>t</titl",
        b"<svg><title>t</",
        b"<a href",
        b"<div>" * 5000,
        b"<svg><a " + b"x " * 9000,
        b"<a href='&amp;" + b"x" * 4500 + b"'>",
    ]
    run_sanitized(CHECK, tmp_path, *(page.hex() for page in pages))
