"""The counting jobs print what `cdxmill count` writes, with each runner. A job of a user is ten lines long."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.inputs.named import Input
from cdxmill.jobs.nodes.archives import parse_output
from cdxmill.storage.location import Location
from tests.commands.test_count import INFO, page, record, text
from tests.conftest import RunCdxmill
from tests.jobs.conftest import RunJob, packed_nodes
from tests.material.wacz_files import make_wacz

ROOT = Path(__file__).resolve().parents[2]
JOBS = {"tags": "tagcountjob", "servers": "servercountjob", "words": "wordcountjob", "links": "linkcountjob"}
EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "docs/analysing.md").read_text(), re.S)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Archives of all kinds, one of them truncated, and one that is missing."""
    directory = tmp_path_factory.mktemp("crawl")
    language = "WARC-Identified-Content-Language: eng\r\n"
    texts = (
        text("to be or not to be")
        + text("be \u00e9 a\x01 a")
        + record("conversion", b"x", "text/plain", language)
    )
    pages = page("<p><a href='http://b.org/'>b</a><a href='//c.org'>") + page("<p>", "Apache") + page("<b>")
    server = {"Envelope": {"Payload-Metadata": {"HTTP-Response-Metadata": {"Headers": {"Server": "nginx"}}}}}
    wat = record("metadata", json.dumps(server).encode(), "application/json") + record(
        "metadata", b"{", "application/json"
    )
    (directory / "a.warc.wet.gz").write_bytes(INFO + texts)
    head = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    truncated = record("response", head + gzip.compress(b"<p><a href=http://d.org/>")[:-1])
    (directory / "b.warc.gz").write_bytes(INFO + pages + truncated)
    (directory / "c.warc.wat.gz").write_bytes(INFO + wat)
    (directory / "cut.warc.gz").write_bytes(INFO + pages + pages[:-9])
    names = ["a.warc.wet.gz", "b.warc.gz", "c.warc.wat.gz", "cut.warc.gz", "absent.warc.gz"]
    (directory / "list").write_text("".join(f"{name}\n" for name in names))
    return directory / "list"


@pytest.mark.parametrize(
    ("what", "runner"), [*((what, "inline") for what in JOBS), ("words", "local"), ("links", "local")]
)
def test_the_job_prints_what_the_command_writes(
    what: str, runner: str, manifest: Path, run_cdxmill: RunCdxmill, run_job: RunJob
) -> None:
    expected = run_cdxmill("count", what, "-q", "-o", "-", "--manifest", manifest, "--root", manifest.parent)
    done = run_job(JOBS[what], runner, "--warc_bucket", manifest.parent, manifest)
    assert (done.returncode, done.stdout) == (1, expected.stdout)
    assert expected.stdout.count(b"\n") > 1
    failed = done.stderr.decode()
    assert "absent.warc.gz: cannot be read" in failed
    assert ("c.warc.wat.gz@" in failed) == (what in ("servers", "links"))
    assert "cut.warc.gz@" in failed
    assert ("note: the payload is truncated" in failed) == (what in ("tags", "links"))


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_the_example_of_the_page_is_a_job(runner: str, tmp_path: Path, manifest: Path) -> None:
    assert EXAMPLE is not None
    (tmp_path / "languages.py").write_text(EXAMPLE[1])
    (tmp_path / "list").write_text("a.warc.wet.gz\nb.warc.gz\n")
    options = ["-q", "--no-conf", "-r", runner, "--warc_bucket", str(manifest.parent)]
    command = [sys.executable, str(tmp_path / "languages.py"), *options, str(tmp_path / "list")]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"eng\t1\nunknown\t2\n", b"")


HANGS = """
import time
from cdxmill.jobs.count_job import CountJob

class Hangs(CountJob):
    def items(self, record):
        if b"eng" in record.headers.get(b"warc-identified-content-language", b""):
            time.sleep(999)
        yield record.kind, 2

if __name__ == "__main__":
    Hangs.run()
"""


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_a_record_that_takes_too_long_costs_a_record(runner: str, tmp_path: Path, manifest: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    (tmp_path / "list").write_text("a.warc.wet.gz\n")
    options = ["-q", "--no-conf", "-r", runner, "--timeout", "1", "--memory", "1024"]
    given = ["--warc_bucket", str(manifest.parent), str(tmp_path / "list")]
    command = [sys.executable, str(tmp_path / "hangs.py"), *options, *given]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"conversion\t4\n")
    assert b"took longer than 1 s; the record is skipped" in done.stderr


def test_a_job_that_cannot_count_ends_before_it_starts(tmp_path: Path, manifest: Path) -> None:
    assert EXAMPLE is not None
    (tmp_path / "job.py").write_text(EXAMPLE[1].replace("def items", "def things"))
    archive = manifest.parent / "b.warc.gz"
    for script, given, message in (
        (
            tmp_path / "job.py",
            manifest,
            b"LanguageCount has no method `items`; it says what the job counts\n",
        ),
        (
            ROOT / "jobs/tagcountjob.py",
            archive,
            b"b.warc.gz is an archive, not a manifest, which is a text with",
        ),
    ):
        command = [sys.executable, str(script), "-q", "--no-conf", str(given)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
        assert message in done.stderr


def work_item(path: Path) -> str:
    return json.dumps({"archive": Input(Location(str(path)), path.name, path.name).to_fields()}) + "\n"


def run_on_node(
    task: list[str], data: bytes, cwd: Path, **environ: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(packed_nodes() / "hadoop_task.py"), *task]
    return subprocess.run(command, input=data, cwd=cwd, env=environ, capture_output=True, check=False)


def test_tasks_on_nodes_count_and_add(tmp_path: Path, manifest: Path) -> None:
    assert EXAMPLE is not None
    (tmp_path / "cdxmill_count_job.py").write_text(EXAMPLE[1])
    names = ("a.warc.wet.gz", "absent.warc.gz")
    work = "".join(work_item(manifest.parent / name) for name in names)
    mapped = run_on_node(["count", "--job", "LanguageCount"], work.encode(), tmp_path)
    assert mapped.returncode == 0, mapped.stderr.decode()
    failure, *counts = sorted(mapped.stdout.splitlines(keepends=True))
    assert failure.startswith(b"\tabsent.warc.gz\tcannot be read")
    assert counts == [b"eng\t1\n", b"unknown\t2\n"]
    assert b"reporter:counter:cdxmill,failures,1\n" in mapped.stderr
    tool = tmp_path / "bin/hadoop"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "$@" >> asked\n')
    tool.chmod(0o755)
    reduced = run_on_node(
        ["sum"],
        b"".join(sorted([failure, *counts, *counts])),
        tmp_path,
        HADOOP_HOME=str(tmp_path),
        PATH="/usr/bin:/bin",
        mapreduce_task_partition="3",
        mapreduce_task_output_dir="hdfs:/out/_temporary/3",
        mapreduce_output_fileoutputformat_outputdir="hdfs:///out",
    )
    assert (reduced.returncode, reduced.stdout) == (0, b"eng\t2\nunknown\t4\n"), reduced.stderr.decode()
    assert (tmp_path / "_failures-00003").read_bytes() == failure[1:]
    failures = (tmp_path / "_failures-00003").as_uri()
    assert (tmp_path / "asked").read_text().splitlines() == [
        "fs -mkdir -p hdfs:/out/_temporary/3",
        f"fs -put -f {failures} hdfs:/out/_temporary/3/",
    ]


def test_a_task_opens_a_wacz_and_reports_what_it_cannot_read(tmp_path: Path, manifest: Path) -> None:
    assert EXAMPLE is not None
    (tmp_path / "cdxmill_count_job.py").write_text(EXAMPLE[1])
    plain = manifest.parent / "a.warc.wet.gz"
    wet = plain.read_bytes()
    (tmp_path / "good.wacz").write_bytes(make_wacz({"archive/a.warc.gz": wet, "archive/b.har": b"x"}))
    (tmp_path / "bad.wacz").write_bytes(b"PK")
    work = "".join(map(work_item, (plain, tmp_path / "good.wacz", tmp_path / "bad.wacz")))
    mapped = run_on_node(["count", "--job", "LanguageCount"], work.encode(), tmp_path)
    assert mapped.returncode == 0, mapped.stderr.decode()
    counts = [line for line in mapped.stdout.splitlines() if line[:1] != b"\t"]
    assert sorted(counts) == [b"eng\t2", b"unknown\t4"]
    assert mapped.stderr.count(b"counter:cdxmill,archives in wacz files,1\n") == 2, "one of each WACZ"
    failures, notes = parse_output(
        b"\n".join(line[1:] for line in mapped.stdout.splitlines() if line[:1] == b"\t")
    )
    assert [one.path for one in failures] == [str(tmp_path / "bad.wacz")]
    assert [(one.path, one.reason) for one in notes] == [
        (str(tmp_path / "good.wacz"), "1 file skipped: 1 .har")
    ]


def test_a_node_without_a_library_says_so(tmp_path: Path, manifest: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['selectolax'] = None\n")
    work = work_item(manifest.parent / "b.warc.gz")
    done = run_on_node(["count", "--what", "links"], work.encode(), tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 42
    assert b"lacks a library" in done.stderr
    assert b"Traceback" not in done.stderr


def test_without_the_library_the_command_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(gzip.decompress(page("<a href='http://b.org/'>")))
    code = (
        "import sys; sys.modules['ada_url'] = None;"
        "from cdxmill.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "count", "links", "-o", "-", str(tmp_path / "a.warc.gz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ada_url is not installed" in done.stderr
    assert "pip install './cdxmill[scan]', with a checkout in ./cdxmill" in done.stderr
