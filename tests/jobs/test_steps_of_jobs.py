"""What the options of a job say is what its tasks on Hadoop are sent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill.jobs.nodes.archives import JOB_FILE
from cdxmill.jobs.nodes.recompress import WORK_FILE
from tests.material.held import check_refused

if TYPE_CHECKING:
    from cdxmill.jobs.launcher.hadoop_step import HadoopStep

LINES_PER_MAP = "mapreduce.input.lineinputformat.linespermap"
REDUCES = "mapreduce.job.reduces"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of two archives, and a CDX file without a byte."""
    monkeypatch.chdir(tmp_path)
    Path("list").write_text("/x/a.warc.gz\n/x/b.warc.gz\n")
    Path("empty.cdx").touch()


def step_of(kind: Any, *words: str, alias: str = "hadoop", **settings: str) -> HadoopStep:
    """The step of a job on Hadoop or EMR with these settings."""
    job = kind(["--no-conf", "-r", alias, *words])
    runner: Any = SimpleNamespace(alias=alias, _opts={"jobconf": settings})
    with job.held:
        step: HadoopStep = job.hadoop_step(runner, Path.cwd())
    return step


@pytest.mark.parametrize("what", ["", "tags"])
def test_a_counting_job(what: str) -> None:
    from cdxmill.jobs.count_job import CountJob

    def items(job: object, record: object) -> None:
        """Nothing."""

    kind = type("Own", (CountJob,), {"what": what, "items": items, "__module__": __name__})
    limits = ["--timeout", "7", "--memory", "300"]
    step = step_of(
        kind, *limits, "--warcs-per-map", "5", "--s3_local_temp_dir", "/t", "--output-dir", "o", "list"
    )
    own = ["--what", "tags"] if what else ["--job", "Own"]
    assert step.mapper == ["count", *own, *limits, "--scratch", "/t"]
    assert (step.reducer, step.output_dir, len(step.inputs)) == (["sum"], "o", 2)
    assert step.settings == {LINES_PER_MAP: "5"}
    assert step.defaults == {"mapreduce.map.maxattempts": "4", REDUCES: "1"}, "can be changed by --jobconf"
    assert step.files == ({} if what else {JOB_FILE: Path(__file__)})


def writing_step(name: str, output: str) -> HadoopStep:
    from cdxmill.jobs.index_job import IndexWARCJob
    from cdxmill.jobs.recompress_job import RecompressJob

    kind, option = {
        "index": (IndexWARCJob, "--cdx_bucket"),
        "recompress": (RecompressJob, "--output_bucket"),
    }[name]
    return step_of(kind, option, output, "list")


@pytest.mark.parametrize("name", ["index", "recompress"])
def test_a_job_does_not_write_to_the_output_of_a_run_that_lives(name: str, tmp_path: Path) -> None:
    check_refused(tmp_path / "out", writing_step, name, (tmp_path / "out").as_uri())


@pytest.mark.parametrize("name", ["index", "recompress"])
def test_a_job_that_writes_archives_or_indexes(name: str, tmp_path: Path) -> None:
    step = writing_step(name, (tmp_path / "out").as_uri())
    assert (step.mapper, step.reducer, len(step.inputs)) == ([name], None, 2)
    assert step.settings == {LINES_PER_MAP: "1", REDUCES: "0"}
    assert step.defaults["mapreduce.map.maxattempts"] == "4"
    assert step.files.keys() == ({WORK_FILE} if name == "recompress" else set())


def test_the_sample_job_and_its_output(tmp_path: Path) -> None:
    """Files in HDFS may be empty, all of them."""
    from cdxmill.jobs.sample_job import SampleCDXJob

    empty = (tmp_path / "empty.cdx").as_uri()
    step = step_of(SampleCDXJob, "--shards", "3", "--scaler", "2", "--seed", "9", "--output-dir", "o", empty)
    assert (step.mapper, step.reducer) == (
        ["sample", "--size", "6"],
        ["points", "--size", "6", "--shards", "3"],
    )
    assert step.inputs == [{"paths": [empty], "seed": "9", "size": 6, "ceiling": 1.0}]
    assert (step.settings, step.output_dir) == ({REDUCES: "1"}, "o")


def test_each_of_many_mappers_sends_a_share_of_the_sample() -> None:
    """A reducer could not hold a whole sample of each."""
    from cdxmill.jobs.sample_job import SampleCDXJob

    sizes = {f"{number:02d}.cdx": 100 for number in range(20)} | {"large.cdx": 2000}
    for name, size in sizes.items():
        Path(name).write_bytes(b"x" * size)
    one_file = {"mapreduce.input.fileinputformat.split.maxsize": "190"}
    step = step_of(SampleCDXJob, "--shards", "1000", "--scaler", "1000", *sizes, **one_file)
    assert len(step.inputs) == 21
    sent = {item["paths"][0]: item["size"] for item in step.inputs}
    assert sent.pop("large.cdx") == 1_000_000, "half of all bytes may be most lines"
    assert set(sent.values()) == {min(sent.values())}
    assert min(sent.values()) < 300_000


@pytest.mark.parametrize(
    ("alias", "root", "place"),
    [
        ("hadoop", "/crawl", "/crawl/a.warc.gz"),
        ("hadoop", "s3://b/c", "s3://b/c/a.warc.gz"),
        ("emr", "bucket", "s3://bucket/a.warc.gz"),
        ("emr", "s3://b/c", "s3://b/c/a.warc.gz"),
    ],
)
def test_relative_paths_start_from_the_root_as_the_nodes_know_it(alias: str, root: str, place: str) -> None:
    from cdxmill.jobs.count_job import CountJob

    Path("list").write_text("a.warc.gz\n")
    kind = type("Tags", (CountJob,), {"what": "tags"})
    (item,) = step_of(kind, "--warc_bucket", root, "list", alias=alias).inputs
    assert place in item["archive"]
