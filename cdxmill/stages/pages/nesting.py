"""How much of a page is parsed: lexbor looks at all open elements for each tag, so nested tags take the square of their number.

It also compares each attribute of a tag with all before it. A formatting element that is open when a block ends is opened again
in the next one, each time: of 4,000 of them with 4,000 blocks lexbor makes 8 million elements.
The tree is not known before it is built. So elements count as open too long rather than too short: an end tag closes an
element only if lexbor does so, too, whatever is around it. Where that is not certain (HTML within SVG), none is closed any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cdxmill.regex import regex
from cdxmill.stages import native
from cdxmill.stages.pages.html_tags import CDATA, FOREIGN, TEXT, Tag, read_tag, tags_of

MOST_STEPS = 1 << 26
"""Open elements, beyond FREE at each tag, that are looked at: 0.3 s in lexbor, some seconds in the search for the main text."""
MOST_COMPARED = 1 << 28
"""Attributes that are compared, at tags with more than FREE: half a second in lexbor."""
MOST_COPIES = 1 << 21
"""Formatting elements, beyond FREE at each tag, that may be opened again: lexbor needs some 400 bytes for each second one."""
FREE = 64
"""Elements that may be open at any tag, and attributes that a tag may have: those of usual pages."""
NESTED = "the page has too many nested elements or attributes; only its start was parsed"
_FEW_ATTRIBUTES = 1 << 14
"""A page with fewer attributes needs no look: all of them in one tag are less than MOST_COMPARED."""
_SEPARATORS = b"\t\n\v\f\r /\"'"
"""An attribute follows one of these."""
_SMALL = 1 << 14
"""A smaller page has few tags and attributes."""

_EMPTY = frozenset(
    b"area base br col embed hr img input link meta param source track wbr html head body".split()
)
"""Elements that have no end tag, or of which a page has one only."""
_CELLS = frozenset(b"td th tr tbody thead tfoot".split())
"""Parts of tables."""
_TABLES = frozenset((b"table", b"template"))
_INLINE = frozenset(b"option optgroup rt rp".split())
"""Elements that the end tag of any other one closes."""
_OPTIONAL = _CELLS | _INLINE | frozenset(b"p li dd dt".split())
"""Elements that the end tag of a block closes."""
_BLOCKS = _OPTIONAL - _INLINE | frozenset(
    b"address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    b"header hgroup listing main menu nav ol pre search section summary table ul".split()
)
_CLOSES = {
    **dict.fromkeys((b"td", b"th"), frozenset((b"td", b"th"))),
    **dict.fromkeys((b"tbody", b"thead", b"tfoot"), _CELLS),
    b"tr": frozenset((b"td", b"th", b"tr")),
    **dict.fromkeys((b"dd", b"dt"), frozenset((b"dd", b"dt"))),
    **dict.fromkeys((b"option", b"optgroup"), frozenset((b"option",))),
    b"p": frozenset((b"p",)),
    b"li": frozenset((b"li",)),
}
"""The innermost elements that a start tag closes."""
_BREAKS = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta nobr ol "
    b"p pre ruby s small span strong strike sub sup table tt u ul var font".split()
)
"""Tags that end an SVG."""
_WITH_HTML = frozenset(b"foreignobject desc title mi mo mn ms mtext annotation-xml".split())
"""Elements of SVG and MathML whose content is HTML."""
_TEXTS = frozenset((*TEXT, b"script", b"plaintext"))
_FORMATS = frozenset(b"b big code em font i s small strike strong tt u".split())
"""Elements that are opened again in the next block if a block is closed before them."""
_ODD = frozenset((*FOREIGN, b"select", b"frameset"))
"""Elements with rules of their own for the tags within them."""
_START = regex(rb"<[a-zA-Z]")
_FORMAT = regex(rb"<(?:%b)(?![a-zA-Z])" % b"|".join(sorted(_FORMATS)), re.I)


def parsed_size(html: bytes) -> int:
    """How many bytes of a page are parsed. `native/nesting.c` does the same.

    >>> parsed_size(b"<p>" * 10**5), parsed_size(b"<b></b>" * 10**5), parsed_size(b"<div>" * 10**5)
    (300000, 700000, 58240)
    """
    return python_parsed_size(html) if native.parsed_size is None else native.parsed_size(html)


def python_parsed_size(html: bytes) -> int:
    """As `parsed_size`, without compiled code."""
    if len(html) < _SMALL:
        return len(html)
    if _may_be_nested(html):
        return _size_by_elements(html)
    separators = len(html) - len(html.translate(None, _SEPARATORS))
    return len(html) if separators <= _FEW_ATTRIBUTES else _size_by_attributes(html)


def _may_be_nested(html: bytes) -> bool:
    """Whether the tags may take too many steps, by their numbers alone."""
    tags = html.count(b"<")
    if _most_steps(tags, tags) <= min(MOST_STEPS, MOST_COPIES):
        return False
    starts, formats = len(_START.findall(html)), len(_FORMAT.findall(html))
    return _most_steps(starts, tags) > MOST_STEPS or _most_steps(formats, tags) > MOST_COPIES


def _most_steps(some: int, tags: int) -> int:
    """The steps for all tags, if `some` of them open elements that nothing closes, and these come first."""
    return max(0, some - FREE) * (2 * tags - some - FREE) // 2


def _size_by_attributes(html: bytes) -> int:
    compared = 0
    for tag in tags_of(html):
        compared += _compared(tag)
        if compared > MOST_COMPARED:
            return tag.start
    return len(html)


def _size_by_elements(html: bytes) -> int:
    elements, work = _Elements(html), _Effort()
    for tag in tags_of(html):
        if not elements.take(tag):
            return _size_by_starts(html, tag.end, elements, work)
        if work.is_too_much(len(elements.names), elements.formats, tag):
            return tag.start
    return len(html)


def _compared(tag: Tag) -> int:
    """The attributes that lexbor compares with others."""
    number = tag.attributes
    return number * (number // 2) if number > FREE else 0


def _size_by_starts(html: bytes, position: int, elements: _Elements, work: _Effort) -> int:
    """As `parsed_size`, for the rest of a page: no element is closed any more, and no tag is a text."""
    after, depth, formats = position, len(elements.names), elements.formats
    for found in _START.finditer(html, position):
        depth += 1
        tag = read_tag(html, found.start()) if found.start() >= after else None
        if tag is not None:
            after, formats = tag.end, formats + (tag.name in _FORMATS)
        if work.is_too_much(depth, formats, tag):
            return found.start()
    return len(html)


class _Effort:
    """What lexbor has to do for the tags so far."""

    def __init__(self) -> None:
        self._steps = self._copies = self._compared = 0

    def is_too_much(self, depth: int, formats: int, tag: Tag | None) -> bool:
        """Add a tag, with the numbers of open elements and of formatting ones among them."""
        self._steps += max(0, depth - FREE)
        self._copies += max(0, formats - FREE)
        self._compared += 0 if tag is None else _compared(tag)
        is_deep = self._steps > MOST_STEPS or self._copies > MOST_COPIES
        return is_deep or self._compared > MOST_COMPARED


class _Elements:
    """The elements that are open."""

    def __init__(self, html: bytes) -> None:
        self._html = html
        self.names: list[bytes] = []
        self._odd = 0
        """How many of them are _ODD."""
        self._foreign = 0
        """How many of them are FOREIGN."""
        self.formats = 0
        """How many of them are _FORMATS."""

    def take(self, tag: Tag) -> bool:
        """Open or close elements. False if it is not certain what the tag and all after it do."""
        if self._odd and self._is_uncertain(tag):
            return False
        if tag.is_end:
            self._close(tag.name)
        elif tag.name not in _EMPTY or self._odd:
            self._add(tag)
        return True

    def _is_uncertain(self, tag: Tag) -> bool:
        name = tag.name
        if name == CDATA or (tag.is_end and name in FOREIGN and self.names[-1] != name):
            return True
        if self._foreign and (name in _BREAKS if not tag.is_end else name in (b"p", b"br")):
            return True
        if tag.is_end or not (name in _TEXTS or name in _WITH_HTML):
            return False
        following = self._html.find(b"<", tag.end)  # text alone is text by all rules
        return self._html[following : following + len(name) + 3].lower() != b"</" + name + b">"

    def _add(self, tag: Tag) -> None:
        name = tag.name
        is_empty = self._html[tag.end - 2] == 0x2F
        if is_empty and (name in FOREIGN or (self._foreign and b"select" not in self.names)):
            return
        if not self._odd:
            while self.names and self.names[-1] in _CLOSES.get(name, ()):
                self.names.pop()
        top = self.names[-1] if self.names else b""
        is_stray = (name in _CELLS or name == b"caption") and top != b"table" and top not in _CELLS
        if is_stray and not self._odd and _TABLES.isdisjoint(self.names):
            return
        is_lost = is_stray or name == b"frameset" or (name == b"table" and self._odd)
        self.names.append(b"" if is_lost else name)  # lexbor may skip it: then nothing closes it
        self._count([name], 1)

    def _count(self, names: Iterable[bytes], step: int) -> None:
        for name in names:
            self._odd += step * (name in _ODD)
            self._foreign += step * (name in FOREIGN)
            self.formats += step * (name in _FORMATS)

    def _close(self, name: bytes) -> None:
        is_part, is_held = name in _CELLS or name == b"table", False
        optional = _OPTIONAL if name in _BLOCKS else _INLINE
        for place in range(len(self.names) - 1, -1, -1):
            found = self.names[place]
            is_held = is_held and found not in (b"td", b"th")  # which close all within them
            if found == name and not is_held:
                self._count(self.names[place:], -1)
                del self.names[place:]
            if found == name or found in _TABLES or not (is_part or found in optional):
                return
            is_held = is_held or found not in optional
