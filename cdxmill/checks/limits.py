"""How many failures of one file are reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cdxmill.running.failures import Failure
from cdxmill.stages.zipnum.check_index import MOST_FAULTS


def limited(findings: Iterable[Failure]) -> Iterator[Failure]:
    """The first findings of each file, and the number of its other ones.

    >>> [finding.reason for finding in limited([Failure("a", None, "x")] * 22)][19:]
    ['x', '2 more errors']
    """
    seen = Counter[str]()
    for finding in findings:
        seen[finding.path] += 1
        if seen[finding.path] <= MOST_FAULTS:
            yield finding
    for path, number in seen.items():
        if number > MOST_FAULTS:
            yield Failure(path, None, f"{number - MOST_FAULTS} more errors")
