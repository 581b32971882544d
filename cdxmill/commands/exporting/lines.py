"""The lines that are exported: those of a query, block by block. A corrupt block is reported, and the others are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cdxmill.cluster.find import index_of_crawl, is_pattern
from cdxmill.cluster.reader import ClusterReader, damage_as_input_error
from cdxmill.errors import CorruptError, InputError, OutageError, StoppedError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.messages import count
from cdxmill.options.queries import CaptureFilters, Query
from cdxmill.running.failures import Failures
from cdxmill.search.lookup import is_named_crawl, is_one_cluster, open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery, check_fields, stored_near
from cdxmill.stages.zipnum.secondary_index import DamagedCluster

ALL = "*"


class ExportedLines:
    """The lines of a query in a cluster, a CDX file, a crawl by name, or several of them. `count` is the number so far.

    With `part`, they are only those in this range of keys.
    """

    def __init__(
        self,
        cluster: str,
        query: str | None,
        asked: CaptureFilters,
        failures: Failures,
        part: KeyRange | None = None,
    ) -> None:
        self.cluster, self.failures, self.count = cluster, failures, 0
        self.url = ALL if query is None else query
        names = CaptureFilters.__dataclass_fields__
        self.query = Query(**{name: getattr(asked, name) for name in names})
        self._prepared = PreparedQuery(self.query, self._skip)
        self._is_part, self.keys = part is not None, part or self._prepared.keys(self.url)
        self.is_whole = self.url == ALL and not (part or asked.from_ts or asked.to or asked.filter)
        self.expected: int | None = None
        """The number of lines, if all lines of a cluster are asked for that has it in its cluster.json."""
        self.has_skipped = False
        self._place = index_of_crawl(cluster) if _is_crawl(cluster) else cluster

    @property
    def is_one(self) -> bool:
        """Whether they are in one cluster or CDX file."""
        return self._place != self.cluster or is_one_cluster(self.cluster)

    @contextmanager
    def opened(self) -> Iterator[OpenCluster]:
        """The one cluster or CDX file. Raises UsageError if it does not have a field that is asked for."""
        with open_searched(self._place, None, self.keys) as opened, damage_as_input_error(self.cluster):
            if self._prepared.unknown and not self._is_part:
                low, high, _ = self._prepared.narrowed(self.keys)
                check_fields(self._prepared.unknown, stored_near(opened, low, high), self.cluster)
            if self.is_whole and isinstance(opened.reader, ClusterReader) and not opened.reader.overlays:
                self.expected = opened.reader.total_lines()
            yield opened

    def narrowed(self) -> KeyRange:
        """The keys to read."""
        return self._prepared.narrowed(self.keys)

    def lists(self) -> Iterator[list[bytes]]:
        """The lines, in lists. Raises UsageError, InputError, and StoppedError if a machine is at fault."""
        with outage_as_stop():
            for lines in self._one() if self.is_one else self._several():
                self.count += len(lines)
                yield lines

    def check(self) -> None:
        """Raise CorruptError unless these are all lines of the cluster, if all were asked for."""
        if self.expected is not None and not self.has_skipped and self.expected != self.count:
            reason = f"has {count(self.count, 'line')}, but its cluster.json has {self.expected}"
            raise CorruptError(self.cluster, reason, DamagedCluster.hint)

    def _skip(self, error: InputError) -> None:
        self.has_skipped = True
        self.failures.add(error.path, error.offset, error.reason, error.hint or "the line is skipped")

    def _one(self) -> Iterator[list[bytes]]:
        with self.opened() as opened:
            low, high, _ = self.narrowed()
            lists = opened.lines(low, high, skip=self._prepared.skip_block(opened))
            yield from self._prepared.choose(lists, self.cluster)

    def _several(self) -> Iterator[list[bytes]]:
        from cdxmill.search.several import lookup_named  # slow to import

        for answer in lookup_named(self.cluster, [self.url], self.query, self._skip):
            if answer.error is not None:
                raise answer.error
            yield from answer.lists


def _is_crawl(text: str) -> bool:
    """Whether it is the name of one crawl."""
    return not is_pattern(text) and is_named_crawl(text)


@contextmanager
def outage_as_stop() -> Iterator[None]:
    """A machine at fault stops an export: what cannot be read now may be whole."""
    try:
        yield
    except OutageError as error:
        raise StoppedError(str(error)) from None


def in_batches(lists: Iterable[list[bytes]], most: int, most_bytes: int) -> Iterator[list[bytes]]:
    """The lines of lists in batches of `most` lines, fewer if they have more than `most_bytes`.

    >>> list(in_batches([[b"a", b"b"], [b"c"]], 2, 100)), list(in_batches([[b"a", b"b"]], 9, 1))
    ([[b'a', b'b'], [b'c']], [[b'a'], [b'b']])
    >>> list(in_batches([[b"a"], [b"b"], [b"c"] * 4, [b"d"]], 3, 100))
    [[b'a', b'b', b'c'], [b'c', b'c', b'c'], [b'd']]
    """
    batch: list[bytes] = []
    size = 0
    for lines in lists:
        added = sum(map(len, lines))
        if size + added <= most_bytes and len(batch) + len(lines) < most:
            batch += lines
            size += added
            continue
        for line in lines:
            if batch and (len(batch) >= most or size + len(line) > most_bytes):
                yield batch
                batch, size = [], 0
            batch.append(line)
            size += len(line)
    if batch:
        yield batch
