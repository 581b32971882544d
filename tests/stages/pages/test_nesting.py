"""Pages with many nested elements: only what lexbor can parse in a short time is parsed, whatever the tags are."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from cdxmill.stages import native
from cdxmill.stages.pages import nesting
from cdxmill.stages.pages.nesting import NESTED, parsed_size, python_parsed_size
from cdxmill.stages.pages.parse_page import Page
from tests.material.sanitizers import run_sanitized

TAGS = re.findall(
    r"\w+",
    "div span b font p li ul dd dl td th tr tbody table caption select option optgroup svg math mi path title desc foreignObject "
    "template button a form link input br img frameset h1 ruby rt x body html head",
)
TOKENS = [
    *(f"<{name}>" for name in TAGS),
    *(f"</{name}>" for name in TAGS),
    *(
        "<svg/>",
        "<path/>",
        "<div/>",
        "x",
        '<i title="</div>">',
        "<font size=#>",
        "<!--",
        "-->",
        "<![CDATA[>",
        "]]>",
    ),
    *(
        "<textarea>",
        "</textarea>",
        "<script>",
        "</script>",
        "<style>",
        "</style>",
        "<noscript>",
        "</noscript>",
    ),
]
TIMES = 300
"""How often a pattern is repeated."""


def page_of(tokens: list[str], times: int) -> bytes:
    """A page of a pattern. Each # is another number, because equal elements of some kinds are opened three times at most."""
    text = "".join(tokens)
    return "".join(text.replace("#", str(number)) for number in range(times)).encode()


def depth(html: bytes) -> int:
    """How deep the tree of lexbor is."""
    root = LexborHTMLParser(html).root
    level, found = [root] if root else [], 0
    while level:
        level, found = [child for node in level for child in node.iter(include_text=False)], found + 1
    return found


@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=7))
@example(["<font size=#>", "<p>"])
@example(["<table>", "<font size=#>", "</table>", "x"])
@example(["<table>", "<tr>", "<font size=#>", "</tr>", "</table>", "x"])
@example(["<svg>", "<title>", "<div>"])
@example(["<svg>", "<svg>", "</svg>", "<title>", "<div>"])
@example(["<svg>", "<link>"])
@example(["<svg>", "<b>", "<path/>"])
@example(["<svg>", "<foreignObject>", "<path/>"])
@example(["<div>", "<svg>", "<foreignObject>", "<title>", "</div>", "</title>", "</svg>"])
@example(["<div>", "<!--", "</div>", "-->"])
@example(["<div>", "<svg>", "<![CDATA[>", "</div>", "]]>", "</svg>"])
@example(["<div>", '<i title="</div>">', "</i>"])
@example(["<td>", "<div>", "</td>"])
@example(["<select>", "<table>", "<td>", "</select>", "<div>", "</td>"])
@example(["<select>", "<title>", "</select>", "<div>", "<div>"])
@example(["<select>", "<input>", "<div/>"])
@example(["<div>", "<table>", "</div>"])
@example(["<span>", "<p>", "</span>", "</p>"])
@example(["<rt>", "<body>", "</body>"])
@example(["<rt>", "<caption>", "</caption>"])
@example(["<svg/>", "<path/>"])
@example(["<option>", "<optgroup>", "</option>"])
@example(["<math>", "<template>", "</math>", "<path/>", "<path/>"])
def test_a_pattern_whose_tree_gets_deeper_is_not_parsed_to_its_end(tokens: list[str]) -> None:
    html = page_of(tokens, TIMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_SMALL", 0)
        patch.setattr(nesting, "FREE", 20)
        patch.setattr(nesting, "MOST_STEPS", 2000)
        is_whole = python_parsed_size(html) == len(html)
    assert not (is_whole and depth(html) > TIMES // 3)


@pytest.mark.parametrize(
    "pattern",
    [
        "<div>",
        "<div></p>",
        "<ul><li>",
        "<b><div></b>",
        "<a><div>",
        "<svg><title><div>",
        "<font size=#><p>",
        "<table><td>",
    ],
)
def test_the_time_for_nested_elements_is_bounded(pattern: str) -> None:
    html = page_of([pattern], 100_000)
    assert parsed_size(html) < 200_000
    page = Page("http://a/", html)
    assert (page.problem, page.title, page.problem) == ("", "", NESTED)
    assert depth(html[: parsed_size(html)]) < 25_000


@pytest.mark.parametrize("times", [3000, 100_000])
def test_formatting_elements_that_are_opened_again_take_little_memory(times: int) -> None:
    """Of 3,000 of them and as many blocks, lexbor would make 4.5 million elements."""
    html = page_of(["<font size=#><p>"], times)
    parsed = html[: parsed_size(html)]
    assert parsed_size(html) == python_parsed_size(html)
    root = LexborHTMLParser(parsed).root
    assert root is not None
    assert len(list(root.traverse())) < 1_200_000
    usual = page_of(["<p><font size=#><b>x</b></font>"], times)
    assert parsed_size(usual) == len(usual)


@pytest.mark.parametrize(
    "pattern",
    [
        "<div><p>x<ul><li>1<li>2</ul></div>",
        "<table><tr><td>1<td><b>2</b><tr><th>3</th></tr></table>",
        "<table><tr><td><font size=#>1</td></tr></table>",
        "<p>x<br><img><hr>",
        "<dl><dt>1<dd>2</dl>",
        "<tr><td>a part of no table</td></tr>",
        "<select><option>1<option>2</select>",
        "<svg><title>x</title><path/><g><circle></circle></g></svg>",
        "<script>'<div>'</script><style>a<b{}</style><!-- <div> -->",
        "<p><![CDATA[ a comment, since it is in no SVG ]]></p>",
    ],
)
def test_a_usual_page_is_parsed_to_its_end(pattern: str) -> None:
    html = page_of([pattern], 12_000)  # if one element of it stayed open, this would be too deep
    assert parsed_size(html) == python_parsed_size(html) == len(html)


def test_random_tags_end_somewhere() -> None:
    rng = random.Random(5)
    for _ in range(20):
        html = page_of(rng.choices(TOKENS, k=3000), 20)
        assert 0 < parsed_size(html) <= len(html)


@pytest.mark.parametrize("tag", ["<b x='>y</b>'>", '<b x=a" y=">y</b>">', "<b><i>t</i>", "<div><td>"])
def test_end_tags_that_are_none_or_that_close_others_hide_no_nesting(tag: str) -> None:
    html = tag.encode() * 20_000
    assert parsed_size(html) < len(html)


@pytest.mark.parametrize(
    "html",
    [
        b"<table>" + b"<tr><td><a>text</a><td>2</td></tr>" * 1_000,
        b"<b>text of a page" * 2_100,
    ],
)
def test_a_page_that_cannot_be_too_deep_is_not_read_tag_by_tag(
    html: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nesting, "tags_of", None)
    assert python_parsed_size(html) == len(html)


def tag_with(attributes: int) -> bytes:
    return b"<a %s>x</a>" % b" ".join(b"x%d=1" % number for number in range(attributes))


def test_a_tag_with_too_many_attributes_ends_the_page() -> None:
    html = b"<a href=/1>1</a>" + tag_with(100_000) + b"<a href=/2>2</a>"
    page = Page("http://a/", html)
    assert (page.links, page.problem) == (["http://a/1"], NESTED)
    assert parsed_size(html) == python_parsed_size(html) == html.index(b"<a x0")


def test_many_tags_with_some_hundred_attributes_end_the_page_somewhere() -> None:
    html = tag_with(500) * 6000
    assert 0 < parsed_size(html) == python_parsed_size(html) < len(html) // 2
    usual = tag_with(60) * 1000
    assert parsed_size(usual) == python_parsed_size(usual) == len(usual)


@pytest.mark.skipif(native.parsed_size is None, reason="takes half a minute")
def test_tags_with_64_attributes_are_usual() -> None:
    """If they counted, this would be too many of them."""
    html = b"<br%b>" % (b" x" * 64) * (nesting.MOST_COMPARED // (64 * 32) + 9)
    assert parsed_size(html) == len(html)
    assert parsed_size(html.replace(b"<br", b"<br x")) < len(html)


def test_a_tag_with_many_attributes_in_what_may_be_a_text_counts() -> None:
    html = b"<svg><desc><b>" + tag_with(30_000)
    assert parsed_size(html) == python_parsed_size(html) < 20


@pytest.mark.parametrize(
    "tags",
    [
        b"<math></svg></math>",
        b"<svg><g></svg>",
        b"<svg><select></svg></select>",
        b"<svg><g><svg></svg></g></svg>",
        b"<svg><g></path></g></svg>",
    ],
)
def test_what_ends_another_foreign_element_counts_in_both_languages(tags: bytes) -> None:
    html = tags * 20_000
    assert parsed_size(html) == python_parsed_size(html)


@pytest.mark.parametrize("inside", [b"<!--", b"<script>", b"<p", b"</svg>"])
def test_what_is_a_text_in_a_cdata_section_hides_no_nesting(inside: bytes) -> None:
    html = b"<div>" * 9 + b"<svg><![CDATA[>%b]]>" % inside + b"<g>" * 30_000
    assert parsed_size(html) == python_parsed_size(html) < len(html)


@pytest.mark.parametrize(
    ("start", "is_whole"),
    [(b"", True), (b"<table>", True), (b"<svg>", False), (b"<select>", False), (b"<table><svg>", False)],
)
@pytest.mark.parametrize("cell", [b"<td>", b"<tr>", b"<caption>"])
def test_parts_of_a_table_count_where_they_may_be_nested(start: bytes, is_whole: bool, cell: bytes) -> None:
    html = start + cell * 30_000
    assert parsed_size(html) == python_parsed_size(html)
    assert cell == b"<caption>" or (parsed_size(html) == len(html)) == is_whole


@pytest.mark.parametrize(
    ("start", "element", "is_whole"),
    [
        (b"", b"<frameset></frameset>", False),
        (b"<table>", b"<frameset></frameset>", False),
        (b"<frameset>", b"<table></table>", False),
        (b"<frameset>", b"<td></td>", False),
        (b"", b"<table></table>", True),
        (b"<frameset>", b"<div></div>", True),
    ],
)
def test_what_a_frameset_changes_is_not_taken_for_closed(
    start: bytes, element: bytes, is_whole: bool
) -> None:
    html = start + element * 20_000
    assert (parsed_size(html) == len(html)) == is_whole


@pytest.mark.parametrize(
    ("start", "tags"),
    [
        (b"", b"<b><tr></b>"),
        (b"", b"<table><tr><td><template></table>"),
        (b"", b"<table><tr><li><div></tr>"),
        (b"<table>", b"<td><div></td>"),
    ],
)
def test_tables_that_are_closed_in_another_order_count_in_both_languages(start: bytes, tags: bytes) -> None:
    html = start + tags * 8000
    assert parsed_size(html) == python_parsed_size(html)


QUOTES = [
    '"',
    "'",
    "=",
    '="',
    "='",
    '=""',
    ">",
    '">',
    "'>",
    "/",
    " ",
    "\n",
    "<p ",
    "<p>",
    "x",
    " y=z",
    "<!--",
    "-->",
    "<script>",
]
"""Parts of which quoted values are made, that go on over `>`, or that only look like it."""


@pytest.mark.skipif(native.parsed_size is None, reason="nothing was compiled")
@given(
    start=st.lists(st.sampled_from(QUOTES), max_size=6),
    middle=st.lists(st.sampled_from(QUOTES), min_size=1, max_size=6),
    end=st.lists(st.sampled_from(QUOTES), max_size=4),
)
@example(["<p ", "x", '="'], ["<p>"], [])
@example(["<p ", "x", '="'], ["'", ">", " y=z"], ['"'])
@example(["<p "], [' a=">"'], [])
@example(["<p "], [" a= '>'"], [">"])
@example(["<p "], [' a=">" b=""'], [])
@example(["<p "], [" x=y" + "z" * 200], [">"])
@example(["<p>", "x" * 3000], [" y z"], [">"])
def test_no_quoted_value_hides_attributes(start: list[str], middle: list[str], end: list[str]) -> None:
    """30,000 attributes of one tag are too many, wherever it has `>` in its values."""
    assert native.parsed_size is not None
    html = "".join(start) + "".join(middle) * 30_000 + "".join(end) + "<p>x</p>"
    assert native.parsed_size(html.encode()) == python_parsed_size(html.encode())


@pytest.mark.skipif(native.parsed_size is None, reason="nothing was compiled")
@pytest.mark.parametrize("seed", range(25))
def test_compiled_code_finds_the_same_size(seed: int) -> None:
    assert native.parsed_size is not None
    rng = random.Random(seed)
    tokens = [*TOKENS, tag_with(120).decode(), "<p a=b/c='>' d>", "<p/", "<b x='"]
    html = page_of(rng.choices(tokens, k=rng.randrange(1, 9)), 1500)
    assert native.parsed_size(html) == python_parsed_size(html)


CHECK = """
import sys
import _native as native
pieces = [bytes.fromhex(piece) for piece in sys.argv[1:]]
for piece in pieces:
    for other in pieces:
        page = (piece + other) * (50_000 // len(piece + other))
        for cut in range(3):
            native.parsed_size(page[cut : len(page) - cut])
"""


def test_no_byte_beyond_a_large_page_is_read(tmp_path: Path) -> None:
    run_sanitized(CHECK, tmp_path, *(piece.encode().hex() for piece in (*QUOTES, *TOKENS[::7])))
