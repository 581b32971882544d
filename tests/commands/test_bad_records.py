"""A record that nobody expected costs that record: it is reported, and `scan` and `count` go on."""

from __future__ import annotations

import errno
import faulthandler
import gzip
import os
import signal
import time
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.count import CountTask, count_watched
from cdxmill.commands.scanning import scan_one
from cdxmill.inputs.named import named_input
from cdxmill.running.watched import Limits
from cdxmill.stages.counting.own_counter import OwnCounter
from cdxmill.stages.counting.tally import sum_lines
from cdxmill.stages.lines.merge_lines import merge_runs
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.pages.parse_page import Page
from cdxmill.stages.records.decode_payload import PayloadError
from cdxmill.storage.scratch import Scratch

from .test_scan import archive, rows

Capture = pytest.CaptureFixture[str]


def strange(self: Page) -> bool:
    """What a library might do on one page of millions."""
    if self.url.endswith("/1"):
        raise ZeroDivisionError("no reason\nat all")
    return False


def reported(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if "unexpected ZeroDivisionError: no reason at all" in line]


@pytest.mark.parametrize("asked", [["--extract", "url,links"], ["--where", "link_host=x.org"]])
def test_a_strange_record_costs_scan_one_record(
    asked: list[str], tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Page, "links", property(lambda self: strange(self) or ["http://x.org/"]))
    path = archive(tmp_path / "a.warc.gz", [b"<p>one", b"<p>two", b"<p>three"])
    assert main(["scan", "-q", "-o", str(tmp_path / "out"), *asked, str(path)]) == 1
    assert [row["url"][-1] for row in rows(tmp_path / "out")] == ["0", "2"]
    (line,) = reported(capfd.readouterr().err)
    assert line.startswith(f"{path}@")
    assert line.endswith("; the record is skipped; report it to the maintainers of cdxmill")
    assert "ZeroDivisionError" in (tmp_path / "out" / "failures.tsv").read_text()


def test_a_strange_record_costs_count_one_record(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Page.__dict__["base"].__get__
    monkeypatch.setattr(Page, "base", property(lambda self: strange(self) or base(self, Page)))
    pages = [b'<a href="http://x.org/%d">' % number for number in range(3)]
    path = archive(tmp_path / "a.warc.gz", pages)
    assert main(["count", "links", "-q", "-o", str(tmp_path / "out"), str(path)]) == 1
    assert (tmp_path / "out").read_bytes() == b"com.example org.x\t2\n"
    (line,) = reported(capfd.readouterr().err)
    assert line.startswith(f"{path}@")


def test_a_sick_machine_is_not_the_records_fault(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Page) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Page, "base", property(fails))
    path = archive(tmp_path / "a.warc.gz", [b'<a href="http://x.org/">'])
    assert main(["count", "links", "-q", "-o", str(tmp_path / "counts"), str(path)]) == 3
    assert main(["scan", "-q", "-o", str(tmp_path / "out"), "--extract", "links", str(path)]) == 3
    assert not (tmp_path / "counts").exists()


def test_a_link_of_svg_has_another_attribute(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.warc.gz", [b'<svg><a xlink:href="/x"></svg><a href="http://x.org/">'])
    assert main(["count", "links", "-q", "-o", str(tmp_path / "out"), str(path)]) == 0
    assert (tmp_path / "out").read_bytes() == b"com.example org.x\t1\n"


@pytest.mark.parametrize("asked", [["--extract", "url,surt"], ["--where", "not surt^=org,"]])
def test_a_url_with_a_bad_port_has_no_key(asked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    data = archive(path, [b"<p>"]).read_bytes()
    path.write_bytes(
        gzip.compress(gzip.decompress(data).replace(b"http://example.com/0", b"http://e.com:x/000/0"))
    )
    assert main(["scan", "-q", "-o", str(tmp_path / "out"), *asked, str(path)]) == 0
    (row,) = rows(tmp_path / "out")
    assert row["url"] == "http://e.com:x/000/0"
    assert row.get("surt") is None


def does_harm(record: FullRecord) -> str:
    """Count the last byte of the URL; some records do harm."""
    last = record.headers[b"warc-target-uri"][-1:].decode()
    if last == "1":
        time.sleep(999)
    if last == "2":
        faulthandler.disable()  # of pytest: it writes a trace
        os.kill(os.getpid(), signal.SIGSEGV)
    return last


def test_a_record_that_hangs_or_crashes_costs_count_that_record(tmp_path: Path) -> None:
    paths = [archive(tmp_path / f"{name}.warc.gz", [b"<p>"] * 4) for name in "ab"]
    inputs = [named_input(path, str(path)) for path in paths]
    tasks = [CountTask(inputs, tmp_path / "scratch" / "0")]
    limits = Limits(0.5)
    found = [result for _, result in count_watched(tasks, OwnCounter(does_harm), 2, lambda: None, limits)]
    scratch = Scratch(tmp_path / "scratch")
    lists = sum_lines(merge_runs([run for one in found for run in one.runs], scratch.create, scratch.reader))
    assert [line for lines in lists for line in lines] == [b"0\t2", b"3\t2"]
    failures = sorted(failure for one in found for failure in one.failures)
    reasons = ["took longer than 0.5 s", "the process was killed by SIGSEGV"]
    assert [(one.path, one.reason) for one in failures] == [
        (str(path), reason) for path in paths for reason in reasons
    ]
    assert all(one.offset and one.hint == "the record is skipped" for one in failures)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (MemoryError(), 1, ": not enough memory for this record"),
        (PayloadError("needs a library"), 1, ": needs a library"),
        (ValueError("odd"), 1, ": unexpected ValueError: odd; "),
        (OSError(errno.ENOSPC, "No space left on device"), 3, "No space left on device"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_scan_tells_a_record_from_the_machine(
    error: Exception,
    status: int,
    reason: str,
    pywb_warcs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(scan_one, "FullRecord", fails)
    words = ["-q", "-p", "1", "-o", str(tmp_path / "out"), "--extract", "header.warc-type"]
    assert main(["scan", *words, str(pywb_warcs / "example.warc.gz")]) == status
    assert reason in capsys.readouterr().err
