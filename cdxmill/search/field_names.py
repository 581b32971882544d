"""Names of fields in a query: one that is misspelled would give an empty answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from cdxmill.errors import UsageError
from cdxmill.formats.lines.capture_fields import ALSO, FIELDS, stored_fields
from cdxmill.stages.zipnum.find_lines import BlockReader, wanted_blocks
from cdxmill.stages.zipnum.secondary_index import SecondaryIndex


class BlockSource(Protocol):
    """What a query needs of an open cluster or CDX file."""

    @property
    def cluster(self) -> str:
        """The name in messages."""

    @property
    def index(self) -> SecondaryIndex:
        """The blocks."""

    @property
    def is_remote(self) -> bool:
        """Whether each read costs a request, so that neighboring blocks are better read together."""

    def read(self, shard: bytes, offset: int, size: int, /) -> bytes:
        """Bytes of a shard."""

    def blocks(self) -> BlockReader:
        """A reader of blocks."""

    def block_lines(self) -> int | None:
        """Lines of a full block; None if that is not known, 0 if there is no such number."""


CRAWL = "crawl"
"""The field that says from which crawl a line is."""


def unknown_fields(names: Iterable[str]) -> tuple[str, ...]:
    """The names that no line of cdxmill or pywb has.

    >>> unknown_fields(["status", "statuscode", "staus"])
    ('staus',)
    """
    return tuple(name for name in names if name not in (*FIELDS, CRAWL) and name not in ALSO)


def check_fields(names: Iterable[str], reader: BlockSource, low: bytes, high: bytes) -> None:
    """Raise UsageError if one of `names` is in no line of the first blocks of the cluster and of a key range.

    Other tools write fields of their own, so an unknown name may be right.
    """
    found: dict[str, None] = {}
    for line in _first_lines(reader, low, high):
        try:
            found.update(dict.fromkeys(stored_fields(line)))
        except (ValueError, RecursionError):  # reported where the line is needed
            continue
    for name in names:
        if name not in found:
            known = ", ".join(dict.fromkeys((*FIELDS, *found)))
            raise UsageError(
                f"unknown field {name!r}, which {reader.cluster} does not have; known are {known}"
            )


def _first_lines(reader: BlockSource, low: bytes, high: bytes) -> Iterator[bytes]:
    """The lines of two blocks of the cluster, and of two of the range, the first of which may end before it."""
    blocks = reader.blocks()
    for first, last in ((b"", b"\xff"), (low, high)):
        for block in islice(wanted_blocks(reader.index, first, last), 2):
            yield from blocks.text_of(block, b"").between(b"", b"\xff")[0]
