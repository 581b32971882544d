"""lookup: a URL, or the start of one, -> the lines of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator

from cdxmill.commands.publish import INDEX, LOCATIONS, SUMMARY
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.surt import surt
from cdxmill.formats.zipnum_index import BlockRef, parse_locations
from cdxmill.stages.find_lines import DamagedCluster, find_lines
from cdxmill.storage.choose import Place, exists, is_remote, join, open_ranges, read_bytes, status


def lookup(cluster: Place, url: str) -> Iterator[bytes]:
    """The lines of `url` in the cluster at a path or URL; with a `*` at its end, of all URLs that start so.

    Raises UsageError where `cluster` is none or the URL has no key, InputError where it is damaged.
    """
    low, high = key_range(url)
    index, size = _index_of(cluster)
    shards = _Shards(cluster)
    try:
        with open_ranges(index) as read_index:
            if not size and read_index(0, 1):
                raise InputError(index, "the server does not tell the size", "fetch the cluster")
            yield from find_lines(read_index, size, shards.read, low, high)
    except DamagedCluster as error:
        raise InputError(str(cluster), str(error), "build the cluster again") from None


def _index_of(cluster: Place) -> tuple[str, int]:
    """The index's path or URL, and its size in bytes."""
    for name in (INDEX, SUMMARY):
        found = status(join(cluster, name))
        if found is not None:
            return join(cluster, name), found.size
    raise UsageError(f"{cluster}: not a ZipNum cluster (no {INDEX} or {SUMMARY})")


def key_range(url: str) -> tuple[bytes, bytes]:
    """The keys between which the lines of `url` lie; a `*` at its end asks for a prefix.

    >>> key_range("http://example.com/a"), key_range("example.com/a/*")
    ((b'com,example)/a ', b'com,example)/a!'), (b'com,example)/a/', b'com,example)/a0'))
    """
    text = url.removesuffix("*")
    try:
        if not text:
            raise ValueError("it is empty")
        if text.startswith("*"):
            raise ValueError("a * may stand at its end only")
        key = surt(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise UsageError(f"{url}: not a URL that can be looked up ({error})") from None
    if text == url:
        return key + b" ", key + b"!"
    for ending in (b"/", b"?"):
        if text.encode("utf-8", "surrogateescape").endswith(ending) and not key.endswith(ending):
            key += ending
    return key, key[:-1] + bytes((key[-1] + 1,))


class _Shards:
    """Reads blocks of shards from where cluster.loc or the cluster's folder has them."""

    def __init__(self, cluster: Place) -> None:
        self._cluster = cluster
        self._found: dict[bytes, str] = {}
        self._locations: dict[bytes, list[str]] = {}
        locations = join(cluster, LOCATIONS)
        if exists(locations):
            self._locations = parse_locations(read_bytes(locations))

    def read(self, block: BlockRef) -> bytes:
        if block.shard not in self._found:
            self._found[block.shard] = self._find(block.shard)
        with open_ranges(self._found[block.shard]) as read_at:
            return read_at(block.offset, block.length)

    def _find(self, shard: bytes) -> str:
        beside = join(self._cluster, os.fsdecode(shard))
        listed = self._locations.get(shard, [])
        if not listed or exists(beside):
            return beside
        is_whole = is_remote(listed[0]) or listed[0].startswith(("/", "file:"))
        return listed[0] if is_whole else join(self._cluster, listed[0])
