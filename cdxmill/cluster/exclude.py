"""exclude.txt beside a cluster: what must never come back. `remove --exclude` adds to it; `add`, `build` and `zipnum` respect it.

Each line is a URL or a pattern, as `lookup` takes it. Empty lines, and lines that start with #, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.formats.lines.lookup_query import EVERYTHING, TimeRange, ignored_part, narrowed
from cdxmill.stages.lines.drop_lines import LineRange, joined_ranges
from cdxmill.storage.location import Location

EXCLUDED = "exclude.txt"


def ranges_of(queries: Iterable[str], match_type: str | None, times: TimeRange) -> list[LineRange]:
    """The key ranges of URLs and patterns, sorted and without overlaps. Raises UsageError."""
    from cdxmill.formats.lines.lookup_query import key_range

    found = []
    for query in queries:
        if query == EVERYTHING and match_type is None:
            raise UsageError("*: would remove all lines; delete the directory of the cluster instead")
        try:
            keys = key_range(query, match_type)
            low, high, _ = narrowed(keys, times._replace(last=times.last and times.last + b":"))
            if ignored := match_type != "range" and ignored_part(query, match_type):
                raise ValueError(f"{ignored} would be ignored")
        except ValueError as error:
            raise UsageError(f"{query[:200]}: not a URL that can be removed ({error})") from None
        found.append(LineRange(low + b" " if keys.is_one_url and low == keys.low else low, high))
    return list(joined_ranges(sorted(found)))


def read_excluded(directory: Location) -> list[LineRange]:
    """The key ranges of the exclusion list in the directory of a cluster; none without it. Raises InputError for an invalid line."""
    path = directory / EXCLUDED
    if not directory.is_remote and not Path(directory.local).is_dir():
        return []
    try:
        text = path.read_bytes()
    except AbsentError:
        return []
    queries = []
    for number, line in enumerate(text.decode("utf-8", "surrogateescape").splitlines(), 1):
        query = line.strip()
        if query and not query.startswith("#"):
            try:
                queries += ranges_of([query], None, TimeRange())
            except UsageError as error:
                raise InputError(str(path), f"line {number}: {error}", "correct this line") from None
    return list(joined_ranges(sorted(queries)))
