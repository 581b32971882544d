"""Threads share open shards: a shard that is read by one thread is not closed by another."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock

import pytest

from cdxmill.cluster import reader as reader_module
from cdxmill.cluster.open_shards import OpenShard, OpenShards
from cdxmill.cluster.reader import open_cluster
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location

from ..material.cdx_files import write_plain

SHARDS, THREADS, READS = 12, 16, 400


class File:
    """A file that knows whether it is open. A read of a closed file is an error."""

    def __init__(self) -> None:
        self.is_open = True
        self.closed = 0

    def read_at(self, offset: int, size: int) -> bytes:
        if not self.is_open:
            raise AssertionError("read of a closed file")
        return b"x" * size

    def close(self) -> None:
        self.is_open = False
        self.closed += 1


def opened(file: File, path: str = "a") -> OpenShard:
    files = ExitStack()
    files.callback(file.close)
    return OpenShard(Location(path), file.read_at, files)


def test_the_least_recently_used_shard_is_closed() -> None:
    shards = OpenShards(2)
    files = {name: File() for name in (b"a", b"b", b"c")}
    shards.add(b"a", opened(files[b"a"]))
    shards.add(b"b", opened(files[b"b"]))
    used = shards.borrow(b"a")
    assert used is not None
    shards.give_back(used)
    shards.add(b"c", opened(files[b"c"]))
    assert [file.is_open for file in files.values()] == [True, False, True]
    assert shards.borrow(b"b") is None
    shards.close()
    assert [file.closed for file in files.values()] == [1, 1, 1]


@pytest.mark.parametrize("way", ["replaced", "removed", "closed"])
def test_a_borrowed_shard_is_closed_after_its_last_reader(way: str) -> None:
    shards, file = OpenShards(1), File()
    shard = opened(file)
    shards.add(b"a", shard)
    assert shards.borrow(b"a") is shards.borrow(b"a") is shard
    if way == "replaced":
        shards.add(b"b", opened(File()))
    elif way == "removed":
        shards.remove(b"a", shard)
    else:
        shards.close()
    assert shards.borrow(b"a") is None
    shards.give_back(shard)
    assert file.is_open
    shards.give_back(shard)
    assert file.closed == 1


def test_a_shard_that_another_thread_has_added_is_closed_at_once() -> None:
    shards, first, second = OpenShards(1), File(), File()
    shards.add(b"a", opened(first))
    shards.add(b"a", opened(second))
    assert (first.closed, second.closed) == (0, 1)
    shards.remove(b"a", opened(second))
    assert first.is_open, "another one is kept"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A cluster of one-line shards."""
    lines = [b"com,host%02d)/ 2020 {}" % number for number in range(SHARDS)]
    path = write_plain(tmp_path / "a.cdxj", lines)
    options = ZipnumOptions(shards=SHARDS, points=tuple(lines[1:]), quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Failures())
    return tmp_path / "C"


class Watched:
    """Counts reads of closed shards. Closing a shard waits for a moment, so that another thread runs."""

    def __init__(self) -> None:
        self.lock, self.open, self.most_open, self.wrong = Lock(), 0, 0, 0

    @contextmanager
    def open_shard(self, place: Location) -> Iterator[Callable[[int, int], bytes]]:
        content, is_open, pause = Path(place.local).read_bytes(), [True], Event()
        with self.lock:
            self.open += 1
            self.most_open = max(self.most_open, self.open)

        def read_at(offset: int, size: int) -> bytes:
            pause.wait(0.001)
            if not is_open[0]:
                self.wrong += 1
                raise InputError(place.text, "is closed")
            return content[offset : offset + size]

        yield read_at
        is_open[0] = False
        with self.lock:
            self.open -= 1


def test_many_threads_with_few_open_shards_never_read_a_closed_one(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched()
    monkeypatch.setattr(reader_module, "open_known", watched.open_shard)
    monkeypatch.setattr(reader_module, "_MOST_OPEN", 2)
    wanted = {path.name.encode(): path.read_bytes() for path in cluster.glob("cdx-*.gz")}
    names = random.Random(1).choices(sorted(wanted), k=READS)
    with open_cluster(cluster) as reader:
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(lambda name: reader.read(name, 0, 1 << 20), names))
        assert watched.open == 2
    assert found == [wanted[name] for name in names]
    assert watched.wrong == 0
    assert watched.open == 0
    assert watched.most_open <= THREADS + 2


def test_a_shard_that_could_not_be_read_is_opened_again(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that failed once, such as one of a network disk that was gone, fails for ever."""
    opened_files = list[Location]()

    @contextmanager
    def open_shard(place: Location) -> Iterator[Callable[[int, int], bytes]]:
        opened_files.append(place)
        number = len(opened_files)

        def read_at(offset: int, size: int) -> bytes:
            if number == 1 and offset:
                raise InputError(place.text, "stale file handle")
            return Path(place.local).read_bytes()[offset : offset + size]

        yield read_at

    monkeypatch.setattr(reader_module, "open_known", open_shard)
    [first, *_] = sorted(path.name.encode() for path in cluster.glob("cdx-*.gz"))
    content = (cluster / first.decode()).read_bytes()
    with open_cluster(cluster) as reader:
        assert reader.read(first, 0, 1 << 20) == content
        with pytest.raises(InputError, match="stale file handle"):
            reader.read(first, 1, 1 << 20)
        assert [reader.read(first, 1, 1 << 20) for _ in range(2)] == [content[1:]] * 2
    assert len(opened_files) == 2
