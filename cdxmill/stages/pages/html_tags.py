"""The tags of a page, found without a tree: those that a parser adds, like `<tbody>`, are missing. `native/tags.c` does the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cdxmill.regex import regex

MAX_TAG = 60
"""Bytes of the longest name that is counted."""

_MARKUP = regex(rb"<(?:(/?)([a-zA-Z][^\t\n\f\r />]*+)(?=[\t\n\f\r />])|!--|!\[CDATA\[|/(?=.)|[!?])", re.S)
_IN_TAG = (
    rb"[^\t\n\f\r />][^\t\n\f\r />=]*+"
    rb"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\t\n\f\r >]*+))?+"
)
_ATTRIBUTE = regex(_IN_TAG)
_REST = regex(rb"(?:[\t\n\f\r /]++|%b)*+>" % _IN_TAG)
"""From the end of a tag's name to its `>`: attributes with their values."""
_LONG = 128
"""Bytes of a tag whose attributes are counted: it may have more than 64 of them."""
_COMMENT = regex(rb"-?>|.*?--!?>", re.S)
_BOGUS = regex(rb"[^>]*>")
_CDATA = regex(rb".*?\]\]>", re.S)
_SCRIPT = regex(rb"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.I)
TEXT = {
    name: regex(rb"</%b(?=[\t\n\f\r />])" % name, re.I)
    for name in (b"title", b"textarea", b"style", b"xmp", b"iframe", b"noembed", b"noframes")
}
"""Elements that contain only text, and where they end."""
_NAME = regex(rb"[a-z0-9:._-]{1,%d}" % MAX_TAG)
FOREIGN = (b"svg", b"math")
CDATA = b"<![CDATA["


def start_tags(html: bytes) -> Iterator[bytes]:
    """The names of the start tags, in lower case. Names with unusual bytes are skipped: they are of no HTML.

    >>> list(start_tags(b'<P title="<i>"><!-- <b> --><br/><script>"<u>"</script>'))
    [b'p', b'br', b'script']
    """
    return (tag.name for tag in tags_of(html) if not tag.is_end and _NAME.fullmatch(tag.name))


class Tag(NamedTuple):
    """A tag or the start of a CDATA section: its place, its name in lower case, or CDATA.

    `attributes` is their number; 0 for a short tag.
    """

    start: int
    end: int
    name: bytes
    is_end: bool
    attributes: int = 0


def tags_of(html: bytes) -> Iterator[Tag]:
    """All tags, as the tokenizer of the HTML standard finds them."""
    in_foreign = False
    found = _MARKUP.search(html)
    while found is not None:
        pos: int | None = found.end()
        slash, name = found.groups()
        if name is None:
            if in_foreign and found[0] == CDATA:
                yield Tag(found.start(), found.end(), CDATA, is_end=False)
            end = _after_other(html, found, in_foreign)
            pos = end
        else:
            tag = _tag_of(html, found)
            if tag is None:
                return
            yield tag
            pos, name = tag.end, tag.name
            if slash:
                in_foreign = in_foreign and name not in FOREIGN
            else:
                in_foreign = in_foreign or (name in FOREIGN and html[pos - 2] != 0x2F)
                if not in_foreign:
                    pos = _after_text(html, name, pos)
        if pos is None:
            return
        found = _MARKUP.search(html, pos)


def read_tag(html: bytes, start: int) -> Tag | None:
    """The tag that starts at `start` with its name; None if it does not end."""
    found = _MARKUP.match(html, start)
    return None if found is None else _tag_of(html, found)


def _tag_of(html: bytes, found: re.Match[bytes]) -> Tag | None:
    slash, name = found.groups()
    rest = _REST.match(html, found.end())
    if rest is None:
        return None
    attributes = 0
    if rest.end() - rest.start() >= _LONG:
        attributes = sum(1 for _ in _ATTRIBUTE.finditer(html, found.end(), rest.end() - 1))
    return Tag(found.start(), rest.end(), name.lower(), bool(slash), attributes)


def _after_other(html: bytes, found: re.Match[bytes], in_foreign: bool) -> int | None:
    """The end of a comment or the like; None if it does not end."""
    start, pos = found[0], found.end()
    if start == b"<!--":
        pattern = _COMMENT
    elif start == CDATA and in_foreign:
        pattern = _CDATA
    else:
        pattern, pos = _BOGUS, found.start() + 2
    end = pattern.match(html, pos)
    return None if end is None else end.end()


def _after_text(html: bytes, name: bytes, pos: int) -> int | None:
    """The position of the end tag of an element that contains only text; `pos` if it contains elements, too."""
    if name == b"plaintext":
        return None
    if name == b"script":
        return _script_end(html, pos)
    if name not in TEXT:
        return pos
    end = TEXT[name].search(html, pos)
    return None if end is None else end.start()


def _script_end(html: bytes, pos: int) -> int | None:
    """Where a script ends: not within `<!-- <script> ... </script> -->`."""
    in_comment = in_script = False
    while (found := _SCRIPT.search(html, pos)) is not None:
        pos = found.end()
        if found[0] == b"<!--":
            in_comment, pos = True, found.start() + 2  # `<!-->` is a whole comment
        elif found[0] == b"-->":
            in_comment = in_script = False
        elif not found[1]:
            in_script = in_comment
        elif in_script:
            in_script = False
        else:
            return found.start()
    return None
