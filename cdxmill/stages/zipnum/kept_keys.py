"""The keys of a block or section that questions came to before. They say that it has no line of a URL, so it is not inflated.

text -> the CRC-32 of each key, sorted, 4 bytes each
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from zlib import crc32

from cdxmill.formats.clusters.zipnum import one_key
from cdxmill.regex import regex

_CONTROL = bytes(range(10)) + bytes(range(11, 32))
"""All bytes that sort before a space but the line end. A key with one may be found by a question for a shorter key."""
_PLAIN = regex(rb"[^\x00-\x20]*")


def key_digests(text: bytes) -> bytes | None:
    """The digests of the keys of all lines; None for a text with control characters."""
    if len(text.translate(None, _CONTROL)) < len(text):
        return None
    keys = {line.split(b" ", 1)[0] for line in text.split(b"\n")}
    return array("I", sorted(map(crc32, keys))).tobytes()


def may_have(digests: bytes, key: bytes) -> bool:
    """Whether a text with these digests may have lines of a key. One of 8 million other keys of a section seems to be there."""
    found, wanted = memoryview(digests).cast("I"), crc32(key)
    place = bisect_left(found, wanted)
    return place < len(found) and found[place] == wanted


def plain_key(low: bytes, high: bytes) -> bytes | None:
    """The `one_key` of a range; None also for a key with control characters, which digests do not tell apart."""
    key = one_key(low, high)
    return key if key is not None and _PLAIN.fullmatch(key) else None
