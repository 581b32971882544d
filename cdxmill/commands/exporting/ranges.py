"""An export of many lines -> ranges of keys that are exported one by one, in any process and on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cdxmill.cluster.reader import damage_as_input_error
from cdxmill.commands.exporting.lines import ExportedLines, outage_as_stop
from cdxmill.errors import StoppedError
from cdxmill.formats.clusters.zipnum import BLOCK_LINES
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.search.lookup import is_cdx_file
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.zipnum.find_lines import wanted_blocks
from cdxmill.storage.location import locate


@contextmanager
def key_ranges(lines: ExportedLines, most: int) -> Iterator[list[KeyRange]]:
    """The ranges of keys of an export, each with about `most` lines, as far as its index tells. They depend on the cluster alone.

    A CDX file is one range, and so are several sources: only an index of blocks tells where to cut. Raises UsageError and
    InputError, and at the end of the `with` StoppedError if the cluster was changed in the meantime.
    """
    if not lines.is_one or is_cdx_file(locate(lines.cluster)):
        yield [lines.keys]
        return
    with outage_as_stop(), lines.opened() as opened:
        with damage_as_input_error(lines.cluster):
            ranges = _cut(opened, lines.narrowed(), most)
        yield ranges
        if opened.reader.has_changed():
            raise StoppedError(f"{lines.cluster}: it was changed while it was exported; run it again")


def _cut(opened: OpenCluster, keys: KeyRange, most: int) -> list[KeyRange]:
    blocks = max(1, most // (opened.reader.block_lines() or BLOCK_LINES))
    ranges, low = list[KeyRange](), keys.low
    for number, block in enumerate(wanted_blocks(opened.reader.index, keys.low, keys.high)):
        if number and number % blocks == 0 and block.key > low:
            ranges.append(KeyRange(low, block.key))
            low = block.key
    return [*ranges, KeyRange(low, keys.high)]
