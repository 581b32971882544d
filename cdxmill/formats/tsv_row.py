"""Rows of the tab-separated files that cdxmill writes: failures.tsv and .outputs.tsv.

A tab in a field is written as %09, LF as %0A, CR as %0D. If the field has one of these three, or %25, as text, its %
is written as %25. So every field is read back as it was.
"""

from __future__ import annotations

import re

_ESCAPED = {"\t": "%09", "\n": "%0A", "\r": "%0D", "%": "%25"}
_PLAIN = {escape: text for text, escape in _ESCAPED.items()}
_SPECIAL = re.compile("[\t\n\r]|%(?=09|0A|0D|25)")
_ESCAPE = re.compile("%(?:09|0A|0D|25)")


def format_row(fields: list[str]) -> bytes:
    r"""A row with its LF.

    >>> format_row(["a\tb", "100%", "%09", ""])
    b'a%09b\t100%\t%2509\t\n'
    """
    row = "\t".join(_SPECIAL.sub(lambda found: _ESCAPED[found[0]], text) for text in fields)
    return f"{row}\n".encode("utf-8", "surrogateescape")


def parse_row(row: bytes) -> list[str]:
    r"""The fields of a row.

    >>> parse_row(b'a%09b\t100%\t%2509\t\n')
    ['a\tb', '100%', '%09', '']
    """
    text = row.decode("utf-8", "surrogateescape").removesuffix("\n")
    return [_ESCAPE.sub(lambda found: _PLAIN[found[0]], field) for field in text.split("\t")]
