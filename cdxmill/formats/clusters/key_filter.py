"""A small filter of the keys of an overlay (docs/formats/zipnum.md): it says that a key is not there, or may be there.

    16 bytes   b"cdxmill keys 1\\n\\n"
    32 bytes   the SHA-256 of the overlay that it belongs to
    8 bytes    the CRC-32 of the words, as a number
    words      8 bytes each, little-endian

A key sets 6 bits of one word: BLAKE2b of the key, 16 bytes, is two numbers. The first, modulo the number of words, is the
number of the word. Of the second, each 6 bits from the lowest one on are the number of a bit. For the keys of a host
there is one more key, `com,example)`. With 48 bits for each line, about 1 of 10,000 other keys seems to be there.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from cdxmill.formats.clusters.zipnum import one_key

_MAGIC = b"cdxmill keys 1\n\n"
_HEAD = struct.Struct("<16s32sQ")
_WORD = 8
_BITS, _PER_KEY = 6, 48


class KeyBits(NamedTuple):
    """What a filter is asked for: the number of the word before the modulo, and the bits that must be set in it."""

    word: int
    bits: int


def bits_of(key: bytes) -> KeyBits:
    """The bits of a key."""
    word, number = struct.unpack("<QQ", blake2b(key, digest_size=16).digest())
    bits = 0
    for _ in range(_BITS):
        bits |= 1 << (number & 63)
        number >>= 6
    return KeyBits(word, bits)


def wanted_bits(low: bytes, high: bytes) -> KeyBits | None:
    """The bits of the one key, or the one host, that has all lines >= `low` and < `high`; None if there are several.

    >>> wanted_bits(b"com,example)/a", b"com,example)/a!") == bits_of(b"com,example)/a")
    True
    >>> wanted_bits(b"com,example)/a", b"com,example)/b") == bits_of(b"com,example)")
    True
    >>> wanted_bits(b"com,example", b"com,example-") is None
    True
    """
    if (key := one_key(low, high)) is not None:
        return bits_of(key)
    host, end, _ = low.partition(b")")
    return bits_of(host + end) if end and high <= host + b"*" else None


class FilterBuilder:
    """Makes the filter of an overlay with at most `lines` lines, which come sorted."""

    def __init__(self, lines: int) -> None:
        self._words = [0] * max(1, -(-lines * _PER_KEY // 64))
        self._key = self._host = b""

    def add(self, lines: Iterable[bytes]) -> None:
        """Add the keys of lines, and their hosts."""
        for line in lines:
            key = line[: line.find(b" ")]
            if key != self._key:
                self._key = key
                self._set(key)
                host, end, _ = key.partition(b")")
                if host != self._host:
                    self._host = host
                    self._set(host + end)

    def _set(self, key: bytes) -> None:
        found = bits_of(key)
        self._words[found.word % len(self._words)] |= found.bits

    def finish(self, sha256: str) -> bytes:
        """The filter of the overlay with this SHA-256."""
        data = struct.pack(f"<{len(self._words)}Q", *self._words)
        return _HEAD.pack(_MAGIC, bytes.fromhex(sha256), zlib.crc32(data)) + data


class KeyFilter:
    """A filter that was read. Raises ValueError if it is corrupt, or that of another overlay."""

    def __init__(self, data: bytes, sha256: str) -> None:
        if len(data) < _HEAD.size + _WORD or len(data) % _WORD != _HEAD.size % _WORD:
            raise ValueError("is not a key filter")
        magic, digest, checksum = _HEAD.unpack_from(data)
        if magic != _MAGIC or zlib.crc32(data[_HEAD.size :]) != checksum:
            raise ValueError("is not a key filter, or corrupt")
        if digest.hex() != sha256:
            raise ValueError("belongs to another overlay")
        self._words = array("Q", data[_HEAD.size :])
        if struct.pack("=Q", 1) != struct.pack("<Q", 1):  # the words of this machine have another order
            self._words.byteswap()
        self._count = len(self._words)

    def may_have(self, wanted: KeyBits) -> bool:
        """Whether the overlay may have lines of the key."""
        number, bits = wanted
        return self._words[number % self._count] & bits == bits
