"""Dictionaries in frames: what is one, and how large it may be."""

from __future__ import annotations

import pytest
import zstandard

from cdxmill.formats.archives.zstd_dictionary import (
    DICTIONARY,
    MAX_DICTIONARY,
    MAX_ID,
    MIN_ID,
    TooFewSamples,
    dictionary_frame,
    dictionary_id,
    dictionary_of,
    train,
    with_own_id,
)

CONTENT = b"any text is a dictionary, too"


def test_a_dictionary_comes_back_from_its_frame() -> None:
    for frame in (
        dictionary_frame(CONTENT),
        b"\x5d\x2a\x4d\x18" + len(CONTENT).to_bytes(4, "little") + CONTENT,
    ):
        assert dictionary_of(frame).as_bytes() == CONTENT


def test_a_small_frame_with_a_huge_dictionary_is_refused() -> None:
    assert len(dictionary_of(dictionary_frame(bytes(MAX_DICTIONARY))).as_bytes()) == MAX_DICTIONARY
    frame = dictionary_frame(bytes(MAX_DICTIONARY + 1))
    assert len(frame) < 10_000
    with pytest.raises(zstandard.ZstdError, match="larger than 16 MiB"):
        dictionary_of(frame)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(MAX_DICTIONARY + 1), "is larger than 16 MiB"),
        (bytes(MAX_DICTIONARY), "is not a zstd dictionary"),
        (DICTIONARY + bytes(3), "is not a zstd dictionary"),
        (DICTIONARY + bytes(4), "is a corrupt zstd dictionary"),
        (CONTENT, "is not a zstd dictionary"),
    ],
)
def test_what_is_no_dictionary_has_no_id(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        dictionary_id(data)


def test_too_few_samples_are_an_error_with_the_reason() -> None:
    for samples in ([], [b"x"], [b"abc"] * 7):
        with pytest.raises(TooFewSamples, match=r"^[a-z]"):
            train(samples, 256, 3)


def test_an_own_id_depends_on_the_content_alone() -> None:
    smallest, largest, after = b"\x9d\n\xd9m", b"t#\xd8s", b"\xe4\xbe;\x16"  # by their CRC32
    one, *others = (DICTIONARY + bytes(4) + end for end in (b"a", smallest, largest, after))
    ids = [int.from_bytes(with_own_id(data, None)[4:8], "little") for data in (one, *others)]
    assert MIN_ID < ids[0] < MAX_ID
    assert ids[1:] == [MIN_ID, MAX_ID, MIN_ID]
    assert with_own_id(with_own_id(one, 77), None) == with_own_id(one, None)
