"""Progress: a line in a log every 30 seconds, and none while nothing is wanted; also from within one long task."""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdxmill.cli.main import main
from cdxmill.messages import Step
from cdxmill.running import processes, progress
from cdxmill.running.processes import bytes_done, count_bytes, count_in, run_tasks
from cdxmill.running.progress import Progress, listened_to

from ..material.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def test_a_log_gets_a_line_every_30_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    count_in([0])
    shown = []
    with progress.Progress("indexing", 10, 8 << 20) as running:
        for seconds in range(100):
            clock.now = 1000.0 + seconds
            running.tick()
            if line := capsys.readouterr().err:
                shown.append((seconds, line))
            count_bytes(1 << 16)
            running.done = seconds // 25
            running.failures = seconds // 50
    assert shown == [
        (30, "indexing: 1/10, 1.9 MiB of 8.0 MiB, 64.0 KiB/s, 1 min 38 s left\n"),
        (60, "indexing: 2/10, 3.8 MiB of 8.0 MiB, 64.0 KiB/s, 1 min 8 s left, 1 failure\n"),
        (90, "indexing: 3/10, 5.6 MiB of 8.0 MiB, 64.0 KiB/s, 38 s left, 1 failure\n"),
    ]


def test_each_tick_does_what_is_due_with_or_without_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    monkeypatch.setattr(progress, "WITH_EACH_TICK", [lambda: done.append(1), lambda: done.append(2)])
    for stderr in (sys.stderr, None):
        monkeypatch.setattr(sys, "stderr", stderr)
        with progress.Progress("indexing", 1, quiet=True) as running:
            running.tick()
        with progress.Progress("indexing", 1) as running:
            running.tick()
    assert done == [1, 2] * 4


def test_a_log_says_what_is_at_work(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    count_in([0])
    with progress.Progress("scanning", 3) as running:
        running.done, running.more, running.at_work = 1, "7 matches", ["1: a.warc.gz, 3 records", "2: idle"]
        clock.now += 60
        running.tick()
    first, second = capsys.readouterr().err.splitlines()
    assert first == "scanning: 1/3, 2 min 0 s left, 7 matches"
    assert second == "scanning: at work: 1: a.warc.gz, 3 records; 2: idle"


def test_the_time_left_is_shown_between_start_and_end(clock: Clock) -> None:
    count_in([0])
    for total in (0, 4 << 20):
        running = progress.Progress("indexing", 4, total, quiet=True)
        clock.now += 60
        assert "left" not in running.line()
        running.done = 2
        count_in([2 << 20])
        assert ("left" in running.line()) is True
        running.done = 4
        count_in([4 << 20])
        assert "left" not in running.line()
        count_in([0])


def test_a_message_is_printed_beside_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.Progress("indexing", 3) as running:
        running.say("a: is [bold] corrupt\x1b")
    assert "a: is [bold] corrupt\\x1b" in capsys.readouterr().err


def test_a_bar_is_shown_with_the_processes_below_and_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    count_in([0])
    threads = set(threading.enumerate())
    with progress.Progress("[bold]reading", 4) as running:
        running.advance()
        running.at_work = ["a.warc.gz\x1b", "[red]b.warc.gz" + " x" * 200]
        capsys.readouterr()
        running.tick()
        shown = strip(capsys.readouterr().err)
        assert set(threading.enumerate()) <= threads
        running.say("a.warc.gz: 17 records" + "y" * 200)
        out, err = capsys.readouterr()
    assert re.search(
        r"━+.* \[bold\]reading: 1/4, .*\n *a.warc.gz\\x1b *\n *\[red\]b.warc.gz( x)+ ?… *$", shown
    )
    assert "a.warc.gz: 17 records" + "y" * 200 in err  # on one line, without colors
    assert "[bold]reading: 1/4" in strip(err)  # the bar is shown again
    rest = capsys.readouterr()
    assert (out, rest.out) == ("", "")
    assert rest.err.endswith("\x1b[2K")  # the bar and the lines below it are erased
    assert rest.err.count("\x1b[2K") >= 3


def test_without_a_bar_a_message_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Progress("reading", 4) as running:
        running.say("a: is corrupt\x1b")
    assert capsys.readouterr().err == "a: is corrupt\\x1b\n"


def strip(text: str) -> str:
    """The text without colors and moves of the cursor."""
    return re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", text).replace("\r", "")


def test_without_a_total_the_bytes_so_far_are_shown(clock: Clock) -> None:
    count_in([3 << 20])
    running = progress.Progress("reading", 2, quiet=True)
    clock.now += 2
    assert running.line() == "reading: 0/2, 3.0 MiB, 1.5 MiB/s"
    count_in([0])
    assert running.line() == "reading: 0/2"
    assert progress.Progress("reading", 0, quiet=True).line() == "reading: 0/0"


def test_quiet_prints_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for is_terminal in (False, True):
        monkeypatch.setattr("sys.stderr.isatty", lambda answer=is_terminal: answer)
        with progress.Progress("indexing", 10, quiet=True) as running:
            clock.now += 1000
            running.tick()
        assert capsys.readouterr().err == ""


def test_one_task_shows_progress_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "TICK", 0.0)
    seen = []

    def work(size: int) -> int:
        for _ in range(3):
            count_bytes(size)
        return size

    assert list(run_tasks(work, [5], 4, lambda: seen.append(bytes_done()))) == [(0, 5)]
    assert seen == [5, 10, 15, 15]
    count_bytes(1)  # the step is over
    assert len(seen) == 4


def test_one_task_shows_progress_twice_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = Clock(), list[float]()
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=clock.monotonic))
    monkeypatch.setattr(processes._Counter, "ticked", 0.0)

    def work(number: int) -> None:
        for _ in range(number):
            clock.now += 0.25
            count_bytes(1)

    assert len(list(run_tasks(work, [5], 1, lambda: seen.append(clock.now)))) == 1
    assert seen == [1000.25, 1000.75, 1001.25]


def test_only_the_process_of_the_command_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that runs here may have tasks of its own in other processes, as the sort of a large archive has."""
    monkeypatch.setattr(processes, "TICK", 0.01)
    path = tmp_path / "pids"

    def tick() -> None:
        with path.open("a") as file:
            print(os.getpid(), file=file)

    def inner(number: int) -> int:
        monkeypatch.setattr(processes, "TICK", 0.0)
        count_bytes(number)
        return number

    def outer(number: int) -> int:
        found = sum(result for _, result in run_tasks(inner, [1, 2, 3], 2, tick))
        count_bytes(number)
        return found

    assert list(run_tasks(outer, [7], 1, tick)) == [(0, 6)]
    assert set(path.read_text().split()) == {str(os.getpid())}


def test_a_log_of_one_archive_has_progress(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "TICK", 0.0)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    assert main(["index", "-o", str(tmp_path), str(pywb_warcs / "iana.warc.gz")]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("indexing: 0/1, ")]
    assert lines
    assert all(
        re.fullmatch(r"indexing: 0/1, \S+ KiB of 768.4 KiB, \S+ \S+/s(, .+ left)?", line) for line in lines
    )


def test_shards_have_progress_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "TICK", 0.0)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    lines = [
        b'com,h%06d)/ 2020 {"url": "http://h%06d.com/"}\n' % (number, number) for number in range(30_000)
    ]
    for name, some in (
        ("sorted", lines),
        ("mixed", lines[::-1]),
    ):  # read in place, and sorted in scratch files
        (tmp_path / f"{name}.cdxj").write_bytes(b"".join(some))
        out = tmp_path / name
        assert main(["zipnum", "-s", "1", "--location", ".", "-o", str(out), f"{out}.cdxj"]) == 0
        found = re.findall(r"(?m)^writing shards: 0/1, (\S+) KiB of (\S+) KiB, ", capsys.readouterr().err)
        assert len(found) > 1, name
        assert 0 < float(found[0][0]) <= float(found[-1][0]) == float(found[-1][1])


def test_a_listener_is_called_with_each_tick() -> None:
    seen: list[int] = []
    with listened_to(lambda step: seen.append(step.done)), Progress("reading", 3, quiet=True) as progress:
        for _ in range(2):
            progress.advance()
            progress.tick()
        assert seen == [1, 2]


def test_a_listener_learns_of_the_end_and_may_end_the_run() -> None:
    seen: list[Step] = []

    def refuse(step: Step) -> None:
        raise KeyError(step.name)

    count_in([7])
    with listened_to(seen.append):
        with Progress("reading", 3, 100, quiet=True) as progress:
            progress.done, progress.failures = 2, 1
        assert seen == [Step("reading", 2, 3, 7, 100, 1)]
        writing = Progress("writing", 3, quiet=True)
        with pytest.raises(KeyError, match="writing"), listened_to(refuse), writing, suppress(Exception):
            writing.tick()
        with pytest.raises(OSError, match="disk"), Progress("reading", 3, quiet=True):
            raise OSError("disk")
        assert len(seen) == 1
    with Progress("reading", 3, quiet=True):
        pass
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("read", "line"), [(4, "0/2, 4.0 MiB of 4.0 MiB, 2.0 MiB/s"), (7, "0/2, 4.0 MiB of 4.0 MiB, 2.0 MiB/s")]
)
def test_no_more_is_read_than_there_is(read: int, line: str, clock: Clock) -> None:
    """A file may have grown, and some of it may be read twice."""
    running = progress.Progress("reading", 2, 4 << 20, quiet=True)
    clock.now += 2
    count_in([read << 20])
    assert running.line() == f"reading: {line}"


def test_a_rate_is_known_from_the_first_moment(clock: Clock) -> None:
    count_in([1 << 20])
    for total, read in ((4 << 20, "1.0 MiB of 4.0 MiB"), (0, "1.0 MiB")):
        line = progress.Progress("reading", 2, total, quiet=True).line()
        assert line.startswith(f"reading: 0/2, {read}, ")


def test_a_bar_shows_the_share_that_is_done(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[float] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(
        "cdxmill.running.progress._Bar.show", lambda self, share, text, below: shown.append(share)
    )
    for items, done, total, read in (
        (4, 1, 0, 0),
        (0, 0, 0, 0),
        (4, 1, 10, 5),
        (4, 1, 10, 10),
        (4, 1, 10, 20),
    ):
        count_in([read])
        with progress.Progress("reading", items, total) as running:
            running.done = done
            running.tick()
    assert shown == [0.25, 1.0, 0.5, 1.0, 1.0]


def test_listeners_may_be_within_each_other() -> None:
    seen: list[str] = []
    with listened_to(lambda step: seen.append(f"outer {step.name}")):
        with listened_to(lambda step: seen.append(f"inner {step.name}")), Progress("a", 1, quiet=True):
            pass
        with Progress("b", 1, quiet=True):
            pass
        with listened_to(None), Progress("c", 1, quiet=True):
            pass
    assert seen == ["inner a", "outer b"]
