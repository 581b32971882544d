"""A key filter never denies a key that is there, and seldom has another one."""

from __future__ import annotations

import hashlib
import struct
import zlib
from random import Random

import pytest

from cdxmill.formats.clusters.key_filter import FilterBuilder, KeyFilter, wanted_bits

SHA = hashlib.sha256(b"overlay").hexdigest()
RNG = Random(1)
LINES = sorted({b"com,h%d)/%d 2020 {}" % (RNG.randrange(99), RNG.randrange(10**6)) for _ in range(2000)})


def made() -> bytes:
    builder = FilterBuilder(len(LINES))
    builder.add(LINES[:700])
    builder.add(LINES[700:])
    return builder.finish(SHA)


def asked(keys: KeyFilter, low: bytes, high: bytes) -> bool:
    wanted = wanted_bits(low, high)
    assert wanted is not None
    return keys.may_have(wanted)


def test_all_keys_and_hosts_are_there() -> None:
    keys = KeyFilter(made(), SHA)
    for line in LINES:
        key, host = line.split(b" ")[0], line.split(b")")[0]
        assert asked(keys, key, key + b"!")
        assert asked(keys, key + b" 2019", key + b" 2021")
        assert asked(keys, host + b")/", host + b"*")
        assert asked(keys, key[:-1], key[:-1] + b"\xff")


def test_hardly_any_other_key_is_there() -> None:
    keys = KeyFilter(made(), SHA)
    others = [b"org,other)/%d" % number for number in range(20_000)]
    assert sum(asked(keys, key, key + b"!") for key in others) < 20


@pytest.mark.parametrize(
    "low, high",
    [
        (b"", b"\xff" * 8),
        (b"com,", b"com-"),
        (b"com,a)/", b"com,b)/"),
        (b"com,a", b"com,a)"),
        (b"com,a", b"com,a*"),
        (b"com,a)/", b"com,a*\0"),
    ],
)
def test_of_several_hosts_nothing_is_known(low: bytes, high: bytes) -> None:
    assert wanted_bits(low, high) is None


def test_a_damaged_filter_or_that_of_another_overlay_is_refused() -> None:
    data = made()
    for place in (0, 20, 50, 60, len(data) - 1):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(ValueError, match=r"key filter|another overlay"):
            KeyFilter(bytes(broken), SHA)
    for size in (0, 40, 60, len(data) - 8):
        with pytest.raises(ValueError, match="key filter"):
            KeyFilter(data[:size], SHA)


def test_the_bits_of_a_key_are_those_of_the_specification() -> None:
    builder = FilterBuilder(3)  # 48 bits for each of three lines take three words
    builder.add([b"com,a)/x 2020 {}", b"com,a)/x 2021 {}", b"dns:b 2020 {}"])
    words = [0, 0, 0]
    for key in (b"com,a)/x", b"com,a)", b"dns:b"):
        digest = hashlib.blake2b(key, digest_size=16).digest()
        first, second = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))
        for power in range(6):
            words[first % 3] |= 1 << (second // 64**power) % 64
    data = struct.pack("<3Q", *words)
    head = b"cdxmill keys 1\n\n" + bytes.fromhex(SHA) + zlib.crc32(data).to_bytes(8, "little")
    assert builder.finish(SHA) == head + data


@pytest.mark.parametrize(
    ("lines", "words"), [(0, 1), (1, 1), (2, 2), (4, 3), (5, 4), (1000, 750), (1001, 751)]
)
def test_a_filter_has_48_bits_for_each_line(lines: int, words: int) -> None:
    data = FilterBuilder(lines).finish(SHA)
    assert len(data) == 56 + 8 * words
    assert not asked(KeyFilter(data, SHA), b"com,a)/x", b"com,a)/x!")
    for wrong in (data[:-1], data + b"\0", data[:56], data[:8] + data[16:]):
        with pytest.raises(ValueError, match="key filter"):
            KeyFilter(wrong, SHA)


@pytest.mark.parametrize("data", [b"", bytes(4), bytes(12)])
def test_a_filter_is_of_whole_words_and_has_one(data: bytes) -> None:
    head = b"cdxmill keys 1\n\n" + bytes.fromhex(SHA) + zlib.crc32(data).to_bytes(8, "little")
    with pytest.raises(ValueError, match=r"^is not a key filter$"):
        KeyFilter(head + data, SHA)


def test_a_key_without_a_host_is_there() -> None:
    builder = FilterBuilder(100)
    builder.add([b"com,a)/ 1", b"com,a)/b 1", b"dns:b 1", b"dns:c 1", b"org,a)/ 1"])
    keys = KeyFilter(builder.finish(SHA), SHA)
    for key in (b"com,a)/", b"com,a)/b", b"dns:b", b"dns:c", b"org,a)/"):
        assert asked(keys, key, key + b"!")
    for host in (b"com,a)", b"org,a)"):
        assert asked(keys, host + b"/x", host + b"/xy")
    assert not asked(keys, b"net,a)/x", b"net,a)/xy")
