"""What a user can do next with a cluster or CDX file that was just made."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

from cdxmill.errors import CdxmillError
from cdxmill.search.example_page import example_page

_SITE = re.compile(r"https?://[^/?#\s\x00-\x1f]+/", re.I)


def next_lookup(path: str, *, serve: bool = False) -> str:
    """A line with a lookup that finds something in a cluster or CDX file; "" if there is no URL to look up.

    With `serve`, the line also names the command that shows the pages. A failure is no error here: what was made is
    complete.
    """
    with suppress(CdxmillError, ValueError, RecursionError):
        site = _SITE.match(example_page(path) or "")
        if site is not None:
            place = shlex.quote(path)
            pages = f", or show its pages: cdxmill serve {place}" if serve else ""
            return f"next: cdxmill lookup {place} {shlex.quote(f'{site[0]}*')}{pages}"
    return ""
