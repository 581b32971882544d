"""Which elements of a page count as open: those that lexbor has open, or more; and the limits from which a page is cut."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from cdxmill.stages.pages import nesting
from cdxmill.stages.pages.nesting import python_parsed_size

FREE = 40
OPEN = {
    "": (0, 0),
    "<div>": (1, 0),
    "<div></div>": (0, 0),
    "<div></p>": (1, 0),
    "<br><img><hr>": (0, 0),
    "<p><p>": (1, 0),
    "<p><div>": (2, 0),
    "<li><li>": (1, 0),
    "<dd><dt>": (1, 0),
    "<option><optgroup>": (1, 0),
    "<div><p></div>": (0, 0),
    "<div><span></div>": (2, 0),
    "<div><option></div>": (0, 0),
    "<span><li></span>": (2, 0),
    "<span><rt></span>": (0, 0),
    "<p><span></p>": (2, 0),
    "<h1><p></h1>": (0, 0),
    "<h1></h2>": (1, 0),
    "<ul><li>x</ul>": (0, 0),
    "<select><option></select>": (0, 0),
    "<ruby><rt></ruby>": (0, 0),
    "<rt><rt></rt>": (1, 0),
    "<b></b>": (0, 0),
    "<b><p></b>": (2, 1),
    "<b><b><i></b>": (3, 3),
    "<td><td>": (0, 0),
    "<caption>": (0, 0),
    "<table></table>": (0, 0),
    "<table><td></table>": (0, 0),
    "<table><tr><td><tr>": (2, 0),
    "<table><tbody><tr><td><tbody>": (2, 0),
    "<table><caption>": (2, 0),
    "<table><b></table>": (2, 1),
    "<table><div></table>": (2, 0),
    "<table><tr><div></tr>": (3, 0),
    "<table><tr><td><div></td>": (2, 0),
    "<table><tr><td><div></tr>": (1, 0),
    "<table><tr><td><div></table>": (0, 0),
    "<table><tr><td><b></td>": (2, 0),
    "<table><tr><td><svg></td>": (2, 0),
    "<table><tr><td><svg></svg><b></td>": (2, 0),
    "<div><table></div>": (2, 0),
    "<script><b></script>": (0, 0),
    "<svg/>": (0, 0),
    "<svg>": (1, -1),
    "<svg><path/></svg>": (0, 0),
    "<svg><g></g></svg>": (0, 0),
    "<svg><g></svg>": (2, 0),
    "<svg><g/>": (1, -1),
    "<svg><td>": (2, -1),
    "<svg><link>": (2, -1),
    "<svg><br>": (1, 0),
    "<svg><b>": (1, 0),
    "<svg><p>": (1, 0),
    "<svg></p>": (1, 0),
    "<svg></br>": (1, 0),
    "<svg></i>": (1, -1),
    "<svg><title>x</title>": (1, -1),
    "<svg><desc>x</desc><g>": (2, -1),
    "<svg><desc>x<p></desc><g>": (3, 0),
    "<svg><desc><g/><g/>": (3, 0),
    "<svg><script>x</script>": (1, -1),
    "<svg><script><b></script>": (2, 1),
    "<svg><![CDATA[<b>]]>": (2, 1),
    "<![CDATA[<b>]]>": (0, 0),
    "<math><mi>x</mi>": (1, -1),
    "<math></svg>": (1, 0),
    "<select><div/>": (2, 0),
    "<select><g><svg/>": (2, 0),
    "<select><svg><g/>": (3, -1),
    "<select><table>": (2, 0),
    "<select><td>": (2, 0),
    "<select><table></table>": (2, 0),
    "<select><td></td>": (2, 0),
    "<template><td></td>": (2, 0),
    "<frameset></frameset>": (1, 0),
    "<frameset><div></div>": (1, 0),
    "<frameset><table></table>": (2, 0),
    "<table><div><td></td>": (3, 0),
    "<table><caption></caption>": (1, 0),
}
"""The numbers of open elements and of formatting ones after a page; -1 if the next of these makes all after it uncertain."""


def number_after(html: str, limit: str, tag: str) -> int:
    """How many elements are open: a page may have FREE of them, so fewer of those that follow are parsed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_SMALL", 0)
        patch.setattr(nesting, "FREE", FREE)
        for name in ("MOST_STEPS", "MOST_COPIES"):
            patch.setattr(nesting, name, 0 if name == limit else 1 << 40)
        size = python_parsed_size((html + tag * 2 * FREE).encode())
    return FREE - (size - len(html)) // len(tag)


def depth(html: str) -> int:
    """How deep lexbor is in its tree at the end of a page, without the `tbody` elements that it adds."""
    node = LexborHTMLParser(f"{html}<u->".encode()).css_first("u-")
    found = -4
    while node is not None:
        found, node = found + (node.tag != "tbody" or "<tbody" in html), node.parent
    return found


@pytest.mark.parametrize("html", OPEN)
def test_the_elements_that_are_open(html: str) -> None:
    counted = number_after(html, "MOST_STEPS", "<u->")
    assert (counted, number_after(html, "MOST_COPIES", "<b>")) == OPEN[html]
    may_be_text = "<desc>x<p>" in html or "<desc><" in html
    assert counted + may_be_text >= depth(html), "an element that may be a text does not count"


@pytest.mark.parametrize(
    ("most", "parsed"), [(0, 2), (1, 3), (2, 3), (3, 4), (5, 4), (6, 5), (9, 5), (28, 9)]
)
@pytest.mark.parametrize(("limit", "tag"), [("MOST_STEPS", b"<div>"), ("MOST_COPIES", b"<b>")])
@pytest.mark.parametrize("start", [b"", b"<svg></p>"])
def test_the_steps_beyond_the_free_ones_are_summed_up(
    limit: str, tag: bytes, start: bytes, most: int, parsed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `</p>` in an SVG no element is closed any more. The SVG is one of those that are open."""
    for name, value in (("_SMALL", 0), ("FREE", 2), (limit, most)):
        monkeypatch.setattr(nesting, name, value)
    size = python_parsed_size(start + tag * 9)
    assert (size - len(start)) // len(tag) == parsed - (start != b"" and limit == "MOST_STEPS")


def tag_with(number: int) -> bytes:
    return b"<a %b>" % b" ".join(b"attribute%d=1" % one for one in range(number))


@pytest.mark.parametrize(("number", "free", "compared"), [(60, 60, 0), (60, 59, 1800), (61, 60, 1830)])
@pytest.mark.parametrize("start", [b"", b"<b></b>" * 99, b"<b></b>" * 99 + b"<svg></p>"])
def test_the_comparisons_of_many_attributes_are_summed_up(
    start: bytes, number: int, free: int, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared with those before it. A page with many elements is read in another way."""
    for name, value in (("_SMALL", 0), ("FREE", free), ("_FEW_ATTRIBUTES", 1)):
        monkeypatch.setattr(nesting, name, value)
    if start:
        monkeypatch.setattr(nesting, "MOST_COPIES", 0)
    html = start + tag_with(number) * 5
    for parsed in range(1, 5):
        monkeypatch.setattr(nesting, "MOST_COMPARED", compared * parsed)
        expected = len(start) + parsed * len(tag_with(number)) if compared else len(html)
        assert python_parsed_size(html) == expected
