"""Runs jobs as users do, and has CDX files that a shuffle may easily change."""

from __future__ import annotations

import atexit
import gzip
import importlib
import json
import random
import subprocess
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.jobs.nodes.task_context import parse_failure
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.line_chunks import format_record, read_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # mrjob 0.7.4 imports pipes
    importlib.import_module("mrjob.job")

ROOT = Path(__file__).resolve().parents[2]

CHUNKS = Compressor(level=1)
"""Compresses the chunks that mappers send to reducers."""


RunJob = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def run_script() -> RunJob:
    """Runs a script of jobs/ or bin/. Any exit status is accepted."""

    def run(name: str, *args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(ROOT / name), *map(str, args)]
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    return run


@pytest.fixture(scope="session")
def run_job(run_script: RunJob) -> RunJob:
    """Runs a job of jobs/ with a runner of mrjob, without the user's mrjob.conf and without its log."""

    def run(
        name: str, runner: str, *args: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return run_script(f"jobs/{name}.py", "-q", "--no-conf", "-r", runner, *args, cwd=cwd)

    return run


def run_task(verb: str, *options: str | Path, **given: Any) -> bytes:
    """The output of a task that succeeds; see `task_done`."""
    done = task_done(verb, *options, **given)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def task_done(
    verb: str,
    *options: str | Path,
    data: bytes,
    partition: int = 0,
    mappers: int = 1,
    cwd: Path | None = None,
    python: Path = Path(sys.executable),
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """What a task on a Hadoop node did, with only Python, without installed packages."""
    command = [str(python), "-I", str(packed_nodes() / "hadoop_task.py"), verb, *map(str, options)]
    return subprocess.run(
        command,
        input=data,
        cwd=cwd,
        env={
            "mapreduce_task_partition": str(partition),
            "mapreduce_job_maps": str(mappers),
            **(environ or {}),
        },
        capture_output=True,
        check=False,
    )


def chunks_in(data: bytes, failures: list[Failure]) -> list[bytes]:
    """The texts of the chunks that a mapper has sent. Its failures are added to the list."""
    records = [(key, CHUNKS.decompress(packed)) for key, packed in read_records(BytesIO(data))]
    failures += [parse_failure(text) for key, text in records if not key]
    return [text for key, text in records if key]


def work_list(directory: Path, *files: list[bytes] | bytes, **sampled: object) -> bytes:
    """What a mapper reads: the URLs of CDX files with these lines or bytes, and how they are `sampled`."""
    urls = []
    for content in files:
        path = directory / f"{uuid.uuid4().hex}.cdx.gz"
        path.write_bytes(
            content if isinstance(content, bytes) else b"".join(line + b"\n" for line in content)
        )
        urls.append(path.as_uri())
    return json.dumps({"paths": urls, **sampled}).encode() + b"\n"


def shuffled(sent: list[bytes], start: bytes) -> bytes:
    """The records of all mappers as Hadoop sends them to a reducer: sorted by their keys, from `start` on."""
    records = sorted(record for data in sent for record in read_records(BytesIO(data)))
    return b"".join(format_record(*record, bytes) for record in records if record[0] >= start)


def packed_nodes() -> Path:
    """A directory with the unpacked archive of a job."""
    return Path(_packed_nodes().name)


@cache  # keeps the object: a forked process forgets what is registered for its exit, and would delete the directory
def _packed_nodes() -> tempfile.TemporaryDirectory[str]:
    from cdxmill.jobs.launcher.node_archive import DEFLATE, URLLIB3, ZLIB_NG, pack_archive

    directory = tempfile.TemporaryDirectory(prefix="cdxmill-nodes-")
    atexit.register(directory.cleanup)
    with zipfile.ZipFile(pack_archive(Path(directory.name), [ZLIB_NG, DEFLATE, URLLIB3])) as archive:
        archive.extractall(directory.name)
    return directory


class HardInputs(NamedTuple):
    """CDX files, the two of them that cannot be read, and all lines of the others."""

    paths: list[Path]
    bad: list[Path]
    lines: set[bytes]


def page_line(number: int) -> bytes:
    """A CDXJ line of about 450 bytes; they increase with the number."""
    url = f"http://example.com/page/{number:07d}/" + "x" * 300
    return f'com,example)/page/{number:07d} 20200101000000 {{"url": "{url}", "status": "200"}}'.encode()


def _odd_lines() -> list[bytes]:
    return [
        b'net,tab)/ 20200101000000 {"url": "http://tab.net/\ta\tb"}',
        b'net,tab)/ 20200101000000 {"url": "http://tab.net/"}\t',
        b'net,\ttab)/ 20200101000000 {"url": "x"}',
        b'00001\tmarked) 20200101000000 {"url": "like a shard\'s mark"}',
        b"\ttab,first 20200101000000 {}",
        b"no,timestamp)/  {}",
        b'net,cr)/ 20200101000000 {"url": "http://cr.net/"}\r',
        b'net,cr)/ 20200101000000 {"url": "http://cr\r.net/"}',
        b"\r 20200101000000 {}",
        b'\1 20200101000000 {"url": "http://one\1.net/"}',
        b'net,bad)/ 20200101000000 {"url": "\xff\xfe\xc3"}',
        b"\xff\xff\xfflast,of,all - {}",
        b'net,long)/ 20200101000000 {"url": "' + b"y" * 300_000 + b'"}',
        b'net,zz)/ 20200101000000 {"url": "below whole lines as split points"}',
    ]


@pytest.fixture(scope="session")
def hard_inputs(tmp_path_factory: pytest.TempPathFactory) -> HardInputs:
    """Two files of 9 MB, because a mapper reads about as much at a time, and small ones with unusual content."""
    directory = tmp_path_factory.mktemp("cdx")
    pages = [page_line(number) for number in range(20_000)]
    odd = _odd_lines()
    shuffled = pages[:500] + odd + [b"", b" CDX N b a m s k r M S V g", b""] + pages[:500]
    random.Random(7).shuffle(shuffled)
    shuffled.insert(0, pages[3])
    contents = {
        "sorted.cdxj": b"".join(line + b"\n" for line in pages),
        "reversed.cdxj": b"\n".join(line.replace(b"page", b"qage") for line in reversed(pages)),
        "members.cdx.gz": b"".join(gzip.compress(line + b"\n") for line in shuffled),
        "across.cdx.gz": gzip.compress(pages[5] + b"\n" + odd[0][:9]) + gzip.compress(odd[0][9:]),
        "not-gzip.cdx.gz": pages[7] + b"\n\n" + odd[3],
        "gzip-after-all.cdx": gzip.compress(pages[8] + b"\r\n"),
        "empty.cdx.gz": gzip.compress(b""),
        "header-only.cdx": b" CDX N b a m s k r M S V g\n",
        "cut.cdx.gz": gzip.compress(b"\n".join(page_line(number) for number in range(90_000, 90_900)))[:-99],
    }
    for name, data in contents.items():
        (directory / name).write_bytes(data)
    lines = {*pages, *odd, pages[8] + b"\r", *(line.replace(b"page", b"qage") for line in pages)}
    bad = [directory / "cut.cdx.gz", directory / "absent.cdx.gz"]
    return HardInputs([*(directory / name for name in contents), bad[1]], bad, lines)
