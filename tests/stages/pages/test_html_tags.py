"""Tags are found as browsers find them: not in comments, texts or values, and up to their own `>`."""

from __future__ import annotations

import pytest

from cdxmill.stages.pages.html_tags import read_tag, start_tags, tags_of

TAGS: dict[str, list[str]] = {
    "": [],
    "a < b, <1>, <>, < p>": [],
    "<p>x</p>": ["<p>", "</p>"],
    "<P\n>x</P >": ["<P\n>", "</P >"],
    "<a b='>' c=\">\" d=>>": ["<a b='>' c=\">\" d=>"],
    "<a b='>": [],
    "<p><a b=c": ["<p>"],
    "<p": [],
    "</p": [],
    "<br/><i/ >": ["<br/>", "<i/ >"],
    "<!-- <p> --><b>": ["<b>"],
    "<!--><b>--><i>": ["<b>", "<i>"],
    "<!---><b>": ["<b>"],
    "<!-- <p> --!><b>": ["<b>"],
    "<b><!-- <p> -- >": ["<b>"],
    "<!doctype <p><b>": ["<b>"],
    "<?php <p> ?><b>": ["<b>"],
    "</ <p><b>": ["<b>"],
    "</><b>": ["<b>"],
    "<!><b>": ["<b>"],
    "<![CDATA[ <p> ]]><b>": ["<b>"],
    "<b><!p": ["<b>"],
    "<svg><![CDATA[ <p> ]]><g>": ["<svg>", "<![CDATA[", "<g>"],
    "<math><![CDATA[ > <p> ]]><g>": ["<math>", "<![CDATA[", "<g>"],
    "<svg></svg><![CDATA[ > <p> ]]>": ["<svg>", "</svg>", "<p>"],
    "<svg></g><![CDATA[ > <p> ]]>": ["<svg>", "</g>", "<![CDATA["],
    "<svg/><![CDATA[ > <p> ]]>": ["<svg/>", "<p>"],
    "<svg><math/><![CDATA[ > <p> ]]>": ["<svg>", "<math/>", "<![CDATA["],
    "<svg><![CDATA[ <p>": ["<svg>", "<![CDATA["],
    "<title><p></title><b>": ["<title>", "</title>", "<b>"],
    "<title><p></titles></TITLE >": ["<title>", "</TITLE >"],
    "<title><p>": ["<title>"],
    "<style><p></style><textarea><p></textarea>": ["<style>", "</style>", "<textarea>", "</textarea>"],
    "<svg/><style><p></style>": ["<svg/>", "<style>", "</style>"],
    "<svg><style><p></style>": ["<svg>", "<style>", "<p>", "</style>"],
    "<svg></svg><style><p></style>": ["<svg>", "</svg>", "<style>", "</style>"],
    "</style><p>": ["</style>", "<p>"],
    "<plaintext><p></plaintext>": ["<plaintext>"],
    "<script><p></script><b>": ["<script>", "</script>", "<b>"],
    "<script>'<p>'": ["<script>"],
    "<script><!-- </script><b>": ["<script>", "</script>", "<b>"],
    "<script><!-- <script></script><p></script><b>": ["<script>", "</script>", "<b>"],
    "<script><!-- <script> --> </script><b>": ["<script>", "</script>", "<b>"],
    "<script><script></script><b>": ["<script>", "</script>", "<b>"],
    "<script><!--> <script></script><b>": ["<script>", "</script>", "<b>"],
    "<script><!-- <script></script></script><b>": ["<script>", "</script>", "<b>"],
    "<script><!-- --><script></script><b>": ["<script>", "</script>", "<b>"],
    "<script><!-- <scripts></script><b>": ["<script>", "</script>", "<b>"],
}


@pytest.mark.parametrize("html", TAGS)
def test_the_tags_of_a_page(html: str) -> None:
    data = html.encode()
    found = list(tags_of(data))
    assert [data[tag.start : tag.end].decode() for tag in found] == TAGS[html]
    for tag in found:
        text = data[tag.start : tag.end]
        assert tag.is_end == text.startswith(b"</")
        assert tag.name == (text if b"[" in text else text.strip(b"</>").split()[0].strip(b"/").lower())


def test_an_element_in_a_script_that_is_only_a_text_is_none() -> None:
    page = b"<x:y><a-b><c\xc3\xa9><svg/><script>'<p>'</script><%b><%b></p>" % (b"n" * 60, b"m" * 61)
    assert list(start_tags(page)) == [b"x:y", b"a-b", b"svg", b"script", b"n" * 60]


@pytest.mark.parametrize(("size", "number"), [(64, 64), (65, 65), (200, 200)])
@pytest.mark.parametrize("value", [b"", b"=1", b"='a b > c'", b' = ">"'])
def test_the_attributes_of_long_tags_are_counted(size: int, number: int, value: bytes) -> None:
    attributes = b"".join(b" x%d%b" % (one, value) for one in range(size - 1))
    html = b"<p>" + b"<a%b z>" % attributes + b"x y z"
    tag = read_tag(html, 3)
    assert tag is not None
    assert (tag.attributes, html[tag.start : tag.start + 3], html[tag.end :]) == (number, b"<a ", b"x y z")
    assert [one.attributes for one in tags_of(html)] == [0, number], (
        "those of short tags are too few to matter"
    )


@pytest.mark.parametrize("html", [b"", b"p", b"<p x='", b"< p>"])
def test_what_is_no_whole_tag_is_none(html: bytes) -> None:
    assert read_tag(html, 0) is None
