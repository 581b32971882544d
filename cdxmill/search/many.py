"""Many URLs -> their answers, in the order of the URLs. If all URLs are exact, each block is read once.

URLs     -> batches of 100,000, each sorted by key
batch    -> the blocks of all its URLs              over a network, they are read ahead
blocks   -> answers in key order -> answers in the order of the URLs
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.clusters.zipnum import BlockRef
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery
from cdxmill.stages.zipnum.block_pieces import ReadShard
from cdxmill.stages.zipnum.find_lines import BlockReader, joined, wanted_blocks

if TYPE_CHECKING:
    from concurrent.futures import Future

READS = 8
"""Reads in progress at a time, of up to 8 MiB each."""


class _Read(NamedTuple):
    """A range of a shard that is being read."""

    shard: bytes
    start: int
    size: int
    data: Future[bytes]

    def contains(self, shard: bytes, offset: int, size: int) -> bool:
        is_inside = self.start <= offset and offset + size <= self.start + self.size
        return self.shard == shard and is_inside


class ReadAhead:
    """Reads the blocks of `runs`, in their order, before they are asked for.

    `read` reads a range of a shard, and `submit` starts such a read in a thread. Bytes before the current run are
    read directly.
    """

    def __init__(
        self, runs: Iterator[list[BlockRef]], read: ReadShard, submit: Callable[..., Future[bytes]]
    ) -> None:
        self._runs, self._read, self._submit = runs, read, submit
        self._started: deque[_Read] = deque()
        self._current: _Read | None = None

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` of a shard."""
        while self._current is None or not self._current.contains(shard, offset, size):
            self._start_reads()
            if not any(read.contains(shard, offset, size) for read in self._started):
                return self._read(
                    shard, offset, size
                )  # an answer over many blocks goes back to its first one
            self._current = self._started.popleft()
        start = offset - self._current.start
        return self._current.data.result()[start : start + size]

    def _start_reads(self) -> None:
        while len(self._started) < READS and (run := next(self._runs, None)) is not None:
            start, size = run[0].offset, run[-1].offset + run[-1].length - run[0].offset
            data = self._submit(self._read, run[0].shard, start, size)
            self._started.append(_Read(run[0].shard, start, size, data))


BATCH = 100_000
"""URLs that are sorted together."""
_KEPT = 64 << 20
"""Bytes of answers that are kept until their turn. Answers beyond this are looked up again."""

Lists = Iterable[list[bytes]]


class Answer(NamedTuple):
    """The answer for one URL: its lines in lists, or the error if the URL cannot be looked up.

    Read `lists` before you ask for the next answer. It raises CorruptError if a block is corrupt. The next answers are
    given nevertheless.
    """

    url: str
    lists: Lists
    error: UsageError | None = None


Ranges = tuple[KeyRange, ...]
"""The ranges of keys of a URL: one for a cluster."""


class Searched(NamedTuple):
    """What URLs are looked up in: the ranges of a URL, its answer, and the answers for many, in the order of their keys.

    `keys` raises UsageError if the URL cannot be looked up.
    """

    keys: Callable[[str], Ranges]
    answer: Callable[[Ranges], Lists]
    in_key_order: Callable[[list[Ranges]], Iterator[Lists]]


class _Keys(NamedTuple):
    """The key ranges of a URL, and the position of the URL in its batch."""

    ranges: Ranges
    position: int


def answer_many(cluster: OpenCluster, prepared: PreparedQuery, urls: Iterable[str]) -> Iterator[Answer]:
    """The answers for `urls`, in their order. A URL without a key gets an error. Raises InputError, UsageError."""
    searched = Searched(
        lambda url: (prepared.keys(url),),
        lambda ranges: prepared.answer(cluster, ranges[0]),
        lambda keys: _in_key_order(cluster, prepared, [ranges[0] for ranges in keys]),
    )
    return answer_urls(searched, urls)


def answer_urls(searched: Searched, urls: Iterable[str], batch_size: int = BATCH) -> Iterator[Answer]:
    """The answers for `urls`, in their order. Raises as `answer_many`."""
    remaining = iter(urls)
    while batch := list(islice(remaining, batch_size)):
        yield from _answer_batch(searched, batch)


def _answer_batch(searched: Searched, urls: list[str]) -> Iterator[Answer]:
    keys: list[_Keys] = []
    errors: dict[int, UsageError] = {}
    for position, url in enumerate(urls):
        try:
            keys.append(_Keys(searched.keys(url), position))
        except UsageError as error:
            errors[position] = error
    found = _in_given_order(searched, keys)
    for position, url in enumerate(urls):
        if position in errors:
            yield Answer(url, (), errors[position])
        else:
            yield Answer(url, next(found))


def _in_given_order(searched: Searched, keys: list[_Keys]) -> Iterator[Lists]:
    """The answers in the order of the URLs, by the cheapest way."""
    if not all(one.is_one_url for ranges, _ in keys for one in ranges):
        return (searched.answer(one.ranges) for one in keys)
    in_key_order = sorted(keys)
    if in_key_order == keys:
        return searched.in_key_order([one.ranges for one in keys])
    return _put_back(searched, keys, in_key_order)


def _put_back(searched: Searched, keys: list[_Keys], in_key_order: list[_Keys]) -> Iterator[Lists]:
    """Look up in key order, then give the answers in the order of the URLs."""
    kept: dict[int, _Taken] = {}
    size = 0
    found = searched.in_key_order([one.ranges for one in in_key_order])
    for one, lists in zip(in_key_order, found, strict=True):
        answer = _take(lists)
        size += sum(sum(map(len, lines)) for lines in answer.lists)
        if size < _KEPT:
            kept[one.position] = answer
    for one in keys:
        yield _given(kept[one.position]) if one.position in kept else searched.answer(one.ranges)


class _Taken(NamedTuple):
    """The lists of an answer, and the error that ended it."""

    lists: list[list[bytes]]
    error: CorruptError | None


def _take(lists: Lists) -> _Taken:
    taken: list[list[bytes]] = []
    try:
        for lines in lists:
            taken.append(lines)  # noqa: PERF402 - what was found before an error is kept
    except CorruptError as error:
        return _Taken(taken, error)
    return _Taken(taken, None)


def _given(taken: _Taken) -> Iterator[list[bytes]]:
    """The same lists again, with the same end."""
    yield from taken.lists
    if taken.error is not None:
        raise taken.error


def _in_key_order(cluster: OpenCluster, prepared: PreparedQuery, keys: list[KeyRange]) -> Iterator[Lists]:
    """The answers for keys that are sorted."""
    if cluster.join:
        yield from _with_read_ahead(cluster, prepared, keys)
        return
    for key_range, same in groupby(keys):
        answer = _take(prepared.answer(cluster, key_range))
        for _ in same:
            yield _given(answer)


def _with_read_ahead(cluster: OpenCluster, prepared: PreparedQuery, keys: list[KeyRange]) -> Iterator[Lists]:
    """The answers for keys that are sorted. Blocks are read before they are needed, neighbors in one read."""
    with reading_ahead(joined(_blocks_of(cluster, prepared, keys)), cluster.reader.read) as ahead:
        reading = OpenCluster(cluster.reader, BlockReader(ahead.read), join=False)
        for one in keys:
            yield prepared.answer(reading, one)


@contextmanager
def reading_ahead(runs: Iterator[list[BlockRef]], read: ReadShard) -> Iterator[ReadAhead]:
    """Reads blocks in threads."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and most questions are about one URL

    with ThreadPoolExecutor(READS) as pool:
        try:
            yield ReadAhead(runs, read, pool.submit)
        finally:
            pool.shutdown(cancel_futures=True)


def _blocks_of(cluster: OpenCluster, prepared: PreparedQuery, keys: list[KeyRange]) -> Iterator[BlockRef]:
    """The blocks of all keys, each block once."""
    last: BlockRef | None = None
    for one in keys:
        low, high, _ = prepared.narrowed(one)
        for block in wanted_blocks(cluster.reader.index, low, high):
            if last is None or (block.key, block.shard, block.offset) > (last.key, last.shard, last.offset):
                yield block
                last = block
