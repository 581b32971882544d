"""Findings: what is wrong with a cluster, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cdxmill.stages.zipnum.check_index import MOST_FAULTS


class Finding(NamedTuple):
    """Something wrong with the file at a path or URL, at an offset or, with None, as a whole."""

    path: str
    offset: int | None
    reason: str
    hint: str = ""


def limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The first findings of each file, and the number of its other ones.

    >>> [finding.reason for finding in limited([Finding("a", None, "x")] * 22)][19:]
    ['x', '2 more faults']
    """
    seen = Counter[str]()
    for finding in findings:
        seen[finding.path] += 1
        if seen[finding.path] <= MOST_FAULTS:
            yield finding
    for path, number in seen.items():
        if number > MOST_FAULTS:
            yield Finding(path, None, f"{number - MOST_FAULTS} more faults")
