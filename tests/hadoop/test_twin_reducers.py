"""Two attempts of one reducer at once, as speculation and lost nodes make them: the shard is whole at any time."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cdxmill.formats.clusters.compressor import BLOCKS
from cdxmill.stages.lines.line_chunks import format_record, sort_chunks
from tests.conftest import RunCdxmill
from tests.jobs.conftest import CHUNKS, packed_nodes, page_line

from .conftest import Hadoop
from .job_runs import BUCKET, Jobs, bare_python, files_below

NAMES = ["_report-00001", "cdx-00001.gz", "part-00001"]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """They hardly get smaller when packed."""
    path = tmp_path_factory.mktemp("lines") / "lines"
    rng = random.Random(9)
    pages = (_random_line(rng, page_line(number)) for number in range(20_000))
    path.write_bytes(b"".join(pages))
    return path


def _random_line(rng: random.Random, line: bytes) -> bytes:
    return line.replace(b"{", b'{"x": "%b", ' % rng.randbytes(300).hex().encode(), 1) + b"\n"


@pytest.fixture(scope="module")
def chunks(lines: Path) -> Path:
    """The lines as the shuffle gives them: two mappers had every other line, so the reducer packs each block anew."""
    path = lines.with_name("chunks")
    every = lines.read_bytes().split(b"\n")[:-1]
    cut = [*sort_chunks(every[::2], (), 10_000), *sort_chunks(every[1::2], (), 10_000)]
    path.write_bytes(b"".join(format_record(chunk[0], b"\n".join(chunk), CHUNKS.compress) for chunk in cut))
    return path


@pytest.fixture(scope="module")
def expected(
    lines: Path, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The shard and its part by the local engine, under the names of the second of two shards."""
    directory = tmp_path_factory.mktemp("expected")
    (directory / "splits.txt").write_bytes(b"!\n")
    done = run_cdxmill("zipnum", "-q", "-o", directory / "C", "--splits", directory / "splits.txt", lines)
    assert done.returncode == 0, done.stderr
    return {name: (directory / "C" / name).read_bytes() for name in NAMES[1:]}


def start(
    hadoop: Hadoop, attempt: int, cluster: str, chunks: Path, directory: Path
) -> subprocess.Popen[bytes]:
    """The reducer as Hadoop starts it, in a folder of its own."""
    own = directory / f"attempt-{attempt}"
    own.mkdir()
    task = [*bare_python("3.9").split(), str(packed_nodes() / "hadoop_task.py"), "shard"]
    packer = ["--compressor", "zlib-ng", "--level", "5", "--section-lines", str(BLOCKS.section_lines)]
    options = ["--cluster", cluster, *packer]
    env = {
        "mapreduce_task_partition": "1",
        "mapreduce_task_attempt_id": f"attempt_1_0001_r_000001_{attempt}",
    }
    script = f"cd {shlex.quote(str(own))} && exec {shlex.join([*task, *options])} <{shlex.quote(str(chunks))}"
    return hadoop.start("bash", "-c", script, env=env)


def stopped_in_mid_write(
    hadoop: Hadoop, directory: Path, chunks: Path, work: Path
) -> subprocess.Popen[bytes]:
    """The first attempt, stopped while it writes; on a busy machine one may be done before it is caught."""
    for number in range(10):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        own = work / f"catch-{number}"
        own.mkdir()
        slow = start(hadoop, 0, directory.as_uri(), chunks, own)
        writing = ".cdx-00001.gz.attempt_1_0001_r_000001_0.*.tmp"
        while not any(directory.glob(writing)) and slow.poll() is None:
            time.sleep(0.0005)
        if slow.poll() is None:
            os.killpg(slow.pid, signal.SIGSTOP)
            if any(directory.glob(writing)):
                return slow
            os.killpg(slow.pid, signal.SIGCONT)
        slow.wait()
    raise AssertionError("no attempt was caught while it wrote")


def seen(directory: Path) -> dict[str, bytes]:
    """What a reader finds under the final names."""
    return {name: (directory / name).read_bytes() for name in NAMES[1:] if (directory / name).exists()}


def test_in_a_shared_directory_one_is_stopped_in_mid_write_and_the_other_wins(
    hadoop: Hadoop, chunks: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    directory = tmp_path / "shared"
    with stopped_in_mid_write(hadoop, directory, chunks, tmp_path) as slow:
        with start(hadoop, 1, directory.as_uri(), chunks, tmp_path) as quick:
            while quick.poll() is None:
                found = seen(directory)
                assert found == {name: expected[name] for name in found}
        assert (quick.returncode, seen(directory)) == (0, expected)
        os.killpg(slow.pid, signal.SIGCONT)
        while slow.poll() is None:
            assert seen(directory) == expected
    assert slow.returncode == 0
    assert sorted(files_below(directory)) == NAMES


def test_in_s3_the_shard_is_absent_or_whole_while_both_put_it(
    hadoop: Hadoop, jobs: Jobs, chunks: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    jobs.upload({"twins/marker": chunks})
    cluster = f"s3://{BUCKET}/twins"
    sizes = set()
    with (
        start(hadoop, 0, cluster, chunks, tmp_path) as one,
        start(hadoop, 1, cluster, chunks, tmp_path) as other,
    ):
        while one.poll() is None or other.poll() is None:
            sizes |= {size for url, (size, _) in jobs.listed(cluster).items() if url.endswith(".gz")}
    assert (one.returncode, other.returncode) == (0, 0)
    assert sizes <= {len(expected["cdx-00001.gz"])}
    built = jobs.get(cluster, tmp_path)
    assert {name: built[name] for name in expected} == expected
