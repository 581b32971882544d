"""Sources -> groups of similar size, one per task."""

from __future__ import annotations

from collections.abc import Sequence

from cdxmill.inputs.sources import CdxSource

_TASKS, _MOST_TASKS = 64, 400
_LEAST, _LARGE = 8 << 20, 256 << 20


def group_sources(sources: Sequence[CdxSource]) -> list[list[CdxSource]]:
    """Consecutive sources in groups of similar size; the same sizes give the same groups on any machine.

    There are about _TASKS groups, more if these had over _LARGE bytes, and never more than _MOST_TASKS.
    """
    total = sum(source.size for source in sources)
    # two groups in a row are larger than one may be
    wanted = max(min(total // _TASKS, _LARGE), 2 * total // (_MOST_TASKS - 1), _LEAST)
    groups: list[list[CdxSource]] = []
    room = 0
    for source in sources:
        if not groups or room < source.size:
            groups.append([])
            room = wanted
        groups[-1].append(source)
        room -= source.size
    return groups
