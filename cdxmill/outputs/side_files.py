"""Files beside an output that are about its content, such as an index: what a killed run has to write again.

Such a file is removed before its output changes, and a mark beside it says so. When it was written again, the mark is removed.
"""

from __future__ import annotations

from collections.abc import Iterable

from cdxmill.storage.location import Location, ask_all


def _mark(side: Location) -> Location:
    return side.with_name(f".{side.name}.again")


def retire(side: Location) -> None:
    """Remove a side file, if it exists, because its output changes now. Raises InputError, StoppedError."""
    if side.exists():
        with _mark(side).write_atomic() as file:
            file.write(b"removed before its archive changed; written again by the next run\n")
        side.remove()


def retired_of(sides: Iterable[Location]) -> set[Location]:
    """Those that a run removed which was killed before it wrote them again. Lists their directories. Raises InputError."""
    marks = {_mark(side): side for side in sides}
    parents = list(dict.fromkeys(mark.parent for mark in marks))
    names = dict(zip(parents, ask_all(Location.entries, parents), strict=True))
    return {side for mark, side in marks.items() if mark.name in names[mark.parent]}


def renewed(side: Location) -> None:
    """Note that a side file was written. Raises StoppedError."""
    _mark(side).remove()
