"""Sampling gives every line the same chance, whatever the size of its file; splits divide the sample evenly."""

from __future__ import annotations

import random
import tracemalloc
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.stages.lines.sample_lines import WINDOW, Reservoir, add_pieces, merge_samples

LARGE, SMALL, SIZE, SEEDS = 20_000, 200, 50, 400
FILES = [
    [b"%05d 2020 {}" % number + b" " * WINDOW for number in range(start, stop)]
    for start, stop in ((0, LARGE), (LARGE, LARGE + SMALL))
]
TEXTS = [text_of(lines) for lines in (FILES[0], FILES[1][:7], FILES[1][7:], FILES[1])]
BUCKET = 2000
CRITICAL = 46.9
"""Of chi-square with 10 degrees of freedom: more comes by chance once in a million."""


def one_reservoir(seed: int) -> list[bytes]:
    """Both files past one reservoir, the second in two lists."""
    reservoir = Reservoir(SIZE, str(seed))
    for text in TEXTS[:3]:
        add_pieces([text], reservoir)
    return [key for _, key in reservoir.sample()]


def merged_reservoirs(seed: int) -> list[bytes]:
    """A reservoir a file, as processes have them; the small file first."""
    samples = []
    for number, text in enumerate((TEXTS[3], TEXTS[0])):
        reservoir = Reservoir(SIZE, f"{seed}:{number}")
        add_pieces([text], reservoir)
        samples.append(reservoir.sample())
    return [key for _, key in merge_samples(samples, SIZE)]


def merged_as_equals(seed: int) -> list[bytes]:
    """The known tools' way: a sample of each file, then a sample of the samples."""
    rng = random.Random(seed)
    return rng.sample([line for lines in FILES for line in rng.sample(lines, SIZE)], SIZE)


def chi_square(sample: Callable[[int], list[bytes]]) -> float:
    """How far the counts of ten parts of the large file and of the small one are from a fair share."""
    counts = Counter(int(key[:5]) // BUCKET for seed in range(SEEDS) for key in sample(seed))
    shares = [BUCKET] * (LARGE // BUCKET) + [SMALL]
    expected = [SEEDS * SIZE * share / (LARGE + SMALL) for share in shares]
    return sum((counts[number] - wanted) ** 2 / wanted for number, wanted in enumerate(expected))


@pytest.mark.parametrize("sample", [one_reservoir, merged_reservoirs])
def test_every_line_has_the_same_chance_whatever_the_size_of_its_file(
    sample: Callable[[int], list[bytes]],
) -> None:
    assert chi_square(sample) < CRITICAL


def test_a_merge_of_samples_as_equals_is_found_to_be_biased() -> None:
    assert chi_square(merged_as_equals) > 100 * CRITICAL


def test_every_place_in_a_file_has_the_same_chance() -> None:
    lines = [b"%d" % number for number in range(11)]
    counts: Counter[bytes] = Counter()
    for seed in range(11_000):
        reservoir = Reservoir(2, str(seed))
        add_pieces([text_of(lines)], reservoir)
        counts.update(key for _, key in reservoir.sample())
    assert sum((counts[line] - 2000) ** 2 / 2000 for line in lines) < CRITICAL


@given(
    st.lists(st.sampled_from([b"a 1 {}", b"b 1 {}", b"", b" CDX N b"]), max_size=40),
    st.integers(0, 50),
    st.data(),
)
def test_a_sample_is_of_capture_lines_alone_and_all_of_them_where_they_fit(
    lines: list[bytes], size: int, data: st.DataObject
) -> None:
    reservoir = Reservoir(size, str(1))
    cut = data.draw(st.integers(0, len(lines)))
    add_pieces([text_of(lines[:cut])], reservoir)
    add_pieces([text_of(lines[cut:])], reservoir)
    captures = [line[:3] for line in lines if line and not line.startswith(b" CDX")]
    keys = [key for _, key in reservoir.sample()]
    assert len(keys) == min(size, len(captures))
    assert Counter(keys) <= Counter(captures)


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("size", [100, 4096, 5000, 1 << 20])
def test_the_last_line_of_a_long_text_counts_with_and_without_a_line_end(size: int, end: bytes) -> None:
    """The text comes in pieces of some size."""
    lines = [b"%05d 2020 {}" % number for number in range(2000)]
    text = text_of(lines).removesuffix(b"\n") + end
    reservoir = Reservoir(3000, "1")
    add_pieces([text[at : at + size] for at in range(0, len(text), size)], reservoir)
    assert sorted(key for _, key in reservoir.sample()) == [line[:10] for line in lines]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(1, 20))
def test_an_input_that_is_undone_leaves_no_trace(before: int, undone: int, behind: int, size: int) -> None:
    with_undone, without = (Reservoir(size, str(7)) for _ in range(2))
    for reservoir in (with_undone, without):
        reservoir.begin()
        add_pieces([text_of([b"a%d 1 {}" % number for number in range(before)])], reservoir)
        reservoir.begin()
        if reservoir is with_undone:
            add_pieces([text_of([b"b%d 1 {}" % number for number in range(undone)])], reservoir)
            reservoir.undo()
        add_pieces([text_of([b"c%d 1 {}" % number for number in range(behind)])], reservoir)
    assert with_undone.sample() == without.sample()


@given(st.integers(1, 9), st.integers(0, 999), st.integers(1, 400))
def test_the_sample_does_not_depend_on_how_files_are_divided(parts: int, seed: int, size: int) -> None:
    """Nor on their order. With another number of mappers, Hadoop gave other split points."""
    texts = [
        text_of([b"%d,%d)/ 2020 {}" % (file, line) + b" " * (line % 300) for line in range(100 + 9 * file)])
        for file in range(9)
    ]
    whole = Reservoir(size, str(seed))
    for text in texts:
        whole.begin()
        add_pieces([text], whole)
    samples = []
    for part in range(parts):
        reservoir = Reservoir(size, str(seed))
        for text in reversed(texts[part::parts]):
            reservoir.begin()
            add_pieces([text[:999], text[999:]], reservoir)
        samples.append(reservoir.sample())
    assert merge_samples(samples, size) == whole.sample()
    assert len(whole.sample()) == min(size, sum(text.count(b"\n") for text in texts))


def test_the_order_in_which_samples_come_does_not_matter() -> None:
    samples = []
    for seed in range(5):
        reservoir = Reservoir(30, str(seed))
        add_pieces([text_of([b"%d-%d 1" % (seed, number) for number in range(100)])], reservoir)
        samples.append(reservoir.sample())
    merged = [
        sorted(merge_samples(order, 30)) for order in (samples, samples[::-1], samples[2:] + samples[:2])
    ]
    assert merged[0] == merged[1] == merged[2]
    assert len(merged[0]) == 30


def test_memory_is_that_of_the_sample_not_of_the_lines() -> None:
    reservoir = Reservoir(100, str(1))
    tracemalloc.start()
    for start in range(0, 300_000, 1000):
        add_pieces(
            [text_of([b"com,example)/%d 2020 {}" % number for number in range(start, start + 1000)])],
            reservoir,
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


keys = st.lists(st.integers(0, 40).map(lambda number: b"%02d" % number), max_size=60)


@given(keys, st.integers(1, 12))
def test_as_many_shards_as_asked_for_unless_there_are_fewer_keys(sampled: list[bytes], shards: int) -> None:
    points = pick_splits(sampled, shards)
    distinct = set(sampled)
    assert len(points) == max(0, min(shards, len(distinct)) - 1)
    assert points == sorted(set(points) & distinct - {min(sampled, default=b"")})


@given(st.sets(st.integers(0, 10_000), min_size=1), st.integers(1, 50))
def test_splits_of_different_keys_divide_them_evenly(numbers: set[int], shards: int) -> None:
    sampled = [b"%05d" % number for number in numbers]
    points = pick_splits(sampled, shards)
    sizes = Counter(bisect_right(points, key) for key in sampled)
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert len(sizes) == min(shards, len(sampled))


@given(keys, st.integers(2, 6))
def test_no_shard_has_much_more_than_its_share_and_one_keys_lines(sampled: list[bytes], shards: int) -> None:
    points = pick_splits(sampled, shards)
    if len(points) + 1 == shards and len(set(sampled)) >= 3 * shards:
        sizes = Counter(bisect_right(points, key) for key in sampled)
        assert max(sizes.values()) <= len(sampled) / shards + 2 * max(Counter(sampled).values())
