"""A user's own counter: a function of a record, which finds what is counted in it.

b"item" or "item"      counts 1
("item", 3)            counts 3
several of them        a list, a generator
{"item": 3}            a dict or a Counter
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from cdxmill.errors import InputError, StoppedError
from cdxmill.stages.counting.counters import BadRecord
from cdxmill.stages.counting.tally import clean_item
from cdxmill.stages.pages.full_record import FullRecord

Item = bytes | str
Found = Item | tuple[Item, int]
Items = Callable[[FullRecord], Iterable[Found] | Mapping[Item, int] | Found | None]
"""A user's function: a record -> what is counted in it, or None."""
_LARGEST = (1 << 63) - 1


class BadFunction(BadRecord):
    """A record on which a user's function failed."""

    hint = "correct the function"


class OwnCounter(NamedTuple):
    """How a user counts records."""

    items: Items
    needs: str = "archives with records that the function counts"

    def pairs(self, record: FullRecord) -> list[tuple[bytes, int]]:
        """The items of a record and their numbers: all of them, or BadFunction. Raises what the machine is to blame for."""
        try:
            return [pair for pair in map(_pair, _several(self.items(record))) if pair[0] and pair[1]]
        except (InputError, StoppedError, MemoryError):
            raise
        except Exception as error:  # whatever the user's code raises
            raise BadFunction(f"{type(error).__name__}: {' '.join(str(error).split())}") from None


def _several(found: Iterable[Found] | Mapping[Item, int] | Found | None) -> Iterator[Found]:
    if found is None:
        return iter(())
    if isinstance(found, bytes | str):
        return iter((found,))
    if isinstance(found, Mapping):
        return iter(found.items())
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], int):
        return iter(((found[0], found[1]),))
    return iter(found)


def _pair(found: Found) -> tuple[bytes, int]:
    item, number = found if isinstance(found, tuple) else (found, 1)
    if isinstance(item, str):
        item = item.encode("utf-8", "replace")
    if not isinstance(item, bytes):
        raise TypeError(f"an item is bytes or text, not {type(item).__name__}")
    if not isinstance(number, int) or not 0 <= number <= _LARGEST:
        raise TypeError(f"the number of an item is an integer from 0 to 2**63, not {number!r:.40}")
    return clean_item(item), int(number)
