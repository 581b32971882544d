"""From archives in HDFS and S3 to two clusters, one in each, that pywb serves."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml
from warcio.archiveiterator import ArchiveIterator

from tests.conftest import RunCdxmill
from tests.serving.conftest import Wayback, fill_in

from .archives import INDEX, OF_S3_INDEXES, S3_INDEX, Indexed
from .job_runs import BUCKET, HDFS, Ended, Jobs, bare_python, files_below

SHARDS = 2
SPLITS = f"s3://{BUCKET}/split points/splits.seq"
NODES = ["--python-bin", bare_python("3.9")]


Build = Callable[..., "Built"]


class Built(NamedTuple):
    """A cluster by a job, fetched and published on this machine, and what the local engine makes of the same."""

    job: Ended
    fetched: dict[str, bytes]
    expected: dict[str, bytes]
    published: Path

    @property
    def lines(self) -> list[bytes]:
        shards = sorted(self.published.glob("cdx-*.gz"))
        return [line for shard in shards for line in gzip.decompress(shard.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def sampled(jobs: Jobs, indexed: Indexed, indexed_in_s3: Ended) -> Ended:
    """One sample of all indexes, in HDFS and in S3; its split file lies in S3 for both clusters."""
    assert indexed_in_s3.status == 0, indexed_in_s3.stderr
    shards = ["--shards", str(SHARDS), "--splitfile", SPLITS]
    return jobs.run("dosample", *NODES, *shards, INDEX, S3_INDEX.replace("s3:", "s3a:"))


@pytest.fixture(scope="module")
def build(
    jobs: Jobs, sampled: Ended, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory
) -> Build:
    """Builds the cluster of all indexes below a URL, and another here of the same, which are given."""
    assert sampled.status == 0, sampled.stderr

    def built(url: str, given: str, indexes: dict[str, bytes], *options: str) -> Built:
        directory = tmp_path_factory.mktemp("built")
        job = jobs.run(
            "zipnumclusterjob", *NODES, "--splitfile", SPLITS, "--zipnum-dir", url, *options, given
        )
        assert job.status == 0, job.stderr
        for name, data in indexes.items():
            (directory / "cdx" / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / "cdx" / name).write_bytes(data)
        fetched = jobs.get(url, directory)
        (directory / "splits.seq").write_bytes(fetched["splits.seq"])
        same = ["--splits", directory / "splits.seq", "--location", url, *options]
        run_cdxmill("zipnum", "-q", "-o", directory / "here", *same, directory / "cdx")
        jobs.cdxmill("publish", "-q", url, directory / "published")
        return Built(job, fetched, files_below(directory / "here"), directory / "published")

    return built


@pytest.fixture(scope="module")
def in_hdfs(build: Build, indexed: Indexed) -> Built:
    return build(f"{HDFS}/clusters/pipeline", INDEX, indexed.expected)


@pytest.fixture(scope="module")
def in_s3(
    build: Build,
    indexed: Indexed,
    jobs: Jobs,
    run_cdxmill: RunCdxmill,
    tmp_path_factory: pytest.TempPathFactory,
) -> Built:
    """It takes the place of a larger one."""
    old = tmp_path_factory.mktemp("old")
    (old / "old.cdxj").write_text("".join(f"com,old{number})/ 2020 {{}}\n" for number in range(99)))
    assert (
        run_cdxmill("zipnum", "-q", "-s", str(SHARDS + 2), "-o", old / "C", old / "old.cdxj").returncode == 0
    )
    jobs.upload({f"cluster/{path.name}": path for path in (old / "C").iterdir()})
    indexes = {name: indexed.expected[name] for name in OF_S3_INDEXES}
    given = S3_INDEX.replace("s3:", "s3a:")
    return build(f"s3://{BUCKET}/cluster", given, indexes, "--numlines", "10", "--replace")


@pytest.fixture(params=["in_hdfs", "in_s3"])
def cluster(request: pytest.FixtureRequest) -> Built:
    found: Built = request.getfixturevalue(request.param)
    return found


def test_dosample_shows_nothing_and_writes_both_files(sampled: Ended, jobs: Jobs, tmp_path: Path) -> None:
    assert (sampled.status, sampled.stdout) == (0, b"")
    told = f"{SPLITS}: {SHARDS - 1} split point for {SHARDS} shards"
    assert told in sampled.stderr.splitlines()
    files = jobs.get(SPLITS.rpartition("/")[0], tmp_path)
    assert sorted(files) == ["splits.seq", "splits.txt"]
    points = files["splits.txt"].splitlines()
    assert len(points) == SHARDS - 1
    assert jobs.fs("-text", SPLITS) == b"".join(point + b"\t(null)\n" for point in points)


def test_a_cluster_has_the_bytes_of_the_local_engine(cluster: Built) -> None:
    built = {name: data for name, data in cluster.fetched.items() if name != "_SUCCESS"}
    assert sorted(built) == sorted(cluster.expected)
    assert [name for name, data in built.items() if data != cluster.expected[name]] == []
    assert len([name for name in built if name.startswith("cdx-")]) == SHARDS


def test_nothing_is_left_beside_a_cluster_that_replaced_another(in_s3: Built, jobs: Jobs) -> None:
    assert [url for url in jobs.listed(f"s3a://{BUCKET}/cluster") if "/.new" in url] == []


def test_keys_are_in_no_command_line_and_not_in_the_history_of_a_job(cluster: Built, jobs: Jobs) -> None:
    """The launcher has them in its environment, and the tasks of the cluster in S3 used them."""
    names = jobs.settings(cluster.job)
    assert "mapreduce.job.reduces" in names
    assert "AWS_" not in names
    assert "AWS_" not in cluster.job.stderr


@pytest.fixture(scope="module")
def wayback(
    root: Path, indexed: Indexed, in_hdfs: Built, in_s3: Built, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Wayback]:
    """The collections `web` and `s3`, of the published clusters."""
    directory = tmp_path_factory.mktemp("pywb")
    sample = (root / "conf/pywb/config.yaml").read_text()
    here = [indexed.root / "archives"]
    config, other = (yaml.safe_load(fill_in(sample, built.published, here)) for built in (in_hdfs, in_s3))
    config["collections"]["s3"] = other["collections"]["web"]
    (directory / "config.yaml").write_text(yaml.safe_dump(config))
    server = Wayback(directory)
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("name", "collection", "question", "start"),
    [
        ("in_hdfs", "web", {"url": "http://www.iana.org/"}, b"org,iana)/ "),
        ("in_hdfs", "web", {"url": "iana.org", "matchType": "domain"}, b"org,iana"),
        ("in_hdfs", "web", {"url": "http://example.com/", "matchType": "prefix"}, b"com,example)/"),
        ("in_s3", "s3", {"url": "http://example.com/", "matchType": "prefix"}, b"com,example)/"),
        ("in_s3", "s3", {"url": "http://www.iana.org/"}, b"org,iana)/ "),
    ],
)
def test_pywb_answers_with_the_lines_of_the_cluster(
    request: pytest.FixtureRequest,
    wayback: Wayback,
    name: str,
    collection: str,
    question: dict[str, str],
    start: bytes,
) -> None:
    lines = [line for line in request.getfixturevalue(name).lines if line.startswith(start)]
    assert lines or name == "in_s3"
    answer = wayback.cdx(collection, **question, pageSize="1000")
    assert answer == b"".join(line + b"\n" for line in lines)


@pytest.mark.parametrize(("name", "collection"), [("in_hdfs", "web"), ("in_s3", "s3")])
def test_pywb_replays_a_page(
    request: pytest.FixtureRequest, wayback: Wayback, indexed: Indexed, name: str, collection: str
) -> None:
    timestamp, fields = a_page(request.getfixturevalue(name).lines)
    answer = wayback.get(f"/{collection}/{timestamp}id_/{fields['url']}")
    assert answer.status == 200, answer
    with (indexed.root / fields["filename"]).open("rb") as archive:
        archive.seek(int(fields["offset"]))
        record = next(ArchiveIterator(io.BytesIO(archive.read(int(fields["length"])))))
    body = gzip.decompress(answer.body) if answer.headers.get("Content-Encoding") == "gzip" else answer.body
    assert body == record.content_stream().read()


def a_page(lines: list[bytes]) -> tuple[str, dict[str, str]]:
    """Timestamp and fields of a page whose URL pywb takes as it is: it sends on from http://host to http://host/."""
    for line in lines:
        _, timestamp, block = line.split(b" ", 2)
        fields = json.loads(block)
        if fields.get("status") == "200" and fields["mime"] == "text/html" and urlsplit(fields["url"]).path:
            return timestamp.decode(), fields
    raise AssertionError("no such page")
