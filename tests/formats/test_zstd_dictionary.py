"""Dictionaries in frames: what is one, and how large it may be."""

from __future__ import annotations

import pytest
import zstandard

from cdxmill.formats.archives import zstd_dictionary
from cdxmill.formats.archives.zstd_dictionary import (
    DICTIONARY,
    MAX_DICTIONARY,
    MAX_ID,
    MAX_WINDOW,
    MIN_ID,
    Inflater,
    TooFewSamples,
    all_known,
    dictionary_frame,
    dictionary_id,
    dictionary_of,
    know,
    known,
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


def trained() -> bytes:
    """A dictionary of texts that are alike."""
    return train([b"com,example)/page/%d 2020 {}" % (number**5) * 3 for number in range(900)], 2000, 3)


def test_a_trained_dictionary_has_an_id_and_the_size_that_was_asked_for() -> None:
    data = trained()
    assert dictionary_id(data) == MIN_ID
    assert dictionary_id(with_own_id(data, 99999)) == 99999
    assert len(data) <= 2000


def test_a_dictionary_that_was_given_is_found_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_dictionary, "_KNOWN", {})
    one, other = (with_own_id(trained(), number) for number in (40000, 50000))
    frames = [
        zstandard.ZstdCompressor(dict_data=zstandard.ZstdCompressionDict(data)).compress(b"abc")
        for data in (one, other)
    ]
    assert known(frames[0]) is None
    know(one)
    found = known(frames[0])
    assert found is not None
    assert found.as_bytes() == one
    assert known(frames[1]) is None
    assert known(zstandard.compress(b"abc")) is None
    assert [known(data) for data in (b"", b"x" + frames[0], frames[0][:4])] == [None] * 3
    know(other)
    know(other)
    assert all_known() == [one, other]


def test_frames_are_inflated_with_their_dictionary_and_a_bounded_window() -> None:
    own = zstandard.ZstdCompressionDict(trained())
    packer = zstandard.ZstdCompressor(dict_data=own)
    with_own, without = Inflater(own), Inflater()
    assert with_own.whole.decompress(packer.compress(b"abc")) == b"abc"
    assert (with_own.dictionary_id, with_own.dictionary_bytes) == (MIN_ID, own.as_bytes())
    assert (without.dictionary_id, without.dictionary_bytes, without.max_window) == (0, b"", MAX_WINDOW)
    with pytest.raises(zstandard.ZstdError):
        without.whole.decompress(packer.compress(b"com,example)/page/1 2020 {}"))
    parameters = zstandard.ZstdCompressionParameters(window_log=20)
    large = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frame = large.compress(bytes(1 << 21)) + large.flush()
    assert without.new().decompressobj().decompress(frame) == bytes(1 << 21)
    with pytest.raises(zstandard.ZstdError, match="memory"):
        Inflater(max_window=1 << 19).new().decompressobj().decompress(frame)
