"""A key filter never denies a key that is there, and seldom has another one."""

from __future__ import annotations

import hashlib
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


@pytest.mark.parametrize("low, high", [(b"", b"\xff" * 8), (b"com,", b"com-"), (b"com,a)/", b"com,b)/")])
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
