"""samplecdxjob.py on Hadoop: each line has the same chance, and the split file is as Hadoop itself writes it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.formats.clusters.split_points import parse_text
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.tasks.sampling import sample_inventory

from .conftest import Hadoop
from .job_runs import BUCKET, HDFS, Ended, Jobs, bare_python

LARGE, SMALL = 200_000, 2_000
SHARDS = 5_000
WRITE_SPLITS = Path(__file__).with_name("WriteSplits.java")
MARKER_AT = len(b"SEQ\x06\x19org.apache.hadoop.io.Text\x21org.apache.hadoop.io.NullWritable") + 6


class Sampled(NamedTuple):
    """The job on a file of 200,000 lines and one of 2,000: how it ended, and where its split files are."""

    job: Ended
    directory: str
    files: dict[str, bytes]

    @property
    def points(self) -> list[bytes]:
        return parse_text(self.files["splits.txt"])


def line(name: str, number: int) -> bytes:
    return b"com,example,%b)/a/path/that/is/as/long/as/they/are/%07d 20200101000000 {}\n" % (
        name.encode(),
        number,
    )


@pytest.fixture(scope="module")
def sampled(jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    """A mapper each; one sample a shard, so that the split points are the sampled keys but for the first."""
    directory = tmp_path_factory.mktemp("sample")
    (directory / "sizes").mkdir()
    for name, count in (("large", LARGE), ("small", SMALL)):
        lines = b"".join(line(name, number) for number in range(count))
        (directory / f"sizes/{name}.cdx.gz").write_bytes(gzip.compress(lines, 1))
    jobs.fs("-put", (directory / "sizes").as_uri(), f"{HDFS}/sizes")
    jobs.upload({})  # makes the bucket
    place = f"s3://{BUCKET}/split points"
    job = jobs.run(
        "samplecdxjob",
        *("--python-bin", bare_python("3.9")),
        *("--jobconf", "mapreduce.input.fileinputformat.split.maxsize=10000"),
        *("--shards", str(SHARDS), "--scaler", "1", "--splitfile", f"{place}/splits.seq", "hdfs:///sizes"),
    )
    assert job.status == 0, job.stderr
    return Sampled(job, place, jobs.get(place, directory))


def test_a_file_has_as_many_split_points_as_its_share_of_the_lines(sampled: Sampled) -> None:
    """A sampler that draws as many from each mapper as it keeps takes all 2,000 of the small file."""
    assert sampled.job.mappers == 2
    assert len(sampled.points) == SHARDS - 1
    share = SMALL / (LARGE + SMALL)
    mean = SHARDS * share
    deviation = (mean * (1 - share) * (1 - SHARDS / (LARGE + SMALL))) ** 0.5
    assert abs(sum(b",small)" in point for point in sampled.points) - mean) < 5 * deviation


def test_the_points_are_those_of_one_machine(sampled: Sampled, tmp_path: Path) -> None:
    """With one seed, however the files are divided among mappers."""
    for name, count in (("large", LARGE), ("small", SMALL)):
        (tmp_path / f"{name}.cdx").write_bytes(b"".join(line(name, number) for number in range(count)))
    inventory = take_inventory([tmp_path / "large.cdx", tmp_path / "small.cdx"])
    sample = sample_inventory(inventory, 0, SHARDS, 1, True, None)
    assert pick_splits((key for _, key in sample), SHARDS) == sampled.points


def test_all_parts_of_a_file_have_the_same_share(sampled: Sampled) -> None:
    parts = [0] * 10
    for point in sampled.points:
        if b",large)" in point:
            number = int(point.split(b" ")[0].rpartition(b"/")[2])
            parts[10 * number // LARGE] += 1
    mean = sum(parts) / 10
    assert all(abs(count - mean) < 5 * (0.9 * mean) ** 0.5 for count in parts)


def test_a_mapper_passes_on_no_more_than_the_sample(sampled: Sampled) -> None:
    assert sampled.job.counter("Map output records") == SHARDS + SMALL
    assert sampled.job.counter("Reduce input records") == SHARDS + SMALL, "all come to one reducer"


def test_the_points_are_shown_and_stand_as_text_and_as_sequence_file(sampled: Sampled, jobs: Jobs) -> None:
    assert sorted(sampled.files) == ["splits.seq", "splits.txt"]
    assert sampled.job.stdout == sampled.files["splits.txt"]
    shown = jobs.fs("-text", f"{sampled.directory}/splits.seq")
    assert shown == b"".join(point + b"\t(null)\n" for point in sampled.points)


def test_the_sequence_file_is_what_hadoop_writes_but_for_its_marker(
    sampled: Sampled, hadoop: Hadoop, tmp_path: Path
) -> None:
    (tmp_path / "splits.txt").write_bytes(sampled.files["splits.txt"])
    jars = f"{hadoop.home}/share/hadoop/common/lib/*"
    hadoop.run("java", "-cp", jars, WRITE_SPLITS, tmp_path / "splits.txt", tmp_path / "splits.seq")
    theirs, ours = (tmp_path / "splits.seq").read_bytes(), sampled.files["splits.seq"]
    marker = theirs[MARKER_AT : MARKER_AT + 16]
    assert len(theirs) > 300_000
    assert theirs.count(b"\xff\xff\xff\xff" + marker) >= 3
    assert ours.replace(ours[MARKER_AT : MARKER_AT + 16], marker) == theirs
