"""indexwarcsjob.py on Hadoop: archives from everywhere, what `cdxmill index` writes, and what fails is told."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .archives import (
    BAD,
    BAD_WACZ,
    INDEX,
    NOTED,
    OF_HDFS,
    OF_S3,
    ON_NODES,
    ROOT,
    TOGETHER,
    Indexed,
)
from .conftest import Hadoop
from .job_runs import BUCKET, HDFS, Jobs, files_below
from .packed import BARE_NODE, pack

CHECKOUT = Path(__file__).parents[2]
RECOMPRESSED = f"s3://{BUCKET}/zst"
REMOVED = "cc-index/cdx/CC-1/iana.cdx.gz"
SOUND = len(OF_HDFS) + len(OF_S3) + 5


def is_index(name: str) -> bool:
    return name.endswith(".cdx.gz")


@pytest.fixture(scope="module")
def built(indexed: Indexed, jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The indexes in HDFS, by their path in its folder."""
    found = jobs.get(INDEX, tmp_path_factory.mktemp("built"))
    return {name: data for name, data in found.items() if is_index(name)}


def test_each_index_is_what_cdxmill_index_writes(indexed: Indexed, built: dict[str, bytes]) -> None:
    assert sorted(built) == sorted(indexed.expected)
    assert [name for name, data in built.items() if data != indexed.expected[name]] == []
    assert len(built) == SOUND + 2  # the broken one's has no line, the cut one's what is whole of it


def test_archives_of_a_crawl_are_indexed_to_where_common_crawl_has_its_indexes(
    built: dict[str, bytes],
) -> None:
    assert {name for name in built if name.startswith("c")} == {
        f"cc-index/cdx/CC-{name}.cdx.gz" for name in ("1/example", "1/iana", "2/example")
    }


def test_what_failed_is_an_output_line_and_the_launchers_status_says_so(indexed: Indexed) -> None:
    assert indexed.job.status == 1
    absent, wacz, broken, cut = sorted(indexed.job.stdout.decode().splitlines())
    assert absent.startswith(f"{ROOT}/{BAD[0]}\tcannot be read (")
    assert wacz.startswith(f"{ROOT}/{BAD_WACZ}\tis truncated or not a zip file")
    assert broken.startswith(f"{ROOT}/{BAD[1]}\tat 0: no WARC or ARC record starts here")
    assert cut == f"{ROOT}/{BAD[2]}\tat 1864: the file is truncated inside a gzip member"
    assert f"\n{SOUND} of {SOUND + 4} archives indexed, 4 with failures, 1 note\n" in indexed.job.stderr
    noted = [line for line in indexed.job.stderr.splitlines() if line.startswith(f"{ROOT}/{NOTED}@")]
    assert len(noted) == 1, indexed.job.stderr
    assert noted[0].endswith(": note: unknown WARC-Type 'rezponse'; the record is not indexed")


def test_archives_captures_and_failures_are_counted(indexed: Indexed) -> None:
    job = indexed.job
    counted = [job.counter(name) for name in ("archives", "failed archives", "failures")]
    assert counted == [SOUND + 3, 3, 4]
    lines = sum(gzip.decompress(data).count(b"\n") for data in indexed.expected.values())
    assert job.counter("captures") == lines
    assert job.mappers == 3, "five archives each"


class Rerun(NamedTuple):
    """The same once more, with one index removed, and the outputs' sizes and times before that and after."""

    status: int
    stdout: bytes
    stderr: str
    before: dict[str, tuple[int, float]]
    after: dict[str, tuple[int, float]]


@pytest.fixture(scope="module")
def rerun(indexed: Indexed, jobs: Jobs, hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Rerun:
    """Started as users do: settings, then a launcher. The nodes have no Python: it is sent with the job."""
    directory = tmp_path_factory.mktemp("rerun")
    python = f"sh {BARE_NODE} {hadoop.directory} environment/bin/python"
    nodes = f'--archives {pack(directory)}#environment --python-bin "{python}" {" ".join(TOGETHER)}'
    (directory / "index_env.sh").write_text(
        f"""
        export RUNNER=hadoop WARC_MANIFEST={HDFS}/rerun.paths WARC_BUCKET={ROOT} WARC_CDX_BUCKET=/index
        INDEX_OPTIONS=({nodes} --max-failures 4)
        """
    )
    jobs.fs("-put", indexed.manifest.as_uri(), f"{HDFS}/rerun.paths")
    before = jobs.listed(INDEX)
    jobs.fs("-rm", f"{INDEX}/{REMOVED}")
    env = {"INDEX_ENV": str(directory / "index_env.sh"), "CDXMILL_VENV": sys.prefix}
    done = hadoop.run(CHECKOUT / "bin/runindexwarcs.sh", env=env, check=False)
    return Rerun(done.returncode, done.stdout, done.stderr.decode(), before, jobs.listed(INDEX))


def test_a_rerun_indexes_nothing_but_what_failed_or_is_missing_on_nodes_without_python(
    rerun: Rerun, indexed: Indexed, jobs: Jobs
) -> None:
    assert "\n1 of 5 archives indexed, 4 with failures\n" in rerun.stderr, rerun.stderr
    assert re.findall(r"^\t\tarchives=(\d+)$", rerun.stderr, re.M) == ["4"]
    changed = {url for url, found in rerun.after.items() if rerun.before[url] != found}
    names = [f"plain/{name}.cdx.gz" for name in ("broken", "cut")]
    assert {url for url in changed if is_index(url)} == {f"{INDEX}/{name}" for name in (*names, REMOVED)}
    assert sorted(rerun.after) == sorted(rerun.before)
    for name in (*names, REMOVED):
        assert jobs.fs("-cat", f"{INDEX}/{name}") == indexed.expected[name]


def test_as_many_failures_as_allowed_are_a_success(rerun: Rerun) -> None:
    assert rerun.status == 0
    assert len(rerun.stdout.splitlines()) == 4


def test_archives_are_written_to_s3_as_cdxmill_recompress_writes_them(
    indexed: Indexed, jobs: Jobs, tmp_path: Path
) -> None:
    job = jobs.run(
        "recompressjob",
        *ON_NODES,
        *TOGETHER,
        "--warc_bucket",
        ROOT,
        "--output_bucket",
        RECOMPRESSED,
        indexed.manifest,
    )
    assert job.status == 1
    assert job.counter("archives") == SOUND + 3
    options: list[str | Path] = ["--manifest", indexed.manifest, "--root", ROOT]
    jobs.cdxmill("recompress", "-q", "-o", tmp_path / "here", *options, check=False)
    failed = (tmp_path / "here/failures.tsv").read_bytes().count(b"\n")
    assert job.stdout.count(BAD_WACZ.encode()) == 1, "told by the launcher, which opens it"
    assert (job.counter("failures"), job.stdout.count(b"\n")) == (failed, failed + 1)
    expected = {name: data for name, data in files_below(tmp_path / "here").items() if is_new(name)}
    found = {name: data for name, data in jobs.get(RECOMPRESSED, tmp_path).items() if is_new(name)}
    assert sorted(found) == sorted(expected)
    assert len(found) == 2 * (SOUND + 1), "each sound archive and the truncated one, with its proof"
    assert [name for name, data in found.items() if data != expected[name]] == []
    again = jobs.cdxmill("recompress", "-o", RECOMPRESSED, *options, check=False)
    assert f", {SOUND + 3 - job.counter('failed archives')} up to date".encode() in again.stderr


def is_new(name: str) -> bool:
    return name.endswith((".zst", ".proof.json"))
