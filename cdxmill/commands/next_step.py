"""What a user can do next with a cluster or CDX file that was just made."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

from cdxmill.errors import CdxmillError
from cdxmill.search.example_page import example_page

_SITE = re.compile(r"https?://[^/?#\s\x00-\x1f]+", re.I)


def next_lookup(path: str) -> str:
    """A line with a lookup that finds something in a cluster or CDX file; "" if there is no URL to look up.

    A failure is no error here: what was made is complete.
    """
    with suppress(CdxmillError, ValueError, RecursionError):
        site = _SITE.match(example_page(path) or "")
        if site is not None:
            return f"next: cdxmill lookup {shlex.quote(path)} {shlex.quote(f'{site[0]}/*')}"
    return ""


def next_commands(cluster: str) -> str:
    """The lines of `next_lookup`, and of the command that shows the pages of a cluster; "" if it has none."""
    found = next_lookup(cluster)
    return found and f"{found}\n  or: cdxmill serve {shlex.quote(cluster)}"
