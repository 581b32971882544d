"""Sampling a text by its windows gives every line the same chance, as sampling lists of lines does."""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.stages.lines.sample_lines import Reservoir, Sample, add_pieces, merge_samples

CRITICAL = 46.9
"""Of chi-square with 10 degrees of freedom: more comes by chance once in a million."""


def sampled(text: bytes, size: int, seed: int = 1, ceiling: float = 1.0, piece: int = 1 << 12) -> Sample:
    reservoir = Reservoir(size, str(seed), ceiling)
    add_pieces((text[start : start + piece] for start in range(0, len(text), piece)), reservoir)
    return reservoir.sample()


@pytest.mark.parametrize("ceiling", [1.0, 0.1])
@pytest.mark.parametrize("width", [3, 90, 400])
def test_every_line_has_the_same_chance_whatever_its_length_and_place(width: int, ceiling: float) -> None:
    """Eleven lots of lines, each of another length: from 100 bytes, as the shortest CDX lines. Several much shorter ones of a
    window would be taken together, which is fair as well, but varies more.
    """
    lots, count, size, seeds = 11, 150, 100, 200
    lines = [
        b"%02d%03d 2020 %b\n" % (lot, number, b"x" * (86 + width * lot))
        for lot in range(lots)
        for number in range(count)
    ]
    text = b"".join(lines)
    counts = Counter(
        key[:2] for seed in range(seeds) for _, key in sampled(text, size, seed, ceiling, len(text))
    )
    expected = sum(counts.values()) / lots
    assert expected == seeds * size / lots
    assert sum((number - expected) ** 2 / expected for number in counts.values()) < CRITICAL
    assert len(counts) == lots


@given(
    st.lists(st.sampled_from([b"a 1 {}", b"b 1 " + b"{}" * 200, b"", b" CDX N b"]), max_size=40),
    st.integers(0, 50),
    st.integers(1, 600),
    st.booleans(),
)
@example([b"b 1 " + b"{}" * 200] * 40, 50, 1, True)
def test_the_lines_of_a_text_are_sampled_however_it_is_cut(
    lines: list[bytes], size: int, piece: int, is_ended: bool
) -> None:
    text = b"\n".join(lines) + b"\n" * is_ended
    captures = Counter(line[:3] for line in lines if line and not line.startswith(b" CDX"))
    sample = sampled(text, size, piece=piece)
    assert sample == sampled(text, size)
    assert len(sample) == min(size, captures.total())
    assert Counter(key for _, key in sample) <= captures


def test_below_a_ceiling_are_the_lines_of_least_priority() -> None:
    text = b"".join(b"%05d 2020 {}\n" % number for number in range(20_000))
    for seed in range(5):
        sample = sampled(text, 5_000, seed, 0.1)
        assert abs(len(sample) - 2000) < 300
        assert all(0 <= priority < 0.1 for priority, _ in sample)
        assert len({key for _, key in sample}) == len(sample)


def test_an_input_that_is_undone_leaves_no_trace() -> None:
    text = b"".join(b"%05d 2020 {}\n" % number for number in range(3_000))
    for ceiling in (1.0, 0.05):
        with_undone, without = (Reservoir(50, str(7), ceiling) for _ in range(2))
        for reservoir in (with_undone, without):
            add_pieces([text], reservoir)
            reservoir.begin()
            if reservoir is with_undone:
                add_pieces([text[:20_000]], reservoir)
                reservoir.undo()
            add_pieces([text], reservoir)
        assert with_undone.sample() == without.sample()


@pytest.mark.parametrize("ceiling", [1.0, 0.11])
@pytest.mark.parametrize("piece", [999, 1 << 20])
def test_the_same_seed_gives_the_same_sample_in_every_version(ceiling: float, piece: int) -> None:
    """Machines of one job may have different ones, and a job is repeated years later."""
    text = b"".join(b"com,h%05d)/ 2020 {%b}\n" % (number, b"x" * (number % 300)) for number in range(5_000))
    sample = sampled(text, 500, 7, ceiling, piece)
    assert [key for _, key in sample[:2]] == [b"com,h00880)/ 2020", b"com,h00760)/ 2020"]
    keys = b"\n".join(key for _, key in sample)
    assert hashlib.sha256(keys).hexdigest()[:16] == "9f5442565146ba25"


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_sample_has_the_size_that_was_asked_for(size: int) -> None:
    text = b"".join(b"%05d 2020 {}\n" % number for number in range(300))
    reservoir = Reservoir(size, "1")
    for _ in range(4):
        reservoir.begin()
        add_pieces([text], reservoir)
        assert len(reservoir.sample()) == size
    assert len(merge_samples([reservoir.sample()] * 3, size)) == size


@pytest.fixture(scope="module")
def skewed() -> list[bytes]:
    """200,000 lines in order, of 110 bytes; a few hosts have most of them, as in a crawl."""
    source = random.Random(11)
    hosts = [int(source.paretovariate(0.8)) for _ in range(200_000)]
    return sorted(
        b"com,host%d)/%d 2020%010d {%b}" % (host, source.randrange(999), number, b"x" * 80)
        for number, host in enumerate(hosts)
    )


@pytest.mark.parametrize("shards", [25, 300])
def test_the_biggest_shard_has_at_most_a_quarter_more_lines_than_the_mean(
    skewed: list[bytes], shards: int
) -> None:
    """Eight files, each with every eighth line, below the ceiling that the command would take."""
    size = 400 * shards
    texts = [b"\n".join(skewed[start::8]) + b"\n" for start in range(8)]
    samples = [
        sampled(text, size, number, min(1.0, 1.25 * size / len(skewed)), 1 << 18)
        for number, text in enumerate(texts)
    ]
    points = pick_splits([key for _, key in merge_samples(samples, size)], shards)
    starts = [0, *(bisect_right(skewed, point) for point in points), len(skewed)]
    assert len(starts) == shards + 1
    assert max(high - low for low, high in pairwise(starts)) / (len(skewed) / shards) <= 1.25
