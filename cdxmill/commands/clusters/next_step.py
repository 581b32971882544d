"""What a user can do next with a cluster or CDX file: a page to look up, and the commands."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path

from cdxmill.errors import CdxmillError
from cdxmill.formats.lines.capture_fields import stored_fields
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.regex import regex
from cdxmill.search.lookup import open_searched
from cdxmill.search.query import PreparedQuery

_MOST = 3000
"""Lines that are looked at."""


def example_page(path: str) -> str | None:
    """The shortest URL of an HTML page among the first lines; without one, the first URL of the web, or None.

    Raises UsageError if there is no cluster or CDX file, InputError if it cannot be read.
    """
    pages: list[str] = []
    others: list[str] = []
    with open_searched(path) as opened:
        lists = PreparedQuery(Query()).answer(opened, KeyRange(b"", b"\xff"))
        for line in islice((line for lines in lists for line in lines), _MOST):
            fields = stored_fields(line)
            url = str(fields.get("url", ""))
            if url.startswith(("http://", "https://")):
                is_page = fields.get("mime") == "text/html" and fields.get("status") == "200"
                (pages if is_page else others).append(url)
    return min(pages, key=len) if pages else next(iter(others), None)


_SITE = regex(r"https?://[^/?#\s\x00-\x1f]+", re.I)


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
