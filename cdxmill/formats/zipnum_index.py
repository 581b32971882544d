"""The secondary index of a ZipNum cluster: part, summary and location lines (docs/formats/zipnum.md).

part-00000          <urlkey> <timestamp> TAB <shard> TAB <offset> TAB <length>
cluster.idx         the same TAB <number of the line, from 1>
cluster.loc         <shard> TAB <location> [TAB <location>...]
"""

from __future__ import annotations

from typing import NamedTuple


class BlockRef(NamedTuple):
    """One block of a shard: the key of its first line, and its byte range."""

    key: bytes
    shard: bytes
    offset: int
    length: int


def shard_name(number: int) -> str:
    """
    >>> shard_name(7)
    'cdx-00007.gz'
    """
    return f"cdx-{number:05d}.gz"


def part_name(number: int) -> str:
    """
    >>> part_name(7)
    'part-00007'
    """
    return f"part-{number:05d}"


def key_of(line: bytes) -> bytes:
    """`<urlkey> <timestamp>` of a CDX line.

    >>> key_of(b"com,example)/ 2020 {}")
    b'com,example)/ 2020'
    """
    first = line.find(b" ")
    second = line.find(b" ", first + 1) if first >= 0 else -1
    return line[:second] if second >= 0 else line


def format_part_line(block: BlockRef) -> bytes:
    """A part's line with its line end."""
    return b"%b\t%b\t%d\t%d\n" % (block.key.replace(b"\t", b"%09"), block.shard, block.offset, block.length)


def parse_index_line(line: bytes) -> BlockRef:
    """A line of a part, idx or summary. Raises ValueError.

    >>> parse_index_line(b"com,example)/ 2020\\tcdx-00000.gz\\t0\\t188\\t1")
    BlockRef(key=b'com,example)/ 2020', shard=b'cdx-00000.gz', offset=0, length=188)
    """
    fields = line.rstrip(b"\n").split(b"\t")
    if len(fields) < 4:
        raise ValueError(f"not a line of a ZipNum index: {line[:80]!r}")
    return BlockRef(fields[0], fields[1], int(fields[2]), int(fields[3]))


def format_location(shard: str, location: str) -> bytes:
    """A line of cluster.loc."""
    return f"{shard}\t{location}\n".encode()


def parse_locations(data: bytes) -> dict[bytes, list[str]]:
    """cluster.loc -> shard: locations, best first."""
    found: dict[bytes, list[str]] = {}
    for line in data.splitlines():
        shard, *locations = line.split(b"\t")
        if locations:
            found[shard] = [location.decode() for location in locations]
    return found
