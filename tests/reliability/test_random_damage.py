"""Whatever happens to an archive's bytes: no line is wrong, and nothing is lost silently."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import zstandard

from . import damage
from .accounting import findings
from .damage import Damaged
from .read_back import name_in
from .sources import Source, dictionary_frame, places

ROUNDS = 500


class Archive(NamedTuple):
    """An archive, where its records lie, and whether its container has checksums."""

    data: bytes
    places: list[tuple[int, int]]
    names: list[str]
    is_checked: bool
    dictionary: zstandard.ZstdCompressionDict | None = None


def _packed(parts: list[bytes], source: Source) -> Archive:
    return Archive(b"".join(parts), places(parts), source.names(), True)


def _plain(source: Source) -> Archive:
    ends = [(begin, end - len(source.end)) for begin, end in places(source.parts())]
    return Archive(b"".join(source.parts()), ends, source.names(), False)


def _with_dictionary(source: Source) -> Archive:
    dictionary = source.dictionary()
    frame = dictionary_frame(dictionary.as_bytes())
    frames = source.frames(dictionary)
    return Archive(
        frame + b"".join(frames), places(frames, len(frame)), source.names(), True, dictionary
    )


@pytest.fixture(scope="module", params=["warc.gz", "warc.zst", "warc.zst with dictionary", "warc", "arc.gz", "arc"])
def archive(request: pytest.FixtureRequest, warc: Source, arc: Source) -> Archive:
    """One of each kind."""
    source = warc if "warc" in request.param else arc
    if "dictionary" in request.param:
        return _with_dictionary(source)
    if ".zst" in request.param:
        return _packed(source.frames(), source)
    return _packed(source.members(), source) if ".gz" in request.param else _plain(source)


def test_undamaged_every_record_has_its_line(archive: Archive) -> None:
    found = findings(archive.data)
    assert found.lines == [(begin, end - begin) for begin, end in archive.places]
    assert found.damage == [] and found.notes == []
    assert _names(archive.data, found.lines, archive) == archive.names


def test_a_cut_at_any_offset(archive: Archive) -> None:
    for at in range(0, len(archive.data)):
        _check(damage.cut(archive.data, at), archive)


def test_flipped_bits(archive: Archive) -> None:
    rng = random.Random(2024)
    for _ in range(ROUNDS):
        _check(damage.flip(archive.data, rng.randrange(8 * len(archive.data))), archive)


def test_flipped_bits_in_the_first_bytes_of_records(archive: Archive) -> None:
    for begin, _ in archive.places:
        for bit in range(8 * begin, 8 * (begin + 12)):
            _check(damage.flip(archive.data, bit), archive)


def test_ranges_deleted_inserted_copied_and_overwritten(archive: Archive) -> None:
    for damaged in _at_random(archive, ROUNDS):
        _check(damaged, archive)


def _at_random(archive: Archive, rounds: int) -> Iterator[Damaged]:
    rng = random.Random(7)
    edges = [0, *(end for _, end in archive.places)]
    for _ in range(rounds):
        yield damage.at_random(archive.data, rng, edges)


def _check(damaged: Damaged, archive: Archive) -> None:
    try:
        found = findings(damaged.data)
        names = _names(damaged.data, found.lines, archive)
        _check_names(damaged, archive, dict(zip(found.lines, names, strict=True)))
        lines = set(found.lines)
        for begin, end in archive.places:
            place = damaged.place(begin, end)
            assert place is None or (place, end - begin) in lines or _hides_it(archive, damaged, begin)
        if len(lines) < len(archive.places) and not _may_be_lost_without_a_trace(damaged, archive):
            assert found.damage
    except Exception as error:
        error.add_note(damaged.what)
        raise


def _hides_it(archive: Archive, damaged: Damaged, begin: int) -> bool:
    """Damage to the dictionary reaches every record."""
    return archive.dictionary is not None and damaged.begin < archive.places[0][0]


def _names(data: bytes, lines: list[tuple[int, int]], archive: Archive) -> list[str]:
    return [name_in(data[begin : begin + length], archive.dictionary) for begin, length in lines]


def _check_names(damaged: Damaged, archive: Archive, names: dict[tuple[int, int], str]) -> None:
    for (begin, length), name in names.items():
        touched = begin < damaged.begin + max(damaged.size, 1) and damaged.begin < begin + length
        if archive.is_checked or not touched:
            assert name in archive.names, f"the line at {begin} is for {name}"


def _may_be_lost_without_a_trace(damaged: Damaged, archive: Archive) -> bool:
    """Whole records taken out leave none; nor do the line ends behind a record in a plain file."""
    edges = {0, len(archive.data), *(place for pair in archive.places for place in pair)}
    return damaged.size == 0 and {damaged.begin, damaged.end} <= edges
