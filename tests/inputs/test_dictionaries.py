"""Zstandard dictionaries that a user names, or that were sent with a job."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import zstandard

from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.archives import zstd_dictionary
from cdxmill.formats.archives.zstd_dictionary import all_known, train
from cdxmill.inputs.dictionaries import SENT, read_dictionary, use_dictionary, use_sent_dictionary
from cdxmill.storage import patience

from ..storage.range_server import serving

WORDS = [random.Random(number).randbytes(9).hex().encode() for number in range(50)]
SAMPLES = [b" ".join(random.Random(number).sample(WORDS, 20)) for number in range(100)]


@pytest.fixture(autouse=True)
def dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The dictionary `x.dict`. No other one is known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(zstd_dictionary, "_KNOWN", dict[int, zstandard.ZstdCompressionDict]())
    data = train(SAMPLES, 2000, 3)
    Path("x.dict").write_bytes(data)
    return data


def test_a_dictionary_is_read_from_a_path_or_a_url(dictionary: bytes) -> None:
    with serving() as server:
        server.add("/x", dictionary)
        for place in ("x.dict", Path("x.dict"), f"{server.url}/x"):
            assert read_dictionary(place) == dictionary


@pytest.mark.parametrize(("more", "is_refused"), [(-1, True), (0, False)])
def test_the_largest_dictionary_is_what_other_programs_read(
    more: int, is_refused: bool, dictionary: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstd_dictionary, "LARGEST_READ", len(dictionary) + more)
    if is_refused:
        with pytest.raises(
            UsageError, match=r"^--dictionary: x\.dict: is larger than 0 MiB, and other programs"
        ):
            read_dictionary("x.dict")
    else:
        assert read_dictionary("x.dict") == dictionary


def test_the_limit_is_told_in_mib(dictionary: bytes) -> None:
    Path("large").write_bytes(dictionary + bytes(zstd_dictionary.LARGEST_READ))
    with pytest.raises(
        UsageError, match=r"is larger than 8 MiB, .*; make one with cdxmill train-dictionary$"
    ):
        read_dictionary("large")


def test_what_is_no_dictionary_is_wrong_usage(dictionary: bytes) -> None:
    Path("bad").write_bytes(dictionary[:40] + bytes(len(dictionary) - 40))
    Path("text").write_bytes(b"text")
    for name, reason in (
        ("bad", r"is a corrupt zstd dictionary; make one"),
        ("text", r"is not a zstd dictionary .*; make one"),
        ("absent", r"cannot be read \(No such file"),
    ):
        with pytest.raises(UsageError, match=rf"^--dictionary: {name}: {reason}"):
            use_dictionary(name)
    assert all_known() == []


def test_a_server_that_is_busy_stops_the_run(dictionary: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    with serving() as server:
        server.add("/x", dictionary).statuses = [503] * 99
        with pytest.raises(StoppedError, match=r"^--dictionary: http"):
            read_dictionary(f"{server.url}/x")


def test_a_dictionary_is_known_once_it_was_named_or_sent(dictionary: bytes) -> None:
    use_dictionary(None)
    use_sent_dictionary()
    assert all_known() == []
    use_dictionary("x.dict")
    assert all_known() == [dictionary]
    zstd_dictionary._KNOWN.clear()
    Path(SENT).write_bytes(dictionary)
    use_sent_dictionary()
    assert all_known() == [dictionary]
