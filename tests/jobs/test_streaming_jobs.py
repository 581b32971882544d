"""What the launchers send to Hadoop runs there: the step, its files and its tasks, over HDFS, with a `hadoop jar` of the tests."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cdxmill.cli.main import main
from cdxmill.jobs.nodes.hadoop_task import KEYS
from cdxmill.running.lock import run_id
from cdxmill.storage.hadoop import hdfs, pick, site
from cdxmill.storage.location import join, locate
from tests.storage.name_node import NameNode, name_node

ENGINE = Path(__file__).with_name("hadoop_streaming.py")
Launch = Callable[..., int]
COUNTERS: dict[str, int] = {}
"""Those of the last job, as Hadoop shows them."""
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:distutils Version classes are deprecated:DeprecationWarning"
    ),  # of mrjob
]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[NameNode]:
    monkeypatch.setattr(site, "_given", [])  # the list is changed in place
    monkeypatch.setenv("HADOOP_USER_NAME", "archivist")
    monkeypatch.chdir(tmp_path)
    with name_node() as running:
        monkeypatch.setenv("CDXMILL_WEBHDFS", running.address)
        for made in (hdfs._client, pick._picked):
            made.cache_clear()
        yield running
    for made in (hdfs._client, pick._picked, pick._say_once):
        made.cache_clear()


@pytest.fixture
def on_hadoop(node: NameNode, tmp_path: Path) -> Launch:
    """A function that runs a job, and returns its exit status."""
    from cdxmill.jobs.launcher.stream_job import launch

    commands = {"hadoop": f"exec {sys.executable} -I -S {ENGINE}", "yarn": "true"}
    for name, command in commands.items():
        (tmp_path / name).write_text(f'#!/bin/sh\n{command} "$@"\n')
        (tmp_path / name).chmod(0o755)

    def run(kind: Any, *words: str | Path) -> int:
        given = ["--no-conf", "-r", "hadoop", "--hadoop-bin", tmp_path / "hadoop"]
        given += ["--hadoop-streaming-jar", "hadoop-streaming-3.4.2.jar", "--hadoop-tmp-dir", "tmp/mrjob"]
        given += ["--python-bin", sys.executable]
        job = kind([str(word) for word in (*given, *words)])
        status = launch(job)
        COUNTERS.clear()
        COUNTERS.update(job.runner.counters()[0].get("cdxmill", {}) if status < 2 else {})
        left = [path for path in node.files if "/tmp/mrjob/" in path]
        assert left == [], "temporary files"
        return status

    return run


def files_at(url: str) -> dict[str, bytes]:
    names = locate(url).entries()
    return {name: locate(join(url, name)).read_bytes() for name in names if not name.startswith(".")}


@pytest.mark.parametrize("scheme", ["hdfs", "file"])
def test_the_zipnum_job_writes_the_cluster_of_the_command(
    scheme: str, node: NameNode, on_hadoop: Launch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.zipnum_job import ZipNumClusterJob

    first = b"".join(b"com,a)/%03d 2020 {}\n" % number for number in range(40))
    bad = gzip.compress(first)[:-9]
    given = {"a.cdxj": first, "b.cdxj": first[-300:] + b"com,b)/ 2020 {}\n", "bad.cdx.gz": bad}
    for name, data in given.items():
        node.put(f"/cdx/{name}", data)
        Path(name).write_bytes(data)
    Path("splits.txt").write_bytes(b"com,a)/017 2020\ncom,a)/030 2020\n")
    same = ["--numlines", "7", "--compressor", "zlib", "--level", "9", "--location", "/published"]
    assert main(["zipnum", "-q", "--splits", "splits.txt", "-o", "ours", *same, *given]) == 1
    url = "hdfs:///c" if scheme == "hdfs" else (tmp_path / "c").as_uri()
    words = ["--splitfile", "splits.txt", "--zipnum-dir", url, "--output-dir", "hdfs:///parts", *same]
    capfd.readouterr()
    assert (
        on_hadoop(ZipNumClusterJob, "-q", *words, "hdfs:///cdx/a.cdxj", "b.cdxj", "hdfs:///cdx/bad.cdx.gz")
        == 1
    )
    told = capfd.readouterr().err
    assert (told.count("\n"), "hdfs:///cdx/bad.cdx.gz: " in told) == (1, True), told
    assert files_at(url) == files_at("ours")
    parts = {name: data for name, data in files_at("ours").items() if name.startswith("part-")}
    assert files_at("hdfs:///parts") == parts


def test_the_index_job_writes_the_files_of_the_command(
    on_hadoop: Launch, node: NameNode, pywb_warcs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.index_job import IndexWARCJob

    whole = (pywb_warcs / "example.warc.gz").read_bytes()
    (tmp_path / "cut.warc.gz").write_bytes(whole[:-10])
    paths = [pywb_warcs / "example.warc.gz", tmp_path / "cut.warc.gz", pywb_warcs / "iana.warc.gz"]
    Path("list").write_text("".join(f"{path}\n" for path in paths))
    assert main(["index", "-q", "-o", "ours", "--manifest", "list"]) == 1
    words = ["--cdx_bucket", "cdx", "--warcs-per-map", "2", "--s3_local_temp_dir", str(tmp_path), "list"]
    capfd.readouterr()
    assert on_hadoop(IndexWARCJob, *words) == 1
    found = capfd.readouterr()
    assert "2 of 3 archives indexed, 1 with failures" in found.err
    assert found.out.startswith(f"{tmp_path}/cut.warc.gz\tat ")
    lines = [gzip.decompress(path.read_bytes()).count(b"\n") for path in Path("ours").rglob("*.cdx.gz")]
    wanted = {"archives": 3, "captures": sum(lines), "failures": 1, "failed archives": 1, "notes": 0}
    assert {name: COUNTERS[name] for name in wanted} == wanted
    assert COUNTERS["archive bytes"] == sum(path.stat().st_size for path in paths)
    written = {
        path.rpartition("/")[2]: file.body for path, file in node.files.items() if path.endswith(".cdx.gz")
    }
    assert written == {path.name: path.read_bytes() for path in Path("ours").rglob("*.cdx.gz")}
    assert on_hadoop(IndexWARCJob, "--max-failures", "34%", "--replace", *words) == 0


def test_the_sample_job_writes_split_points(
    on_hadoop: Launch, node: NameNode, capfd: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.sample_job import SampleCDXJob

    for name in ("a", "b"):
        node.put(
            f"/cdx/{name}.cdxj", b"".join(b"com,%b)/%03d 2020 {}\n" % (name.encode(), n) for n in range(50))
        )
    words = ["-q", "--shards", "4", "--splitfile", "splits.seq", "--jobconf"]
    setting = "mapreduce.input.fileinputformat.split.maxsize=1000"
    assert on_hadoop(SampleCDXJob, *words, setting, "hdfs:///cdx") == 0
    points = Path("splits.txt").read_bytes().splitlines()
    assert points == [b"com,a)/025 2020", b"com,b)/000 2020", b"com,b)/025 2020"]
    assert capfd.readouterr().out.encode().splitlines() == points


OWN = """import os
from cdxmill.jobs.count_job import CountJob
NAMES = ("AWS_REGION", "mapreduce_job_tags", "dfs_client_max_block_acquire_failures", "mapreduce_map_maxattempts")
class Types(CountJob):
    def items(self, record):
        yield record.headers[b"warc-type"]
        yield from (f"{name}={os.environ.get(name)}" for name in NAMES)
"""


def test_the_counting_jobs_print_what_the_command_prints(
    on_hadoop: Launch, pywb_warcs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.count_job import CountJob

    class Tags(CountJob):
        what = "tags"

    given = [pywb_warcs / "example.warc.gz", pywb_warcs / "iana.warc.gz"]
    Path("list").write_text("".join(f"{path}\n" for path in [*given, "absent.warc.gz"]))
    assert main(["count", "tags", "-q", "-o", "ours.tsv", *map(str, given)]) == 0
    assert on_hadoop(Tags, "list") == 1
    found = capfd.readouterr()
    assert sorted(found.out.splitlines()) == sorted(Path("ours.tsv").read_text().splitlines())
    assert "absent.warc.gz: cannot be read" in found.err
    assert "2 of 3 archives counted, 1 with failures" in found.err
    assert COUNTERS["archives"] == 3
    assert COUNTERS["failures"] == 1
    assert COUNTERS["records counted"] > 9


def test_a_job_of_the_user_is_sent_with_its_settings_and_keys(
    on_hadoop: Launch,
    node: NameNode,
    pywb_warcs: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The keys of this machine go into a file that nobody else can read, if the job has to do with S3."""
    Path("own_count_job.py").write_text(OWN)
    monkeypatch.syspath_prepend(Path().absolute())
    monkeypatch.setenv("AWS_REGION", "nowhere-1")
    Path("list").write_text(f"{pywb_warcs}/example.warc.gz\n")
    kind = import_module("own_count_job").Types
    settings = "dfs.client.max.block.acquire.failures=3", "mapreduce.job.tags=mine", "x=s3://b/c"
    assert on_hadoop(kind, "-q", *(f"--jobconf={one}" for one in settings), "list") == 0
    items = {line.partition("\t")[0] for line in capfd.readouterr().out.splitlines()}
    assert "response" in items
    wanted = {
        "AWS_REGION=nowhere-1",
        "dfs_client_max_block_acquire_failures=3",
        "mapreduce_map_maxattempts=4",
    }
    assert wanted <= items
    (tags,) = (item for item in items if item.startswith("mapreduce_job_tags="))
    assert tags == f"mapreduce_job_tags=mine,cdxmill-{run_id()}"
    modes = {asked.get("permission") for op, path, asked in node.seen if op == "CREATE" and KEYS in path}
    assert modes == {"600"}


def test_a_dictionary_of_the_user_is_sent(on_hadoop: Launch, node: NameNode, pywb_warcs: Path) -> None:
    from cdxmill.jobs.index_job import IndexWARCJob

    archive = f"{pywb_warcs}/iana.warc.gz"
    samples: list[Any] = [b"WARC/1.0\r\nWARC-Type: response\r\n%d" % number * 40 for number in range(900)]
    Path("x.dict").write_bytes(zstandard.train_dictionary(4096, samples).as_bytes())
    assert main(["recompress", "-q", "-o", "zst", "--dictionary", "x.dict", archive]) == 0
    whole = Path("zst/iana.warc.zst").read_bytes()
    Path("bare.warc.zst").write_bytes(whole[8 + int.from_bytes(whole[4:8], "little") :])
    Path("list").write_text(f"{Path('bare.warc.zst').absolute()}\n")
    assert main(["index", "-q", "-o", "ours", "--dictionary", "x.dict", "bare.warc.zst"]) == 0
    assert on_hadoop(IndexWARCJob, "-q", "--cdx_bucket", "hdfs:///cdx", "--dictionary", "x.dict", "list") == 0
    (written,) = (file.body for path, file in node.files.items() if "bare" in path)
    assert written == next(Path("ours").rglob("*.cdx.gz")).read_bytes()


def test_a_job_that_fails_is_status_3_and_leaves_nothing_in_hdfs(
    on_hadoop: Launch, node: NameNode, capfd: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.sample_job import SampleCDXJob

    node.put("/cdx/a.cdxj", b"a 2020 {}\n")
    words = ["-q", "--python-bin", "false", "--splitfile", "splits.seq", "hdfs:///cdx"]
    assert on_hadoop(SampleCDXJob, *words) == 3
    assert re.fullmatch(r"the job failed: .*code 1.*\n", capfd.readouterr().err)
    assert node.files.keys() == {"/cdx/a.cdxj"}
    assert not Path("splits.seq").exists()


def test_the_recompress_job_writes_the_archives_of_the_command(
    on_hadoop: Launch, node: NameNode, pywb_warcs: Path
) -> None:
    from cdxmill.jobs.recompress_job import RecompressJob

    Path("list").write_text(f"{pywb_warcs}/example.warc.gz\n")
    assert main(["recompress", "-q", "-o", "ours", "--manifest", "list"]) == 0
    assert on_hadoop(RecompressJob, "-q", "--output_bucket", "hdfs:///new", "list") == 0
    written = {path.rpartition("/")[2]: file.body for path, file in node.files.items()}
    ours = [path for path in Path("ours").rglob("*.*") if path.suffix != ".tsv" and path.is_file()]
    assert len(ours) >= 2
    new = next(path for path in ours if path.name.endswith(".warc.zst"))
    sizes = (pywb_warcs / "example.warc.gz").stat().st_size, new.stat().st_size
    assert (COUNTERS["archive bytes"], COUNTERS["new bytes"]) == sizes
    assert (COUNTERS["archives"], COUNTERS["failures"], COUNTERS["failed archives"]) == (1, 0, 0)
    assert {path.name: path.read_bytes() for path in ours}.items() <= written.items()


def test_the_add_job_writes_the_cluster_of_the_command(on_hadoop: Launch) -> None:
    from cdxmill.jobs.add_job import AddClusterJob

    for name in ("a", "b"):
        Path(f"{name}.cdxj").write_text("".join(f"com,{name})/{number} 2020 {{}}\n" for number in range(9)))
        assert main(["zipnum", "-q", "-s", "1", "--location", "/x", "-o", name, f"{name}.cdxj"]) == 0
    for path in Path("a").iterdir():
        with locate(f"hdfs:///a/{path.name}").write_atomic() as file:
            file.write(path.read_bytes())
    assert main(["add", "-q", "--cdx", "a", "b"]) == 0
    assert on_hadoop(AddClusterJob, "-q", "--zipnum-dir", "/a", Path("b").absolute().as_uri()) == 0
    shards = {name: data for name, data in files_at("hdfs:///a").items() if name.startswith("cdx-")}
    assert shards == {name: data for name, data in files_at("a").items() if name.startswith("cdx-")}
