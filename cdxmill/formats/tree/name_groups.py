"""The names of the archives of a prefix B-tree: a gzip member for each 1024 of them, one name per line.

Its number is its place among all names, from 0.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence

from isal import isal_zlib

GROUP = 1024
"""Names in a group; the last one has fewer."""
MOST_NAMES = 1 << 29
"""Bytes of all names of a file, decompressed: about 5 million names of Common Crawl."""
_LEVEL = 6


def pack_names(names: Sequence[bytes]) -> list[bytes]:
    """The groups of names. Requires: no name has a line end.

    >>> [unpack_names(group) for group in pack_names([b"a.warc.gz", b"b.warc.gz"])]
    [['a.warc.gz', 'b.warc.gz']]
    """
    groups = (names[start : start + GROUP] for start in range(0, len(names), GROUP))
    return [gzip.compress(b"\n".join((*group, b"")), _LEVEL, mtime=0) for group in groups]


def unpack_names(data: bytes) -> list[str]:
    """The names of a group. Raises ValueError if it is corrupt."""
    inflater = isal_zlib.decompressobj(wbits=31)
    try:
        text: bytes = inflater.decompress(data, MOST_NAMES)
    except isal_zlib.IsalError as error:  # type: ignore[misc]
        raise ValueError(f"the names of archives are corrupt ({error})") from None
    if not inflater.eof or inflater.unused_data:
        raise ValueError("the names of archives are corrupt")
    *names, rest = text.decode("utf-8", "surrogateescape").split("\n", GROUP)
    if rest:
        raise ValueError(f"the names of archives are corrupt (more than {GROUP} in a group)")
    return names
