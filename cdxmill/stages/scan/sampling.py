"""A uniform sample of records that is the same in each run: each record has a number from 0 to 1, and small ones are chosen.

The number is a hash of the seed and of the record's id, URL and date. It does not depend on the archive, on other records,
or on what else is asked for. So a sample of 1 % is in that of 2 %.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from heapq import heappush, heapreplace

from cdxmill.regex import regex
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.scan.columns import Type
from cdxmill.stages.scan.fields import Field, Level

SAMPLE = "sample"
"""The field with the number."""
_SHARE = regex(r"(\d{1,3}(?:\.\d+)?|\.\d+)%", re.ASCII)
_COUNT = regex(r"[1-9]\d{0,8}", re.ASCII)
_ALL = 100


def sample_field(seed: int) -> Field:
    """The field `sample`."""
    keyed = blake2b(digest_size=8, key=b"%d" % seed)

    def read(record: FullRecord) -> float:
        parts = (record.header(b"warc-record-id") or b"", record.url.encode(), record.time.encode())
        found = keyed.copy()
        found.update(b"\0".join(parts))
        return (int.from_bytes(found.digest()) >> 11) / (1 << 53)

    return Field(Level.HEADER, read, type=Type.DOUBLE)


def parse_sample(text: str | None) -> tuple[float, int]:
    """The share of the records, and how many; 0 for the share alone. None is all of them. Raises ValueError.

    >>> parse_sample("2.5%"), parse_sample("1000")
    ((0.025, 0), (1.0, 1000))
    """
    if text is None:
        return 1.0, 0
    found = _SHARE.fullmatch(text)
    if found is not None and 0 < float(found[1]) <= _ALL:
        return float(found[1]) / _ALL, 0
    if _COUNT.fullmatch(text):
        return 1.0, int(text)
    raise ValueError(
        f"invalid --sample {text!r}; expected a number of records, such as 1000, or a share, such as 1%"
    )


class Smallest:
    """The smallest of many numbers, at most `most`."""

    def __init__(self, most: int) -> None:
        self._most, self._negative = most, list[float]()

    def takes(self, number: float) -> bool:
        """Whether the number would be one of them."""
        return len(self._negative) < self._most or number < -self._negative[0]

    def add(self, number: float) -> None:
        """Add a number."""
        if len(self._negative) < self._most:
            heappush(self._negative, -number)
        elif self.takes(number):
            heapreplace(self._negative, -number)

    def numbers(self) -> list[float]:
        """All of them, in any order."""
        return [-number for number in self._negative]

    def limit(self) -> float | None:
        """The largest of them; None if there are fewer than `most`."""
        return -self._negative[0] if len(self._negative) == self._most else None
