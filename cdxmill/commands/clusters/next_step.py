"""What a user can do next with a cluster or CDX file that was just made."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from cdxmill.errors import CdxmillError
from cdxmill.search.example_page import example_page

_SITE = re.compile(r"https?://[^/?#\s\x00-\x1f]+", re.I)


def as_typed() -> str:
    """The word that starts cdxmill again: `cdxmill`, or, if the PATH has none, the path with which it was started."""
    is_script = Path(sys.argv[0]).name == "cdxmill"
    return shlex.quote(sys.argv[0]) if is_script and shutil.which("cdxmill") is None else "cdxmill"


def next_lookup(path: str) -> str:
    """A line with a lookup that finds something in a cluster or CDX file; "" if there is no URL to look up.

    A failure is no error here: what was made is complete.
    """
    with suppress(CdxmillError, ValueError, RecursionError):
        site = _SITE.match(example_page(path) or "")
        if site is not None:
            return f"next: {as_typed()} lookup {shlex.quote(path)} {shlex.quote(f'{site[0]}/*')}"
    return ""


def next_commands(cluster: str) -> str:
    """The lines of `next_lookup`, and of the command that shows the pages of a cluster; "" if it has none."""
    found = next_lookup(cluster)
    return found and f"{found}\n  or: {as_typed()} serve {shlex.quote(cluster)}"
