"""Many URLs at once: asked in the order of their keys, so that each block is read once; answered in the order given.

URLs --100,000 at a time, sorted by key--> blocks of all --read ahead where a read costs a request--> answers
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import UsageError
from cdxmill.formats.lookup_query import KeyRange
from cdxmill.formats.zipnum_index import BlockRef
from cdxmill.search.question import ONLY_THE_URL, Asking, Opened, Question
from cdxmill.stages.zipnum.block_text import ReadShard
from cdxmill.stages.zipnum.find_lines import BlockReader, joined, wanted_blocks
from cdxmill.storage.choose import PathOrUrl

AT_ONCE = 100_000
"""URLs that are sorted together."""
_KEPT = 64 << 20
"""Bytes of answers that wait for their turn; those beyond are asked for again when it has come."""
_AT_A_TIME = 8
"""Reads under way at once, of up to 8 MiB each."""

Lists = Iterator[list[bytes]]


class Answer(NamedTuple):
    """What a URL has: its lines in lists, to be taken before the next answer; or why it cannot be asked."""

    url: str
    lists: Iterable[list[bytes]]
    error: UsageError | None = None


class _Asked(NamedTuple):
    keys: KeyRange
    place: int


def lookup_many(
    cluster: PathOrUrl, urls: Iterable[str], question: Question = ONLY_THE_URL
) -> Iterator[Answer]:
    """The answers for `urls` in their order. A URL without a key has an error in place of lines.

    Raises UsageError where the question cannot be answered or no cluster is there, InputError where the cluster
    cannot be read or is damaged.
    """
    asking = Asking(question)
    with open_cluster(cluster, question.shard_rule) as reader:
        opened = Opened(reader)
        coming = iter(urls)
        while some := list(islice(coming, AT_ONCE)):
            yield from _answers(opened, asking, some)


def _answers(cluster: Opened, asking: Asking, urls: list[str]) -> Iterator[Answer]:
    errors: dict[int, UsageError] = {}
    asked: list[_Asked] = []
    for place, url in enumerate(urls):
        try:
            asked.append(_Asked(asking.keys(url), place))
        except UsageError as error:
            errors[place] = error
    keys = {one.place: one.keys for one in asked}
    if any(one.keys.key is None for one in asked):
        found: Iterator[Iterable[list[bytes]]] = (asking.answer(cluster, one.keys) for one in asked)
    elif asked == sorted(asked):
        found = _in_order(cluster, asking, asked)
    else:
        found = _sorted_back(cluster, asking, sorted(asked), keys)
    for place, url in enumerate(urls):
        wrong = errors.get(place)
        yield Answer(url, next(found)) if wrong is None else Answer(url, (), wrong)


def _sorted_back(
    cluster: Opened, asking: Asking, asked: list[_Asked], keys: dict[int, KeyRange]
) -> Iterator[Iterable[list[bytes]]]:
    """The answers of questions that are sorted by key, in the order of their places."""
    kept: dict[int, list[list[bytes]]] = {}
    size = 0
    for one, lists in zip(asked, _in_order(cluster, asking, asked), strict=True):
        answer = list(lists)
        size += sum(sum(map(len, lines)) for lines in answer)
        if size < _KEPT:
            kept[one.place] = answer
    for place in sorted(keys):
        yield kept[place] if place in kept else asking.answer(cluster, keys[place])


def _in_order(cluster: Opened, asking: Asking, asked: list[_Asked]) -> Iterator[Iterable[list[bytes]]]:
    """The answers of questions that are sorted by key."""
    if not cluster.join:
        last: tuple[KeyRange, list[list[bytes]]] | None = None
        for one in asked:
            if last is None or last[0] != one.keys:
                last = one.keys, list(asking.answer(cluster, one.keys))
            yield last[1]
        return
    with _read_ahead(cluster, asking, asked) as ahead:
        for one in asked:
            yield asking.answer(ahead, one.keys)


@contextmanager
def _read_ahead(cluster: Opened, asking: Asking, asked: list[_Asked]) -> Iterator[Opened]:
    """The cluster, with the blocks of all questions read before they are needed, neighbours in one read."""
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        runs = joined(_blocks_of(cluster, asking, asked))
        ahead = Opened(cluster.reader)
        ahead.join = False
        ahead.blocks = BlockReader(_Ahead(runs, cluster.reader.read, pool.submit).read)
        try:
            yield ahead
        finally:
            pool.shutdown(cancel_futures=True)


def _blocks_of(cluster: Opened, asking: Asking, asked: list[_Asked]) -> Iterator[BlockRef]:
    """The blocks of all questions, each once."""
    last: BlockRef | None = None
    for one in asked:
        low, high, _ = asking.narrowed(one.keys)
        for block in wanted_blocks(cluster.reader.index, low, high):
            if last is None or (block.key, block.shard, block.offset) > (last.key, last.shard, last.offset):
                yield block
                last = block


class _Run(NamedTuple):
    shard: bytes
    start: int
    size: int
    data: Future[bytes]


class _Ahead:
    """Reads of blocks in ascending order, answered from reads that are under way."""

    def __init__(
        self, runs: Iterator[list[BlockRef]], read: ReadShard, submit: Callable[..., Future[bytes]]
    ) -> None:
        self._runs, self._direct, self._submit = runs, read, submit
        self._coming: deque[_Run] = deque()
        self._last: _Run | None = None

    def read(self, shard: bytes, offset: int, size: int) -> bytes:
        """The `size` bytes at `offset` of a shard."""
        while self._last is None or not _holds(self._last, shard, offset, size):
            self._fill()
            if not any(_holds(run, shard, offset, size) for run in self._coming):
                return self._direct(shard, offset, size)  # was there before: an answer over many blocks
            self._last = self._coming.popleft()
        start = offset - self._last.start
        return self._last.data.result()[start : start + size]

    def _fill(self) -> None:
        while len(self._coming) < _AT_A_TIME:
            run = next(self._runs, None)
            if run is None:
                return
            start, size = run[0].offset, run[-1].offset + run[-1].length - run[0].offset
            self._coming.append(
                _Run(run[0].shard, start, size, self._submit(self._direct, run[0].shard, start, size))
            )


def _holds(run: _Run, shard: bytes, offset: int, size: int) -> bool:
    return run.shard == shard and run.start <= offset and offset + size <= run.start + run.size
