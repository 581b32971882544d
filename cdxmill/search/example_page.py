"""A page of a cluster or CDX file that is shown to the user as an example."""

from __future__ import annotations

from itertools import islice

from cdxmill.formats.lines.capture_fields import stored_fields
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.open import open_searched
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
