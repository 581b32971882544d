"""lookup: a URL, or the start of one, -> the lines of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cdxmill.commands.publish import INDEX, LOCATIONS, SUMMARY
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.surt import surt
from cdxmill.formats.zipnum_index import BlockRef, parse_locations
from cdxmill.stages.find_lines import DamagedCluster, find_lines
from cdxmill.storage.local import file_size, open_ranges


def lookup(cluster: Path, url: str) -> Iterator[bytes]:
    """The lines of `url` in the cluster; with a `*` at its end, of all URLs that start so.

    Raises UsageError where `cluster` is none or the URL has no key, InputError where it is damaged.
    """
    low, high = key_range(url)
    index = next((cluster / name for name in (INDEX, SUMMARY) if (cluster / name).exists()), None)
    if index is None:
        raise UsageError(f"{cluster}: not a ZipNum cluster (no {INDEX} or {SUMMARY})")
    shards = _Shards(cluster)
    try:
        with open_ranges(str(index)) as read_index:
            yield from find_lines(read_index, file_size(str(index)), shards.read, low, high)
    except DamagedCluster as error:
        raise InputError(str(cluster), str(error), "build the cluster again") from None


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

    def __init__(self, cluster: Path) -> None:
        self._cluster = cluster
        locations = cluster / LOCATIONS
        self._locations: dict[bytes, list[str]] = {}
        if locations.exists():
            with open_ranges(str(locations)) as read_at:
                self._locations = parse_locations(read_at(0, file_size(str(locations))))

    def read(self, block: BlockRef) -> bytes:
        beside = self._cluster / os.fsdecode(block.shard)
        listed = self._locations.get(block.shard, [])
        path = beside if beside.exists() or not listed else Path(self._cluster, listed[0])
        with open_ranges(str(path)) as read_at:
            return read_at(block.offset, block.length)
