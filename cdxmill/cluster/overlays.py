"""The overlays of a cluster: lines that were added later, each a file like a shard, with all keys.

    overlay-00007-7.gz      sorted blocks, as in a shard. The first number is that of the change that made the overlay
    overlay-00007-7.idx     its part
    overlay-00007-7.keys    a filter of its keys: most questions need no more of an overlay than this

cluster.json lists them. Lines may be in the shards and in overlays; readers merge them.
"""

from __future__ import annotations

from functools import cached_property

from cdxmill.errors import CorruptError, InputError
from cdxmill.formats.clusters.key_filter import FilterBuilder, KeyBits, KeyFilter
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry
from cdxmill.formats.clusters.zipnum import BEYOND, OVERLAY, filter_of, parse_index_line, part_of
from cdxmill.stages.zipnum.find_lines import BlockReader, find_lines
from cdxmill.stages.zipnum.secondary_index import SecondaryIndex
from cdxmill.storage.location import Location


class Overlay:
    """An overlay in the directory of a cluster. Its files are read when they are needed."""

    def __init__(self, directory: Location, entry: ShardEntry) -> None:
        self._directory, self.entry = directory, entry

    def may_have(self, wanted: KeyBits) -> bool:
        """Whether it may have lines of a key or host. Raises InputError."""
        return self._filter.may_have(wanted)

    @cached_property
    def _filter(self) -> KeyFilter:
        path = self._directory / filter_of(self.entry.name)
        try:
            return KeyFilter(path.read_bytes(), self.entry.sha256)
        except ValueError as error:
            raise _corrupt(path, str(error)) from None

    @cached_property
    def index(self) -> SecondaryIndex:
        """Its blocks. Raises InputError."""
        path = self._directory / part_of(self.entry.name)
        data = path.read_bytes()
        rows = data.split(b"\n")[:-1]
        try:
            last = parse_index_line(rows[-1])
        except (ValueError, IndexError):
            raise _corrupt(path, "is corrupt") from None
        if len(rows) != self.entry.blocks or last.offset + last.length != self.entry.bytes:
            raise _corrupt(path, f"does not have the blocks of {self.entry.name}")
        return SecondaryIndex(lambda start, size: data[start : start + size], len(data))


def filter_content(directory: Location, entry: ShardEntry, shard: Location) -> bytes:
    """The key filter of an overlay, from its lines in `shard`. Raises InputError, DamagedCluster."""
    keys = FilterBuilder(entry.lines)
    blocks = Overlay(directory, entry).index.blocks(b"")
    with shard.open_ranges() as read_at:
        reader = BlockReader(lambda _, offset, size: read_at(offset, size))
        for lines in find_lines(blocks, reader, b"", BEYOND, join=True):
            keys.add(lines)
    return keys.finish(entry.sha256)


def _corrupt(path: Location, reason: str) -> CorruptError:
    return CorruptError(str(path), reason, "check the cluster with cdxmill verify")


def overlays_of(directory: Location, manifest: Manifest | None) -> list[Overlay]:
    """The overlays of a cluster. Raises InputError if it has some, but no cluster.json that lists them."""
    if manifest is not None:
        return [Overlay(directory, entry) for entry in manifest.overlays]
    if not directory.is_remote and any(map(OVERLAY.fullmatch, directory.entries())):
        reason = "has overlays, and no cluster.json that lists them"
        raise InputError(str(directory), reason, "check it with cdxmill verify, or build it again")
    return []
