"""`cdxmill sample`: repeatable, in one pass, the same for any number of processes, and balanced."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.cluster.split_files import read_splits
from cdxmill.commands.sample import choose_files, sample
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.split_points import parse_sequence_file, parse_text
from cdxmill.inputs import cdx_files
from cdxmill.options.clusters import Sampling
from cdxmill.running.failures import Failures
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.stages.lines.sample_lines import WINDOW, Reservoir, add_pieces
from cdxmill.storage.local import open_ranges
from cdxmill.tasks import sampling
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD

from ..material.cdx_files import cdxj, many_lines, write_gzip, write_plain

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


def splits(paths: list[Path], shards: int, seed: int = 0, processes: int = 1) -> list[bytes]:
    failures = Failures()
    points = sample(Sampling(paths, shards=shards, seed=seed, processes=processes), failures)
    assert failures.count == 0
    return points


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files of very different sizes, each a task of its own."""
    monkeypatch.setattr(sampling, "_LEAST", 1)
    lines = many_lines(12_000)
    bounds = [0, 9000, 9100, 11_900, 12_000]
    return [write_gzip(tmp_path / f"{low}.cdx.gz", lines[low:high], 3) for low, high in pairwise(bounds)]


def test_a_seed_gives_the_same_points_with_any_number_of_processes(files: list[Path]) -> None:
    points = splits(files, 5)
    assert len(points) == 4
    assert (
        splits(files, 5, processes=1)
        == splits(files, 5, processes=2)
        == splits(files, 5, processes=4)
        == points
    )
    assert splits(files, 5, seed=1) != points


def test_points_are_keys_of_lines_without_a_trailing_space(files: list[Path]) -> None:
    keys = {b" ".join(line.split(b" ")[:2]) for line in many_lines(12_000)}
    assert set(splits(files, 5)) <= keys


def test_every_byte_is_read_once(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[str] = Counter()

    @contextmanager
    def counting(path: str) -> Iterator[Callable[[int, int], bytes]]:
        with open_ranges(path) as read_at:

            def counted(offset: int, size: int) -> bytes:
                data = read_at(offset, size)
                read[path] += len(data)
                return data

            yield counted

    monkeypatch.setattr(cdx_files, "open_unchanged", counting)
    splits(files, 5)
    assert read == {str(path): path.stat().st_size for path in files}


@pytest.mark.parametrize("processes", [1, 3])
def test_damaged_and_absent_files_are_told_and_leave_no_trace(files: list[Path], processes: int) -> None:
    bad = files[1].with_name("bad.cdx.gz")
    bad.write_bytes(files[0].read_bytes()[:-9])
    failures = Failures()
    paths = [*files, bad, bad.with_name("absent.cdx")]
    points = sample(Sampling(paths, shards=5, processes=processes), failures)
    assert points == splits(files, 5)
    assert failures.inputs == {str(bad), str(bad.with_name("absent.cdx"))}


@pytest.mark.parametrize(
    ("named", "text", "sequence"),
    [("splits.txt", "splits.txt", "splits.seq"), ("a/b", "a/b", "a/b.seq"), ("x.seq", "x.txt", "x.seq")],
)
def test_the_points_are_written_as_text_and_as_a_sequence_file(
    named: str, text: str, sequence: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    path = write_plain(tmp_path / "a.cdx", many_lines(500))
    done = run_cdxmill("sample", "-q", "-s", "4", "-o", tmp_path / "out" / named, path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    points = splits([path], 4)
    assert parse_text((tmp_path / "out" / text).read_bytes()) == points
    assert parse_sequence_file((tmp_path / "out" / sequence).read_bytes()) == points
    assert read_splits(tmp_path / "out" / sequence) == read_splits(tmp_path / "out" / text) == points
    assert sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()) == sorted([text, sequence])  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "shards", "points"), [(3, 5, 2), (1, 5, 0), (0, 5, 0), (5, 5, 4), (5, 1, 0)]
)
def test_fewer_keys_than_shards_give_fewer_points_and_a_note(
    keys: int, shards: int, points: int, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    lines = [
        cdxj(f"com,{number % max(keys, 1)})/", rest=f'{{"n": "{number}"}}')
        for number in range(20 if keys else 0)
    ]
    path = write_plain(tmp_path / "a.cdx", [b" CDX N b", *lines])
    done = run_cdxmill("sample", "-s", str(shards), "-o", tmp_path / "s.txt", path)
    assert done.returncode == 0
    assert len(read_splits(tmp_path / "s.txt")) == points
    notes = done.stderr.decode().splitlines()
    assert len(notes) == (points + 1 < shards)
    assert all(note.startswith("note: ") and f"not {shards}: " in note for note in notes)


@pytest.mark.parametrize("blank", [0, 200_000])
def test_a_guess_of_the_lines_that_is_wrong_costs_no_sample(
    blank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blank lines at the start of a file are taken for lines; then all is read once more."""
    monkeypatch.setattr(sampling, "_SMALL", 1)
    lines = many_lines(6000)
    path = write_plain(tmp_path / "a.cdx", [b""] * blank + lines)
    points = splits([path], 5)
    starts = [0, *(bisect_right(sorted(lines), point) for point in points), len(lines)]
    assert len(points) == 4
    assert max(high - low for low, high in pairwise(starts)) < 1.25 * len(lines) / 5
    assert splits([path], 5) == points


def test_a_fraction_of_the_files_is_read_the_same_ones_with_a_seed(
    run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    cdx = tmp_path / "cdx"
    cdx.mkdir()
    for number in range(10):
        write_plain(cdx / f"{number}.cdx", [cdxj(f"com,host{number})/{page:03d}") for page in range(50)])

    def hosts_sampled(*options: str) -> tuple[set[bytes], str]:
        places = ["-s", "400", "--replace", "-o", tmp_path / "splits.txt", cdx]
        done = run_cdxmill("sample", *options, *places)
        assert done.returncode == 0
        points = read_splits(tmp_path / "splits.txt")
        return {point.partition(b")")[0] for point in points}, done.stderr.decode()

    third, told = hosts_sampled("--fraction", "0.3")
    assert len(third) == 3
    assert told.splitlines()[0] == "note: 3 files of 10 read"
    assert hosts_sampled("--fraction", "0.3", "--seed", "0", "-p", "3")[0] == third
    assert any(hosts_sampled("--fraction", "0.3", "--seed", str(seed))[0] != third for seed in (1, 2))
    assert len(hosts_sampled("--fraction", "0.001")[0]) == 1
    whole, told = hosts_sampled("--fraction", "1")
    assert len(whole) == 10
    assert " read" not in told
    assert " read" not in hosts_sampled("-q", "--fraction", "0.3")[1]


def test_each_file_has_the_same_chance_to_be_read() -> None:
    paths = [f"{number}.cdx" for number in range(10)]
    chosen = [choose_files(paths, 0.3, seed) for seed in range(2000)]
    assert {len(some) for some in chosen} == {3}
    assert all(some == sorted(set(some)) for some in chosen)
    counts = Counter(path for some in chosen for path in some)
    assert (
        sum((counts[path] - 600) ** 2 / 600 for path in paths) < 45
    )  # chi-square, 9 degrees: one in a million


@pytest.mark.parametrize(("fraction", "read"), [(0.0001, 1), (0.1, 1), (0.11, 2), (0.7, 7), (1.0, 10)])
def test_parts_of_files_are_rounded_up(fraction: float, read: int) -> None:
    assert len(choose_files(list("abcdefghij"), fraction, 0)) == read


def test_no_files_are_no_files_whatever_the_fraction() -> None:
    assert choose_files([], 0.5, 0) == []


@pytest.mark.parametrize("fraction", ["0", "-0.1", "1.01", "nan", "inf", "many"])
def test_a_fraction_that_is_none_is_wrong_usage(
    fraction: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    path = write_plain(tmp_path / "a.cdx", many_lines(5))
    done = run_cdxmill("sample", "-s", "2", "--fraction", fraction, "-o", tmp_path / "s.txt", path)
    assert done.returncode == 2
    assert b"--fraction" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "s.txt").exists()
    if fraction != "many":
        with pytest.raises(UsageError, match="above 0"):
            choose_files(["a"], float(fraction), 0)


@pytest.fixture(scope="module")
def skewed() -> list[bytes]:
    """200,000 lines in order; a few hosts have most of them, as in a crawl."""
    source = random.Random(11)
    hosts = [int(source.paretovariate(0.8)) for _ in range(200_000)]
    return sorted(
        b"com,host%d)/%d 2020%010d {}" % (host, source.randrange(999), number) + b" " * WINDOW
        for number, host in enumerate(hosts)
    )


@pytest.mark.parametrize(("shards", "seeds"), [(25, 8), (300, 2)])
def test_the_biggest_shard_has_at_most_a_quarter_more_lines_than_the_mean(
    skewed: list[bytes], shards: int, seeds: int
) -> None:
    """A quarter is for any seed. Of a few, a fifth finds a sample that is half of what it should be, or a little more."""
    worst = 0.0
    for seed in range(seeds):
        reservoir = Reservoir(shards * SAMPLES_PER_SHARD, str(seed))
        add_pieces([text_of(skewed)], reservoir)
        points = pick_splits([key for _, key in reservoir.sample()], shards)
        starts = [0, *(bisect_right(skewed, point) for point in points), len(skewed)]
        assert len(starts) == shards + 1
        worst = max(worst, *(high - low for low, high in pairwise(starts)))
    assert worst / (len(skewed) / shards) <= 1.2
