"""`count --call` counts what a function or a class of the user finds, as the API and the job do."""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

import cdxmill
from cdxmill import FullRecord, UsageError
from cdxmill.cli.main import main
from tests.conftest import RunCdxmill
from tests.docs.pages import DOCS, fences

from .test_scan import archive as write_archive

OWN = """
from collections import Counter

from cdxmill.jobs.count_job import CountJob


def tags(record):
    return record.page and record.page.tags


class Statuses(CountJob):
    names = {b"200": "fine"}

    def __init__(self):
        self.other = "other"

    def items(self, record):
        if record.kind == b"response":
            yield self.names.get(record.http.status, self.other), len(record.body.data)


def fails(record):
    yield "a"
    if record.kind == b"request":
        raise ValueError("a request")
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own_counters.py").write_text(OWN)
    return tmp_path


def fails_always(record: FullRecord) -> None:
    raise ValueError(f"record {record.offset}")


def tags(record: FullRecord) -> object:
    return record.page and record.page.tags


def test_functions_and_classes_count_as_the_api_does(
    own: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    iana = pywb_warcs / "iana.warc.gz"
    for name in ("tags", "Statuses"):
        done = run_cdxmill("count", "--call", f"own_counters:{name}", "-o", f"{name}.tsv", iana, cwd=own)
        assert done.returncode == 0, done.stderr
    counts = cdxmill.count(inputs=iana, call=tags).counts
    assert counts is not None
    assert (own / "tags.tsv").read_bytes().splitlines() == [b"%b\t%d" % pair for pair in counts.items()]
    assert counts[b"body"] == 20
    sizes = {False: 0, True: 0}
    for record in cdxmill.records(iana):
        if record.kind == b"response":
            sizes[record.http.status == b"200"] += len(record.body.data)
    assert (own / "Statuses.tsv").read_text() == f"fine\t{sizes[True]}\nother\t{sizes[False]}\n"
    (own / "list").write_text(f"{iana}\n")
    listed = run_cdxmill("count", "--call", "own_counters:tags", "-qo", "-", "--manifest", "list", cwd=own)
    assert listed.stdout == (own / "tags.tsv").read_bytes()


def test_a_record_on_which_the_function_fails_is_reported(
    own: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    archive = pywb_warcs / "example.warc.gz"
    done = run_cdxmill("count", "--call", "own_counters:fails", "-o", "-", archive, cwd=own)
    assert (done.returncode, done.stdout) == (1, b"a\t3\n")
    failed = [record.offset for record in cdxmill.records(archive) if record.kind == b"request"]
    lines = done.stderr.decode().splitlines()
    assert lines[:-1] == [f"{archive}@{at}: ValueError: a request; correct the function" for at in failed]
    assert lines[-1] == "1 different items in 3 records of 1 archive"


def test_a_function_that_fails_on_every_record_prints_ten_lines_per_archive(
    own: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    archives = [pywb_warcs / "iana.warc.gz", pywb_warcs / "example.warc.gz"]
    (own / "broken.py").write_text("def f(record):\n    raise ValueError(f'record {record.offset}')\n")
    done = run_cdxmill("count", "--call", "broken:f", "-p", "1", "-o", "-", *archives, cwd=own)
    assert (done.returncode, done.stdout) == (1, b"")
    lines, all_failures = done.stderr.decode().splitlines(), []
    for archive in archives:
        failed = [record.offset for record in cdxmill.records(archive) if record.kind != b"warcinfo"]
        all_failures += [(str(archive), offset) for offset in failed]
        shown = [line for line in lines if line.startswith(f"{archive}@")]
        assert len(shown) == min(10, len(failed))
        rest = f"{archive}: {len(failed) - 10} more failures of this kind: ValueError: record N"
        assert (rest in lines) == (len(failed) > 10)
    result = cdxmill.count(inputs=archives, call=fails_always)
    assert sorted((one.path, one.offset) for one in result.failures) == sorted(all_failures)


def test_a_wrong_call_is_wrong_usage(own: Path, run_cdxmill: RunCdxmill, pywb_warcs: Path) -> None:
    archive = pywb_warcs / "example.warc.gz"
    (own / "broken.py").write_text("import nowhere\n")
    for call, reason in (
        ("own_counters", "expected MODULE:FUNCTION"),
        ("own_counters:nothing", "there is no such function"),
        ("own_counters:CountJob", "no such class with a method `items`"),
        ("broken:f", "cannot be imported (ModuleNotFoundError: No module named 'nowhere')"),
    ):
        done = run_cdxmill("count", "--call", call, "-o", "x", archive, cwd=own)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
        assert reason in done.stderr.decode()
    done = run_cdxmill("count", "-o", "x", archive, cwd=own)
    assert b"expected tags, servers, words, links, or --call" in done.stderr
    assert not (own / "x").exists()
    with pytest.raises(UsageError, match="give either WHAT or --call"):
        cdxmill.count("tags", archive, call=tags)


def test_a_job_of_cc_pyspark_moves_over_in_ten_lines(
    tmp_path: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    """What the old job yields for the records, as warcio reads them, is what the new one counts."""
    [diff] = fences(DOCS / "migrating.md", "diff")
    lines = diff.splitlines()
    changed = [sum(line.startswith(sign) for line in lines) for sign in "-+"]
    assert max(changed) <= 10
    old, new = ("\n".join(line[1:] for line in lines if not line.startswith(sign)) for sign in "+-")
    (tmp_path / "html_tag_count.py").write_text(new)
    iana = pywb_warcs / "iana.warc.gz"
    done = run_cdxmill("count", "--call", "html_tag_count:TagCountJob", "-qo", "-", iana, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    module: dict[str, Any] = {"CCSparkJob": CCSparkJob, "__name__": "old"}
    exec(old.replace("from sparkcc import CCSparkJob", ""), module)
    counts = Counter[str]()
    with iana.open("rb") as file:
        for record in ArchiveIterator(file):
            for tag, number in module["TagCountJob"]().process_record(record):
                counts[tag] += number
    assert done.stdout.decode() == "".join(f"{tag}\t{number}\n" for tag, number in sorted(counts.items()))


class CCSparkJob:
    """What cc-pyspark's base class does with a record (sparkcc.py)."""

    @staticmethod
    def is_response_record(record: ArcWarcRecord) -> bool:
        return bool(record.rec_type == "response")

    @staticmethod
    def is_html(record: ArcWarcRecord) -> bool:
        return "text/html" in record.http_headers.get_header("content-type", "")

    @staticmethod
    def get_payload_stream(record: ArcWarcRecord) -> Any:
        return record.content_stream()


def test_the_module_of_jobs_is_the_same_after_a_class_was_imported(
    own: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of a job is imported without mrjob, so with a stub in the place of that module."""
    monkeypatch.chdir(own)
    monkeypatch.setattr(sys, "path", [str(own), *sys.path])
    jobs = ModuleType("cdxmill.jobs.count_job")
    monkeypatch.setitem(sys.modules, jobs.__name__, jobs)
    words = ["count", "-q", "--call", "own_counters:Statuses", "-o", "x", str(pywb_warcs / "example.warc.gz")]
    assert main(words) == 0
    assert sys.modules[jobs.__name__] is jobs


def test_a_process_that_ends_costs_its_record_and_after_ten_the_archive(
    tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The archives of its group are counted one by one then; scan has no groups."""
    code = """import os
def f(record):
    if record.url.endswith('/2' if b'odd' in record.http_head else '/1') or b'bad' in record.http_head:
        os._exit(7)
    return {'a': 1}
"""
    (tmp_path / "ends.py").write_text(code)
    (tmp_path / "warcs").mkdir()
    names = [f"{number:02d}.warc.gz" for number in range(16)]
    for number, name in enumerate(names):
        write_archive(tmp_path / "warcs" / name, [b""] * 3, "text/odd" if number % 2 else "text/html")
    write_archive(tmp_path / "warcs/bad.warc.gz", [b""] * 12, "text/bad")
    for command, output in ("count", "a"), ("scan", "b"):
        words = [command, "--call", "ends:f", "-p", "1", "-o", output, "warcs"]
        done = run_cdxmill(*words, cwd=tmp_path)
        lines = done.stderr.decode().splitlines()
        reason = "the process ended (exit status 7)"
        assert done.returncode == 1
        for name in names:
            (skipped,) = (line for line in lines if line.startswith(f"warcs/{name}@"))
            assert skipped.endswith(f": {reason}; the record is skipped")
        assert f"warcs/bad.warc.gz: {reason}; omit this archive, or find the cause" in lines
    assert (tmp_path / "a").read_text() == "a\t32\n"
    assert [gzip.decompress(path.read_bytes()).count(b"\n") for path in (tmp_path / "b").glob("*.gz")] == [
        2
    ] * 16
    assert (tmp_path / "b/failures.tsv").read_text().count(reason) == 17
