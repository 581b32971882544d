"""A cluster is the sorted set of its input lines, whatever these are and however it was built."""

from __future__ import annotations

import gzip
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.commands.clusters import zipnum
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.running.failures import Failures
from cdxmill.stages.lines import line_lists, merge_lines
from cdxmill.stages.lines.line_lists import is_capture_line
from cdxmill.stages.lines.sort_lines import LineSorter, Run, Slice, cut_runs
from cdxmill.tasks import sampling, sorting

from ..material.cdx_files import as_text, cdxj, content_of, many_lines, sort_unique, write_gzip, write_plain
from ..material.clusters import check_cluster, published, shards_of

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

FIRST = cdxj("com,example)/")

strange_key = st.binary(min_size=1, max_size=12).filter(lambda key: not set(b"\n\0 ").intersection(key))
hostile = st.builds(lambda key: key + b" 2020 {}", strange_key) | st.sampled_from(
    [FIRST, FIRST + b"\r", b"com,ex\xffample)/ 2020 {}", b"", b" CDX N b a", b"com,example)/  {}", b"com,example)/ - {}",
     b"com,example)/" + b"x" * 300_000 + b" 2020 {}", b"com,example)/" + b"x" * 300_000 + b" 2021 {}"]
)  # fmt: skip
contents = st.builds(
    lambda lines, end: b"\n".join([FIRST, *lines]) + end, st.lists(hostile, max_size=15), st.sampled_from([b"\n", b"", b"\n\n"])
) | st.sampled_from([b" CDX N b a m s k r M S V g\n", b"\n\n"])  # fmt: skip
files = st.lists(st.tuples(contents, st.integers(-1, 40)), min_size=1, max_size=5)


def write(directory: Path, number: int, content: bytes, cut: int) -> Path:
    """The content as a plain file, or as gzip of one member or of two that meet at `cut`."""
    path = directory / f"{number}.cdx{'' if cut < 0 else '.gz'}"
    pieces = [content[:cut], content[cut:]] if cut > 0 else [content]
    path.write_bytes(content if cut < 0 else b"".join(map(gzip.compress, pieces)))
    return path


@pytest.fixture
def runs_on_disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Room for 2,000 bytes of lines in the sorter, every file a task of its own; the runs that are left for the shards."""
    names: list[str] = []

    def noting(runs: Sequence[Run], points: Sequence[bytes], open_run: Any) -> list[list[Slice]]:
        names.extend(path.name for path in open_run.__self__.directory.glob("*.run*"))
        assert sorted(names) == sorted(run.name for run in runs)
        return cut_runs(runs, points, open_run)

    monkeypatch.setattr(sorting, "LineSorter", partial(LineSorter, chunk=2000))
    for module in (sorting, merge_lines):
        monkeypatch.setattr(module, "MOST_RUNS", 20)
    monkeypatch.setattr(zipnum, "cut_runs", noting)
    monkeypatch.setattr(sampling, "_LEAST", 1)
    monkeypatch.setattr(line_lists, "BATCH", 500)
    return names


@settings(max_examples=60, deadline=None)
@given(files, st.integers(1, 6), st.sampled_from([1, 2, 3000]))
def test_hostile_lines_of_any_files_come_out_as_sort_prints_them(
    inputs: list[tuple[bytes, int]], shards: int, numlines: int
) -> None:
    with TemporaryDirectory() as place:
        directory = Path(place)
        paths = [write(directory, number, *one) for number, one in enumerate(inputs)]
        failures = Failures()
        build_cluster(
            list(map(str, paths)),
            directory / "C",
            ZipnumOptions(shards=shards, block_lines=numlines, quiet=True),
            failures,
        )
        check_cluster(directory / "C", sort_unique(paths), numlines)
        assert failures.count == 0


@pytest.mark.parametrize("processes", [1, 3])
def test_more_input_than_memory_gives_the_same_bytes(
    tmp_path: Path, processes: int, runs_on_disk: list[str]
) -> None:
    lines = many_lines(6000)
    paths = [write_gzip(tmp_path / f"{number}.cdx.gz", lines[number::7], 150) for number in range(7)]
    paths.append(write_plain(tmp_path / "again.cdx", [*lines[:500], cdxj("x" * 70_000)]))
    points = tuple(sorted(line.split(b" {")[0] for line in lines[:3000:1000]))
    options = ZipnumOptions(shards=4, points=points, block_lines=100, processes=processes, quiet=True)
    build_cluster(list(map(str, paths)), tmp_path / "C", options, Failures())
    check_cluster(tmp_path / "C", sort_unique(paths), 100)
    assert len(runs_on_disk) == 15  # two of each gzip file, one of the plain one: that is read in one piece
    assert sum(name.endswith("+") for name in runs_on_disk) == 14


def flavour_of(path: Path) -> str | None:
    """CDXJ or a number of fields, by the first capture line."""
    lines = content_of(path).split(b"\n")
    first = next((line for line in lines if line and not line.startswith(b" CDX")), None)
    if first is None:
        return None
    fields = first.split(b" ")
    return "cdxj" if fields[2:] and fields[2].startswith(b"{") else str(len(fields))


@pytest.fixture(scope="module")
def sample_flavours(samples: Path, pywb_warcs: Path) -> dict[str, list[Path]]:
    """All CDX files of the samples and of pywb, by what they hold."""
    found = [*samples.rglob("*"), *pywb_warcs.parent.rglob("*")]
    flavours = defaultdict(list)
    for path in sorted(found):
        if path.name.endswith((".cdx", ".cdxj", ".cdx.gz", ".cdxj.gz")) and path.is_file():
            flavours[flavour_of(path) or "cdxj"].append(path)
    return flavours


NO_INDEX = re.compile(
    rb"[^ ]+ \d+\.\d+\.\d+\.\d+ |CDX [Ab] |!OpenWayback-CDXJ|<\?xml|This file is to test|[^ ]+ \d{14}\n"
)
"""How samples start that have no key and timestamp, or only these: lists of ARC records and the like."""
MIXED = "zipnum-sample.cdx.gz", "records-cdx9-jwat-sorted.cdx"
"""Blocks that do not end with LF, so that lines are joined; fields with spaces."""


def is_index(path: Path) -> bool:
    """Whether all lines have a key, a timestamp and the same number of fields."""
    text = content_of(path)
    first = next((line + b"\n" for line in text.split(b"\n") if is_capture_line(line)), FIRST)
    return NO_INDEX.match(first) is None and path.name not in MIXED


def test_all_cdx_files_of_the_samples_make_clusters(
    sample_flavours: dict[str, list[Path]], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    assert sum(map(len, sample_flavours.values())) > 100
    assert {"cdxj", "9", "11"} <= set(sample_flavours)
    used = 0
    for flavour, paths in sample_flavours.items():
        directory, good = tmp_path / flavour, [path for path in paths if is_index(path)]
        done = run_cdxmill("zipnum", "-q", "-o", directory, "-s", "7", "--numlines", "50", *paths)
        assert done.returncode == int(good != paths), done.stderr
        told = [line for line in done.stderr.splitlines() if b": note: " not in line]
        refused = {Path(os.fsdecode(line.split(b": ")[0])) for line in told[: len(paths)]}
        assert refused - {Path("note")} == set(paths) - set(good)
        if not good:  # no file could be read, so nothing was written
            assert not (directory / "cluster.json").exists()
            continue
        check_cluster(directory, sort_unique(good), 50)
        used += len(good)
    assert used > 80


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files over the size that gets a task of its own, so that processes have something to share."""
    directory = tmp_path_factory.mktemp("corpus")
    lines = many_lines(90_000)
    return [
        write_plain(directory / f"{number}.cdx", lines[number * 30_000 :][:45_000]) for number in range(3)
    ]


@pytest.fixture(scope="module")
def reference(corpus: list[Path], run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus as a cluster of 9 shards, by one process."""
    directory = tmp_path_factory.mktemp("reference") / "C"
    done = run_cdxmill("zipnum", "-o", directory, "-s", "9", "-p", "1", *corpus)
    assert done.returncode == 0, done.stderr
    return directory


def test_a_larger_corpus_is_the_sorted_set_too(corpus: list[Path], reference: Path) -> None:
    assert len(shards_of(reference)) == 9
    check_cluster(reference, sort_unique(corpus))


@pytest.mark.parametrize("processes", ["2", "5"])
def test_any_number_of_processes_gives_the_same_bytes(
    processes: str, corpus: list[Path], reference: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    done = run_cdxmill("zipnum", "-o", tmp_path / "C", "-s", "9", "-p", processes, *corpus)
    assert done.returncode == 0, done.stderr
    assert published(tmp_path / "C") == published(reference)


def test_the_order_of_the_inputs_does_not_matter_for_given_split_points(
    corpus: list[Path], reference: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    for splits in ("splits.txt", "splits.seq"):
        done = run_cdxmill(
            "zipnum", "-o", tmp_path / splits, "--splits", reference / splits, *reversed(corpus)
        )
        assert done.returncode == 0, done.stderr
        assert published(tmp_path / splits) == published(reference)


def test_split_points_are_those_of_sample_with_the_same_seed(
    corpus: list[Path], reference: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    done = run_cdxmill("sample", "-o", tmp_path / "s.txt", "-s", "9", *corpus)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.txt").read_bytes() == (reference / "splits.txt").read_bytes()
    assert (tmp_path / "s.seq").read_bytes() == (reference / "splits.seq").read_bytes()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Ten lines, `com,a)/` to `com,j)/`."""
    return write_plain(tmp_path / "small.cdxj", [cdxj(f"com,{letter})/") for letter in "abcdefghij"])


def test_a_line_belongs_right_of_the_last_split_point_up_to_it(
    small: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    points = [b"com,b)/ 20200101000000", b"com,c)/ 2020", b"com,e)/ 20200101000001", cdxj("com,h)/")]
    write_plain(tmp_path / "splits", points)
    done = run_cdxmill("zipnum", "-o", tmp_path / "C", "--splits", tmp_path / "splits", small)
    assert done.returncode == 0, done.stderr
    keys = [[line[4:5] for line in shard.splitlines()] for shard in shards_of(tmp_path / "C")]
    assert keys == [[b"a"], [b"b"], [b"c", b"d", b"e"], [b"f", b"g"], [b"h", b"i", b"j"]]
    assert (tmp_path / "C/splits.txt").read_bytes() == as_text(points)


def test_shards_without_lines_exist_like_any_other(
    small: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    write_plain(tmp_path / "splits", [b"a", b"b", b"com,c)/", b"com,c)/!", b"z", b"zz"])
    done = run_cdxmill("zipnum", "-o", tmp_path / "C", "--splits", tmp_path / "splits", "-s", "7", small)
    assert done.returncode == 0, done.stderr
    check_cluster(tmp_path / "C", sort_unique([small]))
    assert [shard.count(b"\n") for shard in shards_of(tmp_path / "C")] == [0, 0, 2, 1, 7, 0, 0]


def test_a_cluster_without_any_line_is_whole(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    header = write_plain(tmp_path / "header.cdx", [b" CDX N b a m s k r M S V g"])
    done = run_cdxmill("zipnum", "-o", tmp_path / "C", "-s", "3", header)
    assert done.returncode == 0, done.stderr
    check_cluster(tmp_path / "C", b"")


@pytest.mark.parametrize("base", ["/data/index/", "https://example.com/cc-index", "s3://bucket/C"])
def test_locations_are_where_the_cluster_will_be_published(
    base: str, small: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    run_cdxmill("zipnum", "-o", tmp_path / "C", "-s", "3", "--location", base, "--numlines", "2", small)
    check_cluster(tmp_path / "C", sort_unique([small]), 2, base.rstrip("/"))


@pytest.mark.parametrize(("library", "level"), [("zlib", "1"), ("zlib", "9"), ("libdeflate", "12")])
def test_another_compressor_gives_the_same_lines_and_is_recorded(
    library: str, level: str, small: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    done = run_cdxmill(
        "zipnum", "-o", tmp_path / "C", "-s", "2", "--compressor", library, "--level", level, small
    )
    assert done.returncode == 0, done.stderr
    check_cluster(tmp_path / "C", sort_unique([small]))
    manifest = (tmp_path / "C/cluster.json").read_text()
    assert f'"library": "{library}"' in manifest
    assert f'"level": {level}' in manifest


def test_other_files_of_the_directory_are_left_alone(
    small: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    for name in ("notes.txt", "part-00009.bak", "cdx-1.gz", "mycdx-00009.gz"):
        (tmp_path / name).write_bytes(b"mine")
    run_cdxmill("zipnum", "-o", tmp_path, "-s", "2", small)
    for name in ("notes.txt", "part-00009.bak", "cdx-1.gz", "mycdx-00009.gz"):
        assert (tmp_path / name).read_bytes() == b"mine"


def test_fewer_keys_than_shards_are_a_note(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    lines = [cdxj("com,a)/", rest=f'{{"n": "{number}"}}') for number in range(50)] + [cdxj("com,b)/")]
    done = run_cdxmill(
        "zipnum", "-q", "-o", tmp_path / "C", "-s", "9", write_plain(tmp_path / "a.cdx", lines)
    )
    assert done.returncode == 0
    (note,) = done.stderr.splitlines()
    assert note.startswith(b"note: 2 shards, not 9: ")
    assert [shard.count(b"\n") for shard in shards_of(tmp_path / "C")] == [50, 1]


def test_lines_of_six_fields_become_cdxj_on_request(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    rows = [
        f"com,{letter})/ 2020 http://{letter}.com/ 17 {number} a.warc.gz"
        for number, letter in enumerate("cab")
    ]
    path = write_gzip(tmp_path / "old.cdx.gz", [b" CDX N b a S V g", *(row.encode() for row in rows)])
    done = run_cdxmill("zipnum", "-o", tmp_path / "C", "-s", "2", "--convert", path)
    assert done.returncode == 0, done.stderr
    check_cluster(
        tmp_path / "C",
        b'com,a)/ 2020 {"url": "http://a.com/", "length": "17", "offset": "1", "filename": "a.warc.gz"}\n'
        b'com,b)/ 2020 {"url": "http://b.com/", "length": "17", "offset": "2", "filename": "a.warc.gz"}\n'
        b'com,c)/ 2020 {"url": "http://c.com/", "length": "17", "offset": "0", "filename": "a.warc.gz"}\n',
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"com,example)/ 20200101000000 http://example.com/ 9 0 a.warc.gz\n", 0),
        (gzip.compress(b"\n"), 0),
        (b"com,example)/ 20200101000000 http://example.com/ text/html 200 AAAA - 0 a.warc.gz\n", 2),
        (FIRST + b"\n", 2),
    ],
    ids=["6", "empty", "9", "cdxj"],
)
def test_only_lines_of_6_fields_are_converted(
    text: bytes, status: int, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "a.cdx").write_bytes(text)
    done = run_cdxmill("zipnum", "-q", "--convert", "-s", "1", "-o", tmp_path / "C", tmp_path / "a.cdx")
    assert done.returncode == status, done.stderr
    assert (b"--convert takes CDX lines with 6 fields" in done.stderr) == (status == 2)
    if status == 0:
        (shard,) = (tmp_path / "C").glob("cdx-*.gz")
        assert (b"{" in gzip.decompress(shard.read_bytes())) == text.startswith(b"com,")
