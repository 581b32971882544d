"""What is indexed, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdxmill.formats.lines.surt import surt, unsurt
from cdxmill.stages.captures.line_text import escape_space

DEFAULT_RECORDS = frozenset((b"response", b"revisit", b"resource", b"metadata", b"conversion"))
RECORD_TYPES = DEFAULT_RECORDS | {b"request", b"warcinfo", b"continuation"}


def parse_record_types(names: Iterable[str]) -> frozenset[bytes] | None:
    """The record types of these names; None if one is "all". Raises ValueError for an unknown name.

    >>> sorted(parse_record_types(["response", "Revisit"])), parse_record_types(["all"])
    ([b'response', b'revisit'], None)
    """
    types = frozenset(name.strip().lower().encode() for name in names)
    if types == {b"all"}:
        return None
    for unknown in sorted(types - RECORD_TYPES):
        known = b", ".join(sorted(RECORD_TYPES)).decode()
        raise ValueError(f"invalid record type {unknown.decode()!r}: expected all, or some of {known}")
    return types


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """What is indexed, and how. `records` of None means every record that has a URL."""

    records: frozenset[bytes] | None = DEFAULT_RECORDS
    post_append: bool = False
    minimal: bool = False
    unsurt: bool = False
    keep_www: bool = False

    @property
    def lineless(self) -> frozenset[bytes]:
        """Record types that get no line, whatever they contain. Readers may return them as CrawlNotes."""
        if self.records is None or self.post_append or b"request" in self.records:
            return frozenset()
        return frozenset((b"request", b"metadata"))

    def urlkey(self, url: bytes) -> bytes:
        """The sort key of `url`. A URL without a SURT is its own key; spaces in it are escaped."""
        try:
            key = surt(url, self.keep_www)
        except ValueError:
            return escape_space(url)
        return escape_space(unsurt(key) if self.unsurt else key)
