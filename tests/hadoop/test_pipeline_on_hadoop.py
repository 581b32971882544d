"""From archives in HDFS and S3 to a cluster that pywb serves. test_zipnum_on_hadoop.py has one in HDFS."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.conftest import RunCdxmill
from tests.serving.conftest import Wayback, fill_in

from .archives import INDEX, OF_S3_INDEXES, S3_INDEX, Indexed
from .job_runs import BUCKET, Ended, Jobs, bare_python, files_below

SHARDS = 2
SPLITS = f"s3://{BUCKET}/split points/splits.seq"
NODES = ["--python-bin", bare_python("3.9")]


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
def sources(jobs: Jobs, indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The indexes in HDFS, and two of them in S3, with the split points of all of them in S3."""
    directory = tmp_path_factory.mktemp("indexes")
    for name in OF_S3_INDEXES:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(indexed.expected[name])
    jobs.upload({f"index/{name}": directory / name for name in OF_S3_INDEXES})
    given = [INDEX, S3_INDEX.replace("s3:", "s3a:")]
    jobs.cdxmill("sample", "-q", "-s", str(SHARDS), "-o", SPLITS.replace(".seq", ".txt"), *given)
    return given


@pytest.fixture(scope="module")
def built(
    jobs: Jobs,
    indexed: Indexed,
    sources: list[str],
    run_cdxmill: RunCdxmill,
    tmp_path_factory: pytest.TempPathFactory,
) -> Built:
    """The cluster of all indexes, of HDFS and S3, takes the place of a larger one in S3. Another is built here of the same."""
    directory, url = tmp_path_factory.mktemp("built"), f"s3://{BUCKET}/cluster"
    (directory / "old.cdxj").write_text("".join(f"com,old{number})/ 2020 {{}}\n" for number in range(99)))
    old = ["-s", str(SHARDS + 2), "-o", directory / "old", directory / "old.cdxj"]
    assert run_cdxmill("zipnum", "-q", *old).returncode == 0
    jobs.upload({f"cluster/{path.name}": path for path in (directory / "old").iterdir()})
    options = ["--numlines", "10", "--replace"]
    job = jobs.run("zipnumclusterjob", *NODES, "--splitfile", SPLITS, "--zipnum-dir", url, *options, *sources)
    assert job.status == 0, job.stderr
    for name, data in indexed.expected.items():
        (directory / "cdx" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "cdx" / name).write_bytes(data)
    fetched = jobs.get(url, directory)
    (directory / "splits.seq").write_bytes(fetched["splits.seq"])
    same = ["--splits", directory / "splits.seq", "--location", url, *options]
    run_cdxmill("zipnum", "-q", "-o", directory / "here", *same, directory / "cdx")
    jobs.cdxmill("publish", "-q", url, directory / "published")
    return Built(job, fetched, files_below(directory / "here"), directory / "published")


def test_a_cluster_has_the_bytes_of_the_local_engine(built: Built) -> None:
    found = {name: data for name, data in built.fetched.items() if name != "_SUCCESS"}
    assert sorted(found) == sorted(built.expected)
    assert [name for name, data in found.items() if data != built.expected[name]] == []
    assert len([name for name in found if name.startswith("cdx-")]) == SHARDS


def test_nothing_is_left_beside_a_cluster_that_replaced_another(built: Built, jobs: Jobs) -> None:
    assert [url for url in jobs.listed(f"s3a://{BUCKET}/cluster") if "/.new" in url] == []


def test_keys_are_in_no_command_line_and_not_in_the_history_of_a_job(built: Built, jobs: Jobs) -> None:
    """The launcher has them in its environment, and the tasks used them."""
    names = jobs.settings(built.job)
    assert "mapreduce.job.reduces" in names
    assert "AWS_" not in names
    assert "AWS_" not in built.job.stderr


@pytest.fixture(scope="module")
def wayback(
    root: Path, indexed: Indexed, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Wayback]:
    """The collection `web` of the published cluster."""
    directory = tmp_path_factory.mktemp("pywb")
    sample = (root / "conf/pywb/config.yaml").read_text()
    (directory / "config.yaml").write_text(fill_in(sample, built.published, [indexed.root / "archives"]))
    server = Wayback(directory)
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ({"url": "http://www.iana.org/"}, b"org,iana)/ "),
        ({"url": "iana.org", "matchType": "domain"}, b"org,iana"),
        ({"url": "http://example.com/", "matchType": "prefix"}, b"com,example)/"),
    ],
)
def test_pywb_answers_with_the_lines_of_the_cluster(
    built: Built, wayback: Wayback, question: dict[str, str], start: bytes
) -> None:
    lines = [line for line in built.lines if line.startswith(start)]
    assert lines
    answer = wayback.cdx("web", **question, pageSize="1000")
    assert answer == b"".join(line + b"\n" for line in lines)


def test_pywb_replays_a_page(built: Built, wayback: Wayback, indexed: Indexed) -> None:
    timestamp, fields = a_page(built.lines)
    answer = wayback.get(f"/web/{timestamp}id_/{fields['url']}")
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
