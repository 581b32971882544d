"""A page of a cluster that is shown to the user as an example."""

from __future__ import annotations

from itertools import islice

from cdxmill.cluster.reader import open_cluster
from cdxmill.formats.capture_fields import stored_fields
from cdxmill.formats.lookup_query import KeyRange
from cdxmill.search.query import OpenCluster, PreparedQuery, Query

_MOST = 3000
"""Lines that are looked at."""


def example_page(cluster: str) -> str | None:
    """The shortest URL of an HTML page among the first lines of a cluster; without one, the first URL, or None.

    Raises UsageError if there is no cluster, InputError if it cannot be read.
    """
    pages: list[str] = []
    others: list[str] = []
    with open_cluster(cluster) as reader:
        lists = PreparedQuery(Query()).answer(OpenCluster.of(reader), KeyRange(b"", b"\xff"))
        for line in islice((line for lines in lists for line in lines), _MOST):
            fields = stored_fields(line)
            url = str(fields.get("url", ""))
            if url.startswith(("http://", "https://")):
                is_page = fields.get("mime") == "text/html" and fields.get("status") == "200"
                (pages if is_page else others).append(url)
    return min(pages, key=len) if pages else next(iter(others), None)
