"""zipnumclusterjob.py: under mrjob's local runners it uses the split file and writes the bytes of `cdxmill zipnum`."""

from __future__ import annotations

import gzip
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import RunCdxmill
from tests.jobs.conftest import HardInputs, RunJob, page_line

CORES = 2


class Clusters(NamedTuple):
    """The local engine's cluster and one that a job built, with how the job ended and what it left behind."""

    expected: Path
    built: Path
    status: int
    stderr: str
    tasks: Path


def split_points() -> list[bytes]:
    """For 12 shards: empty ones at both ends and between, one with nearly all; keys, whole lines, with tabs."""
    return [
        b"!",
        b"!!",
        b"!!!",
        b"01 20200101000000",
        b"com,example)/page/0000002 20200101000000",
        page_line(3),
        b"com,example)/page/0000003 20200101000001",
        b"net,\ttab)/ 2",
        b"net,zz)/ 20200101000000",
        b"net,zzz)/ 20200101000000",
        b"\xff\xff\xff\xff",
    ]


@pytest.fixture(scope="module")
def split_file(tmp_path_factory: pytest.TempPathFactory, run_script: RunJob) -> Path:
    directory = tmp_path_factory.mktemp("splits")
    (directory / "splits.txt").write_bytes(b"\n".join(split_points()) + b"\n")
    done = run_script(
        "jobs/seqfileutils.py", "--copyfrom", directory / "splits.txt", directory / "splits.seq"
    )
    assert done.returncode == 0, done.stderr
    return directory / "splits.seq"


@pytest.fixture(scope="module")
def expected(
    tmp_path_factory: pytest.TempPathFactory,
    hard_inputs: HardInputs,
    split_file: Path,
    run_cdxmill: RunCdxmill,
) -> Path:
    directory = tmp_path_factory.mktemp("expected")
    options = ["--splits", split_file, "--location", "/published", "-p", "1", "-q"]
    done = run_cdxmill("zipnum", "-o", directory, *options, *hard_inputs.paths)
    assert done.returncode == 1, done.stderr  # for the two bad inputs
    return directory


@pytest.fixture(scope="module", params=["inline", "local"])
def clusters(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    hard_inputs: HardInputs,
    split_file: Path,
    expected: Path,
    run_job: RunJob,
) -> Clusters:
    """Run in the inputs' folder with relative paths, for the tasks have working folders of their own."""
    directory = tmp_path_factory.mktemp(request.param)
    options = ["--num-cores", str(CORES), "--cleanup", "NONE", "--local-tmp-dir", directory / "tmp"]
    places = ["--splitfile", split_file, "--zipnum-dir", directory / "cluster", "--location", "/published"]
    names = [path.name for path in hard_inputs.paths]
    done = run_job(
        "zipnumclusterjob", request.param, *options, *places, *names, cwd=hard_inputs.paths[0].parent
    )
    return Clusters(expected, directory / "cluster", done.returncode, done.stderr.decode(), directory / "tmp")


def files_of(directory: Path) -> dict[str, bytes]:
    """Its files; without the record of the run, which has the paths of the inputs as they were named."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != ".finished.json"}


def test_every_file_of_the_cluster_equals_the_local_engines(clusters: Clusters) -> None:
    expected, built = files_of(clusters.expected), files_of(clusters.built)
    assert sorted(built) == sorted(expected)
    assert [name for name in expected if built[name] != expected[name]] == []


def test_the_shards_are_the_sorted_set_of_the_lines_cut_at_the_split_points(
    clusters: Clusters, hard_inputs: HardInputs
) -> None:
    points = split_points()
    shards: list[list[bytes]] = [[] for _ in range(len(points) + 1)]
    for line in sorted(hard_inputs.lines):
        shards[bisect_right(points, line)].append(line)
    assert sum(not shard for shard in shards) >= 3, "the test has empty shards"
    assert max(map(len, shards)) > 0.9 * len(hard_inputs.lines), (
        "the test has one shard with nearly all lines"
    )
    for number, lines in enumerate(shards):
        data = gzip.decompress((clusters.built / f"cdx-{number:05d}.gz").read_bytes())
        assert data == b"".join(line + b"\n" for line in lines)


def test_mapper_and_reducer_tasks_run_under_mrjob(clusters: Clusters, hard_inputs: HardInputs) -> None:
    (step,) = clusters.tasks.glob("*/step/000")
    mapped = [path.stat().st_size for path in step.glob("mapper/*/output")]
    reduced = [path.stat().st_size for path in step.glob("reducer/*/input")]
    assert len(mapped) >= 2
    assert len(reduced) >= 2
    assert len(split_points()) + 1 > 2 * CORES, "more shards than mrjob makes reducers"
    assert sum(reduced) == sum(mapped) < sum(map(len, hard_inputs.lines)), "chunks are compressed"


def test_bad_inputs_are_reported_and_affect_no_others(clusters: Clusters, hard_inputs: HardInputs) -> None:
    assert clusters.status == 1
    told = clusters.stderr.splitlines()
    assert len(told) == 2
    for path, line in zip(sorted(path.name for path in hard_inputs.bad), sorted(told), strict=True):
        assert line.startswith(f"{path}: ")
        assert "; none of its lines are in the cluster: " in line


def test_convert_numlines_and_compressor_are_used(
    tmp_path: Path, run_cdxmill: RunCdxmill, run_job: RunJob
) -> None:
    lines = [f"com,a)/{number:03d} 2020 http://a.com/ 12 {number} a,b.warc.gz" for number in range(50)]
    cdx = tmp_path / "six.cdx"
    cdx.write_text("\n".join(lines))
    (tmp_path / "splits.txt").write_text("com,a)/020 2020\n")
    same = [
        "--convert",
        "--numlines",
        "7",
        "--compressor",
        "zlib",
        "--level",
        "9",
        "--location",
        "/published/x",
    ]
    ours = run_cdxmill("zipnum", "-o", tmp_path / "a", "--splits", tmp_path / "splits.txt", *same, cdx)
    assert ours.returncode == 0, ours.stderr
    (tmp_path / "b/.run-1").mkdir(parents=True)
    (tmp_path / "b/.run-1/.cdx-00000.gz.tmp").write_bytes(b"of a run that was killed")
    places = ["--splitfile", "splits.txt", "--output-dir", "b", "--no-output", "--shards", "2"]
    job = run_job("zipnumclusterjob", "inline", *places, *same, "six.cdx", cwd=tmp_path)
    assert (job.returncode, job.stdout) == (0, b""), job.stderr
    assert files_of(tmp_path / "b") == files_of(tmp_path / "a")


def test_a_cluster_is_replaced_on_request_only(
    tmp_path: Path, run_cdxmill: RunCdxmill, run_job: RunJob
) -> None:
    """As with `cdxmill zipnum`: the same run is done already, another one is refused."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.cdx").write_text(f"com,{name})/ 2020 {{}}\n")
    (tmp_path / "splits.txt").write_text("com,b)/\n")
    places = ["--splitfile", "splits.txt", "--zipnum-dir", "C"]
    assert run_job("zipnumclusterjob", "inline", *places, "a.cdx", cwd=tmp_path).returncode == 0
    before = files_of(tmp_path / "C")
    (tmp_path / "C/mine.txt").write_bytes(b"mine")
    again = run_job("zipnumclusterjob", "inline", *places, "a.cdx", cwd=tmp_path)
    assert (again.returncode, b"C: 1 line in 1 block" in again.stderr) == (0, True), again.stderr
    assert run_cdxmill("zipnum", "--splits", "splits.txt", "-o", "C", "a.cdx", cwd=tmp_path).returncode == 0
    other = run_job("zipnumclusterjob", "inline", *places, "b.cdx", cwd=tmp_path)
    assert (other.returncode, other.stderr.count(b"\n")) == (2, 1)
    assert b"already has a cluster of other inputs or options" in other.stderr
    assert files_of(tmp_path / "C") == {**before, "mine.txt": b"mine"}
    own = run_job("zipnumclusterjob", "inline", "--replace", *places, "C/cdx-00000.gz", cwd=tmp_path)
    assert (own.returncode, b"C/cdx-00000.gz: is an input" in own.stderr) == (2, True), own.stderr
    assert files_of(tmp_path / "C") == {**before, "mine.txt": b"mine"}
    done = run_job("zipnumclusterjob", "inline", "--replace", *places, "b.cdx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert gzip.decompress((tmp_path / "C/cdx-00001.gz").read_bytes()) == b"com,b)/ 2020 {}\n"
    assert files_of(tmp_path / "C")["mine.txt"] == b"mine"
    assert {path.name for path in tmp_path.iterdir()} == {"C", "a.cdx", "b.cdx", "splits.txt"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--zipnum-dir", "c", "-r", "hadoop", "a.cdx"], "--splitfile"),
        (["--splitfile", "splits.txt", "a.cdx"], "--zipnum-dir"),
        (["--splitfile", "splits.txt", "--zipnum-dir", "c"], "no input"),
        (["--splitfile", "absent", "--zipnum-dir", "c", "a.cdx"], "absent: cannot be read"),
        (["--splitfile", "splits.txt", "--shards", "3", "--zipnum-dir", "c", "a.cdx"], "gives 2 shards"),
        (["--splitfile", "splits.txt", "--zipnum-dir", "c", "a.cdx", "b.cdx"], "must have the same format"),
        (["--splitfile", "splits.txt", "--zipnum-dir", "c", "--numlines", "0", "a.cdx"], "--numlines"),
        (
            ["--splitfile", "splits.txt", "--zipnum-dir", "s3://b/c", "a.cdx"],
            "not a directory of this machine",
        ),
        (["--splitfile", "splits.txt", "--zipnum-dir", "c", "--level", "13", "a.cdx"], "level 13"),
        (
            ["--splitfile", "splits.txt", "--zipnum-dir", "c", "-r", "hadoop", "a.cdx"],
            "no hadoop command found",
        ),
        (
            ["--splitfile", "splits.txt", "--zipnum-dir", "c", "-r", "spark", "a.cdx"],
            "unsupported runner spark",
        ),
    ],
)
def test_wrong_usage_is_reported_in_one_line_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    reason: str,
) -> None:
    from cdxmill.jobs.launcher.stream_job import launch
    from cdxmill.jobs.zipnum_job import ZipNumClusterJob

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    Path("splits.txt").write_bytes(b"b 2020\n")
    Path("a.cdx").write_bytes(b"a 2020 {}\n")
    Path("b.cdx").write_bytes(b"a 2020 three fields\n")
    assert launch(ZipNumClusterJob(["--no-conf", *arguments])) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cdx", "b.cdx", "splits.txt"]


def test_a_file_url_is_a_directory(tmp_path: Path, run_job: RunJob) -> None:
    """The shards were written to `file:` in the working directory."""
    (tmp_path / "splits.txt").write_bytes(b"b 2020\n")
    (tmp_path / "a.cdx").write_bytes(b"a 2020 {}\n")
    place = (tmp_path / "new" / "a b").as_uri()
    done = run_job(
        "zipnumclusterjob",
        "inline",
        "--splitfile",
        "splits.txt",
        "--zipnum-dir",
        place,
        "a.cdx",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new/a b/cluster.json").exists()


def test_a_missing_shard_leaves_no_finished_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.launcher.stream_job import launch
    from cdxmill.jobs.zipnum_job import ZipNumClusterJob

    monkeypatch.setattr(ZipNumClusterJob, "run_reducer", lambda job, step_num=0: None)
    (tmp_path / "splits.txt").write_bytes(b"b 2020\n")
    (tmp_path / "a.cdx").write_bytes(b"a 2020 {}\n")
    places = ["--splitfile", str(tmp_path / "splits.txt"), "--zipnum-dir", str(tmp_path / "c")]
    assert launch(ZipNumClusterJob(["--no-conf", *places, str(tmp_path / "a.cdx")])) == 3
    assert "only 0 of 2 shards were written; run the job again" in capsys.readouterr().err
    assert not (tmp_path / "c/cluster.json").exists()


def test_only_what_an_earlier_run_of_the_job_left_is_deleted(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher.stream_job import launch
    from cdxmill.jobs.zipnum_job import ZipNumClusterJob

    (tmp_path / "splits.txt").write_bytes(b"b 2020\n")
    (tmp_path / "a.cdx").write_bytes(b"a 2020 {}\n")
    for name in ("c/.run-17", "c/.run-notes", "mine"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "cdx-00000.gz").write_bytes(b"x")
    (tmp_path / "c/.run-18").symlink_to(tmp_path / "mine")
    places = ["--splitfile", str(tmp_path / "splits.txt"), "--zipnum-dir", str(tmp_path / "c")]
    assert launch(ZipNumClusterJob(["--no-conf", "-q", *places, str(tmp_path / "a.cdx")])) == 0
    left = {path.name for path in (tmp_path / "c").glob(".run-*")}
    assert left == {".run-notes", ".run-18"}
    for name in ("c/.run-notes", "mine"):
        assert (tmp_path / name / "cdx-00000.gz").read_bytes() == b"x"
