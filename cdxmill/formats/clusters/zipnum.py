"""The files of a ZipNum cluster: blocks, index lines, shard locations, and the path index of its archives.

part-00000          <urlkey> <timestamp> TAB <shard> TAB <offset> TAB <length>
cluster.idx         the same TAB <number of the line, from 1>
cluster.loc         <shard> TAB <location> [TAB <location>...]
archives.tsv        <file name> TAB <path or URL> [TAB <path or URL>...], sorted by bytes, one line for a name

A key cannot contain a tab: it is written as the bytes 08 02, and 08 as 08 01, which keeps the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cdxmill.regex import regex

BLOCK_LINES = 3000
"""Lines of a full block, in the clusters of all tools."""
OVERLAY_LINES = 300
"""The same in an overlay: pywb and OpenWayback read a whole block of each overlay for a question."""
BEYOND = b"\xff" * 8
"""Greater than all keys, which are UTF-8."""
MAX_BLOCK = 1 << 30
"""Maximum bytes of a block, compressed or not. Readers refuse larger ones."""

INDEX, SUMMARY, LOCATIONS, MANIFEST = "cluster.idx", "cluster.summary", "cluster.loc", "cluster.json"
"""Names of the files beside the shards."""

CHANGE = ".change"
"""The directory of the files of a change that is not finished."""
STAGED_MANIFEST = f"{CHANGE}/{MANIFEST}"

_INDEX_LINE = regex(rb"([^\t\n]*)\t([^\t\n]+)\t(\d{1,18})\t(\d{1,18})(?:\t(\d{1,18}))?\r?\n?")


class BlockRef(NamedTuple):
    """One block of a shard: the key of its first line and its byte range."""

    key: bytes
    shard: bytes
    offset: int
    length: int


class ShardLocations(NamedTuple):
    """A shard and its locations, best first: paths or URLs."""

    shard: str
    locations: list[str]


class ParsedLocations(NamedTuple):
    """The rows of cluster.loc in order, and the faults found in it, each with its line number."""

    rows: list[ShardLocations]
    faults: list[str]


SHARD = regex(r"cdx-(\d{5,})(?:-(\d+))?\.gz")
"""A shard's file name; the groups are its number, and the change of the cluster that wrote it, None for a build."""
PART = regex(r"part-(\d{5,})(?:-(\d+))?")
"""The same for the part of a shard."""


def shard_name(number: int, change: int = 0) -> str:
    """The name of a shard that was built, or that the change of this number wrote: no name is used twice in a cluster.

    >>> shard_name(7), shard_name(7, 12)
    ('cdx-00007.gz', 'cdx-00007-12.gz')
    """
    return f"cdx-{number:05d}-{change}.gz" if change else f"cdx-{number:05d}.gz"


def part_name(number: int) -> str:
    """
    >>> part_name(7)
    'part-00007'
    """
    return f"part-{number:05d}"


OVERLAY = regex(r"overlay-(\d{5,})-(\d+)\.gz")
"""The name of an overlay: the change that made it, and the change that has written this file."""


def overlay_name(made: int, change: int) -> str:
    """The name of the overlay that change `made` has made, as `change` has written it.

    >>> overlay_name(7, 9)
    'overlay-00007-9.gz'
    """
    return f"overlay-{made:05d}-{change}.gz"


def part_of(shard: str) -> str:
    """The name of the part of a shard or an overlay.

    >>> part_of("cdx-00007.gz"), part_of("overlay-00007-9.gz")
    ('part-00007', 'overlay-00007-9.idx')
    """
    if shard.startswith("overlay-"):
        return f"{shard.removesuffix('.gz')}.idx"
    return shard.replace("cdx-", "part-", 1).removesuffix(".gz")


def files_of_shard(shard: str) -> list[str]:
    """The names of the files of a shard: itself, its part, and the key filter of an overlay.

    >>> files_of_shard("cdx-00007.gz"), files_of_shard("overlay-00007-9.gz")
    (['cdx-00007.gz', 'part-00007'], ['overlay-00007-9.gz', 'overlay-00007-9.idx', 'overlay-00007-9.keys'])
    """
    keys = [filter_of(shard)] if shard.startswith("overlay-") else []
    return [shard, part_of(shard), *keys]


def filter_of(overlay: str) -> str:
    """The name of the key filter of an overlay.

    >>> filter_of("overlay-00007-9.gz")
    'overlay-00007-9.keys'
    """
    return f"{overlay.removesuffix('.gz')}.keys"


def one_key(low: bytes, high: bytes) -> bytes | None:
    r"""The one key that all lines >= `low` and < `high` have; None if they may have several.

    >>> one_key(b"com,example)/a 2020", b"com,example)/a 2021"), one_key(b"com,example)/a", b"com,example)/a!")
    (b'com,example)/a', b'com,example)/a')
    >>> one_key(b"com,example)/a", b"com,example)/b") is None
    True
    """
    key = low.partition(b" ")[0]
    return key if high <= key + b"!" else None


def key_of(line: bytes) -> bytes:
    """`<urlkey> <timestamp>` of a CDX line.

    >>> key_of(b"com,example)/ 2020 {}")
    b'com,example)/ 2020'
    """
    return b" ".join(line.split(b" ", 2)[:2])


def format_part_line(block: BlockRef) -> bytes:
    """A line of a part, with its line end."""
    key = block.key.replace(b"\x08", b"\x08\1").replace(b"\t", b"\x08\2")
    return b"%b\t%b\t%d\t%d\n" % (key, block.shard, block.offset, block.length)


class NumberedBlock(NamedTuple):
    """A block, and the number of its line in the index; None if the line has no fifth column."""

    block: BlockRef
    number: int | None


def parse_index_line(line: bytes) -> BlockRef:
    """Parse a line of a part, idx or summary, without its line end. Raises ValueError.

    >>> parse_index_line(b"com,example)/ 2020\\tcdx-00000.gz\\t0\\t188\\t1")
    BlockRef(key=b'com,example)/ 2020', shard=b'cdx-00000.gz', offset=0, length=188)
    """
    return parse_numbered_line(line).block


def parse_numbered_line(line: bytes) -> NumberedBlock:
    """Parse a line as `parse_index_line` does, and its number. Raises ValueError."""
    match = _INDEX_LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a line of a ZipNum index: {line[:80]!r}")
    key, shard, offset, length, number = match.groups()
    if b"\x08" in key:
        key = key.replace(b"\x08\2", b"\t").replace(b"\x08\1", b"\x08")
    block = BlockRef(key, shard, int(offset), int(length))
    return NumberedBlock(block, None if number is None else int(number))


def number_of(line: bytes) -> int | None:
    """The number in the fifth column of an index line; None if it has no such column or is not an index line.

    >>> number_of(b"com,example)/ 2020\\tcdx-00000.gz\\t0\\t188\\t1"), number_of(b"k\\tcdx-00000.gz\\t0\\t188")
    (1, None)
    """
    match = _INDEX_LINE.fullmatch(line)
    return int(match[5]) if match is not None and match[5] is not None else None


def format_location(shard: str, location: str) -> bytes:
    """A line of cluster.loc."""
    return f"{shard}\t{location}\n".encode("utf-8", "surrogateescape")


def parse_locations(data: bytes) -> ParsedLocations:
    """Parse cluster.loc. Only LF ends a line; a CR before it is ignored, as pywb ignores it.

    A line with a fault gives a row if it has a shard and a location.

    >>> parse_locations(b"cdx-00000.gz\\t/a\\t/b\\ncdx-00001.gz\\n").rows
    [ShardLocations(shard='cdx-00000.gz', locations=['/a', '/b'])]
    """
    rows, faults = [], []
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    else:
        faults.append(f"line {len(lines)} is truncated")
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\r").decode("utf-8", "surrogateescape")
        shard, *columns = text.split("\t")
        locations = list(filter(None, columns))
        if shard and locations:
            rows.append(ShardLocations(shard, locations))
        if not (shard and columns and all(columns)):
            faults.append(f"line {number} is not a shard with its locations, {line[:80]!r}")
    return ParsedLocations(rows, faults)


ARCHIVES = "archives.tsv"
"""Name of the path index beside a cluster."""

CDX_DIRECTORY = "cdx"
"""The directory beside a cluster that has the index of each archive."""


def format_path_index(places: Iterable[tuple[str, str]]) -> tuple[bytes, list[str]]:
    r"""The content of a path index, and the places that it cannot have: no field can contain a tab or a line end.

    >>> format_path_index([("b", "/2/b"), ("a", "/1/a"), ("b", "/1/b"), ("b", "/2/b"), ("c", "/\n/c")])
    (b'a\t/1/a\nb\t/1/b\t/2/b\n', ['/\n/c'])
    """
    listed: dict[str, set[str]] = {}
    left = []
    for name, place in places:
        if name and place and not {"\t", "\n", "\r"}.intersection(name + place):
            listed.setdefault(name, set()).add(place)
        else:
            left.append(place)
    lines = ("\t".join((name, *sorted(found))) for name, found in listed.items())
    return b"".join(sorted(_encoded(f"{line}\n") for line in lines)), left


def parse_path_index(data: bytes) -> Iterator[tuple[str, list[str]]]:
    r"""The file names with their places; lines without a tab are skipped.

    >>> list(parse_path_index(b"a\t/1/a\t/2/a\nb\n"))
    [('a', ['/1/a', '/2/a'])]
    """
    for line in data.split(b"\n"):
        name, *places = line.rstrip(b"\r").split(b"\t")
        if places:
            yield _decoded(name), [_decoded(place) for place in places if place]


def find_places(data: bytes, filename: str) -> list[str]:
    r"""The places of one file name, in lines of any order. Empty if it is not listed.

    It may have several lines, one after the other, as in a sorted file.

    >>> find_places(b"b\t/b\r\na\t/1/a\t/2/a\na\t/3/a", "a"), find_places(b"", "a")
    (['/1/a', '/2/a', '/3/a'], [])
    """
    wanted = _encoded(filename) + b"\t"
    start = 0 if data.startswith(wanted) else data.find(b"\n" + wanted) + 1
    found: list[str] = []
    while data.startswith(wanted, start):
        end = data.find(b"\n", start) + 1 or len(data)
        found += next(parse_path_index(data[start:end]))[1]
        start = end
    return found


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
