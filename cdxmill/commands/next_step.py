"""What a user can do next with a cluster or CDX file that was just made."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from itertools import islice

from cdxmill.errors import CdxmillError
from cdxmill.formats.capture_fields import parse_fields
from cdxmill.search.open import open_searched
from cdxmill.stages.zipnum.find_lines import wanted_blocks

_SITE = re.compile(r"https?://[^/?#\s\x00-\x1f]+/", re.I)
_BLOCKS = 2
"""Blocks that are searched for a URL. The first lines of a cluster may have URLs such as dns:example.com."""


def next_lookup(path: str) -> str:
    """A line with a lookup that finds something in a cluster or CDX file; "" if there is no URL to look up.

    A failure is no error here: what was made is complete.
    """
    with suppress(CdxmillError):
        site = _first_site(path)
        if site is not None:
            return f"next: cdxmill lookup {shlex.quote(path)} {shlex.quote(f'{site}*')}"
    return ""


def _first_site(path: str) -> str | None:
    with open_searched(path) as opened:
        for block in islice(wanted_blocks(opened.reader.index, b"", b"\xff"), _BLOCKS):
            for line in opened.blocks.text_of(block, b"").between(b"", b"\xff")[0]:
                found = _SITE.match(_url(line))
                if found is not None:
                    return found[0]
    return None


def _url(line: bytes) -> str:
    try:
        return str(parse_fields(line).get("url", ""))
    except (ValueError, RecursionError):
        return ""
