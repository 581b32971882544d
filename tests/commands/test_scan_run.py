"""A scan of several archives: which are tried again, which process scans them, what is shown, and what is reported in the end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.capture import Note
from cdxmill.commands.scanning import scan as module
from cdxmill.commands.scanning.options import ScanOptions, compiled
from cdxmill.commands.scanning.scan import ScanSummary, ending_of, scan, scanned_name
from cdxmill.commands.scanning.scan_one import ScannedArchive, ScanTask, scan_one
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Rule
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.watched import Limits, Losses, Lost, Working
from cdxmill.stages.scan.plan import Measured
from cdxmill.storage.location import locate

from .test_scan import archive

OPTIONS = ScanOptions(to="jsonl", quiet=True)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the archives a.warc.gz, of three pages, and b.warc.gz, of one."""
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / "a.warc.gz", [b"<p>1", b"<p>2", b"<p>3"])
    archive(tmp_path / "b.warc.gz", [b"<p>4"])
    return tmp_path


def named(*names: str, to: str = "jsonl") -> dict[Input, str]:
    return {Input(locate(name), name, name): scanned_name(name, to) for name in names}


def quiet() -> Failures:
    return Failures(printed=False)


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("archives", "written", "kept", "records", "matches", "text"),
    [
        (1, 1, 0, 1, 1, "1 of 1 record in 1 archive match"),
        (2, 2, 0, 5, 3, "3 of 5 records in 2 archives match"),
        (3, 1, 0, 5, 3, "3 of 5 records in 3 archives match, 2 that cannot be read"),
        (2, 2, 4, 5, 3, "3 of 5 records in 2 archives match, 4 up to date"),
        (0, 0, 4, 0, 0, "0 of 0 records in 0 archives match, 4 up to date"),
        (3, 2, 1, 0, 0, "0 of 0 records in 3 archives match, 1 that cannot be read, 1 up to date"),
    ],
)
def test_the_closing_line(
    archives: int, written: int, kept: int, records: int, matches: int, text: str
) -> None:
    assert str(ScanSummary(archives, written, kept, records, matches, [], "up to date")) == text


@pytest.mark.parametrize(
    ("path", "to", "name"),
    [
        ("d/a.warc.gz", "jsonl.gz", "d/a.warc.jsonl.gz"),
        ("a.WARC.ZST", "parquet", "a.WARC.parquet"),
        ("a.warc.gz", "warc.zst", "a.warc.zst"),
        ("a.warc", "warc.gz", "a.warc.gz"),
        ("a.arc.gz", "warc.gz", "a.arc.warc.gz"),
        ("a.warc.wet.gz", "warc.gz", "a.warc.gz"),
        ("a.warc.wet.gz", "jsonl", "a.warc.wet.jsonl"),
        ("a.warc.gz", "wet.zst", "a.warc.wet.zst"),
        ("a.gz.x", "wet.gz", "a.gz.x.warc.wet.gz"),
    ],
)
def test_the_name_of_an_output(path: str, to: str, name: str) -> None:
    assert scanned_name(path, to) == name
    assert name.endswith(ending_of(to))


def test_archives_are_scanned_and_kept() -> None:
    failures = quiet()
    done = scan(named("a.warc.gz", "b.warc.gz"), "o", OPTIONS, failures)
    assert done[:5] == (2, 2, 0, 4, 4)
    assert [row["url"][-1] for row in rows("o/a.warc.jsonl")] == ["0", "1", "2"]
    again = scan(named("a.warc.gz", "b.warc.gz"), "o", replace(OPTIONS, existing=Rule.UPDATE), failures)
    assert again[:5] == (0, 0, 2, 0, 0)
    assert (again.kept_as, failures.count) == ("skipped", 0)
    with pytest.raises(UsageError, match="was made with other options"):
        scan(named("a.warc.gz"), "o", replace(OPTIONS, extract="url"), failures)
    with pytest.raises(UsageError):
        scan(named("a.warc.gz"), "p", replace(OPTIONS, where=("odd",)), failures)
    assert not Path("p").exists()


def test_lists_are_read_again_for_each_scan() -> None:
    options = replace(OPTIONS, where=("url@list",))
    for number in (1, 2):
        Path("list").write_text(f"http://example.com/{number}\n")
        assert scan(named("a.warc.gz"), f"o{number}", options, quiet()).matches == 1
        assert [row["url"][-1] for row in rows(f"o{number}/a.warc.jsonl")] == [str(number)]


def capture(number: int, name: str) -> str:
    data = Path(name).read_bytes()
    starts = [at for at in range(len(data)) if data[at : at + 4] == b"\x1f\x8b\x08\0"]
    fields = {"url": f"http://example.com/{number}", "offset": str(starts[number]), "filename": name}
    return f"com,example)/{number} 20200101000000 {json.dumps(fields)}\n"


def test_only_captures_are_scanned() -> None:
    Path("L").write_text(capture(0, "a.warc.gz") + capture(2, "a.warc.gz") + capture(0, "a.warc.gz"))
    failures = quiet()
    done = scan(named("a.warc.gz", "b.warc.gz"), "o", OPTIONS, failures, "L")
    assert (done[:5], failures.count) == ((1, 1, 0, 2, 2), 0)
    assert [row["url"][-1] for row in rows("o/a.warc.jsonl")] == ["0", "2"]
    assert not Path("o/b.warc.jsonl").exists()
    Path("L").write_text(capture(1, "a.warc.gz"))
    with pytest.raises(UsageError, match="was made with other options"):  # other lines are other settings
        scan(named("a.warc.gz"), "o", OPTIONS, failures, "L")


@pytest.mark.parametrize(("sample", "matches"), [("1", 1), ("3", 3), ("4", 4), ("5", 4), (None, 4)])
def test_a_sample_has_so_many_records(sample: str | None, matches: int) -> None:
    done = scan(
        named("a.warc.gz", "b.warc.gz"), "o", replace(OPTIONS, sample=sample, extract="sample"), quiet()
    )
    assert done.matches == matches
    every = scan(named("a.warc.gz", "b.warc.gz"), "p", replace(OPTIONS, extract="sample"), quiet())
    found, whole = (
        sorted(row["sample"] for name in "ab" for row in rows(f"{place}/{name}.warc.jsonl")) for place in "op"
    )
    assert (found, every.matches) == (whole[:matches], 4)


def test_the_sample_of_captures_is_one_of_them() -> None:
    Path("L").write_text(capture(1, "a.warc.gz") + capture(2, "a.warc.gz"))
    done = scan(named("a.warc.gz", "b.warc.gz"), "o", replace(OPTIONS, sample="1"), quiet(), "L")
    assert done.matches == 1
    assert rows("o/a.warc.jsonl")[0]["url"][-1] in "12"


def test_a_table_has_one_set_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Any] = []
    monkeypatch.setattr(module, "record_columns", lambda *args: recorded.append(args))
    table = replace(OPTIONS, to="parquet", extract="url,offset")
    scan(named("b.warc.gz", to="parquet"), "o", table, quiet(), run=run_of([]))
    ((place, columns, outputs),) = recorded
    assert (place, list(columns)) == (locate("o"), ["url", "offset"])
    assert list(outputs) == [locate("o/b.warc.parquet")]
    scan(named("b.warc.gz"), "o", OPTIONS, quiet(), run=run_of([]))
    assert len(recorded) == 1


def result(records: int = 0, matches: int = 0, **values: Any) -> ScannedArchive:
    known: dict[str, Any] = {"is_written": True, "failures": [], "notes": [], "measured": []}
    return ScannedArchive(records, matches, **{**known, **values})


def run_of(results: Sequence[ScannedArchive], given: list[Any] | None = None) -> Any:
    """An engine that gives these results, one after the other."""
    left = list(results)

    def run(
        work: object, tasks: Sequence[ScanTask], processes: int, tick: Callable[[], None]
    ) -> Iterator[tuple[int, ScannedArchive]]:
        assert work is scan_one
        tick()
        if given is not None:
            given.append(([task.archive.path for task in tasks], [task.is_last for task in tasks], processes))
        for number in range(len(tasks)):
            yield number, left.pop(0) if left else result()

    return run


def task(name: str = "a.warc.gz", **values: Any) -> ScanTask:
    ((one, output),) = named(name).items()
    options = values.pop("options", OPTIONS)
    known = (one, locate("o") / output, Path("o"), Path("scratch"), options.settings(""), options)
    return ScanTask(*known, **{"is_last": False, **values})


def test_an_archive_may_be_tried_again_in_each_pass() -> None:
    given: list[Any] = []
    scan(named("a.warc.gz", "b.warc.gz"), "o", replace(OPTIONS, sample="3"), quiet(), run=run_of([], given))
    assert given == [(["a.warc.gz", "b.warc.gz"], [False, False], 1)] * 2


def test_options_are_checked_before_lines_are_read() -> None:
    with pytest.raises(UsageError, match="odd"):
        scan(named("a.warc.gz"), "o", replace(OPTIONS, where=("odd",)), quiet(), "absent")
    with pytest.raises(InputError, match="absent"):
        scan(named("a.warc.gz"), "o", OPTIONS, quiet(), "absent")
    assert not Path("o").exists()


def test_archives_whose_storage_gave_no_answer_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[int] = []
    monkeypatch.setattr(module, "begin_run", lambda: begun.append(1))
    given: list[Any] = []
    results = [
        result(5, 2),
        result(99, 99, again="b: no answer"),
        result(3, 1, is_written=False, failures=[Failure("b.warc.gz", None, "is bad")]),
    ]
    run = module._Run(replace(OPTIONS, processes=7), Failures(), run_of(results, given))
    run.scan_twice("scanning", [task(), task("b.warc.gz")])
    assert given == [
        (["a.warc.gz", "b.warc.gz"], [False, False], 7),
        (["b.warc.gz"], [True], 7),
    ]
    assert (begun, run.summary(6)[:5]) == ([1], (2, 1, 6, 8, 3))
    assert capsys.readouterr().err.splitlines() == [
        "b: no answer; tried again at the end",
        "b.warc.gz: is bad",
    ]
    run.scan_twice("scanning", [task()])
    assert (begun, len(given)) == ([1], 3)


def test_what_archives_report_is_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Measured("a", 1, 4, 2, 0.5), Measured("b", 0, 3, 1, 0.25)
    results = [
        result(1, 1, measured=[first, second], smallest=[0.5, 0.25], notes=[Note(7, "was cut")]),
        result(
            1, 0, measured=[second, first], smallest=[0.125], failures=[Failure("b.warc.gz", 9, "is bad")]
        ),
    ]
    failures = Failures()
    run = module._Run(replace(OPTIONS, sample="2"), failures, run_of(results))
    run.scan_twice("sampling", [task(), task("b.warc.gz")])
    assert sorted(run.smallest.numbers()) == [0.125, 0.25]
    assert run._progress.done == 2
    assert run.summary(0).measured == [Measured("b", 0, 6, 2, 0.5), Measured("a", 1, 8, 4, 1.0)]
    assert failures.items == [Failure("b.warc.gz", 9, "is bad")]
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "a.warc.gz@7: note: was cut",
        "b.warc.gz@9: is bad",
    ]


@pytest.mark.parametrize(
    ("processes", "number", "where", "engine", "expected"),
    [
        (1, 2, (), False, "here"),
        (2, 1, (), False, "here"),
        (2, 2, (), False, "watched"),
        (0, 2, (), False, "watched"),
        (1, 2, ("url~x",), False, "watched"),
        (2, 1, ("url~x",), False, "watched"),
        (2, 2, (), True, "engine"),
        (1, 1, ("url~x",), True, "engine"),
    ],
)
def test_the_process_that_scans(
    processes: int,
    number: int,
    where: tuple[str, ...],
    engine: bool,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[str] = []

    def of(name: str) -> Any:
        def run(_: object, tasks: Sequence[Any], *__: object) -> Any:
            used.append(name)
            return enumerate([result()] * len(tasks))

        return run

    def watched(tasks: Sequence[Any], asked: int, tick: object) -> Any:
        assert asked == processes
        used.append("watched")
        return ((one, result()) for one in tasks)

    monkeypatch.setattr(module, "run_tasks", of("here"))
    monkeypatch.setattr(module, "scan_watched", watched)
    options = replace(OPTIONS, processes=processes, where=where)
    run = module._Run(options, quiet(), of("engine") if engine else None)
    tasks = [task(options=options) for _ in range(number)]
    assert [one for one, _ in run._results(tasks)] == tasks
    assert used == [expected]


def test_the_limits_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def watched(*args: object) -> Iterator[Any]:
        given.append(args)
        return iter(())

    monkeypatch.setattr(module, "run_watched", watched)
    assert list(module.scan_watched([], 2, print)) == []
    assert given == []
    tasks = [task(options=replace(OPTIONS, seconds=7.0, memory=9))]
    assert list(module.scan_watched(tasks, 2, print)) == []
    assert given == [(scan_one, tasks, 2, print, Limits(7.0, 9), module._after_loss)]


@pytest.mark.parametrize(
    ("items", "seconds", "item_seconds", "text"),
    [
        (0, 31, 9.0, "starts, 31 s"),
        (0, 31, None, "starts, 31 s"),
        (1, 31, None, "record 1, 31 s, reads"),
        (120, 31, 2.0, "record 120, 31 s"),
        (120, 31, 2.01, "record 120, 31 s, this record for 2 s"),
        (120, 31, 9.0, "record 120, 31 s, this record for 9 s"),
    ],
)
def test_what_a_process_does(items: int, seconds: float, item_seconds: float | None, text: str) -> None:
    assert module._state(Working(task(), items, 3, seconds, item_seconds)) == text


def test_the_progress_shows_those_that_work_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    run = module._Run(OPTIONS, quiet(), run_of([result(10, 4)]))
    run.scan_twice("scanning", [task()])
    ticks: list[int] = []
    run._progress = SimpleNamespace(tick=lambda: ticks.append(1), more="", at_work=())  # type: ignore[assignment]
    monkeypatch.setattr(module, "_MOST_SHOWN", 2)
    monkeypatch.setattr(time, "monotonic", lambda: run._start + 4)
    working = [Working(task("d/a.warc.gz"), number, number + 1, 10.0 * number, None) for number in (1, 3, 2)]
    run._show(working)
    assert (run._progress.more, ticks) == ("16 records (4/s), 13 match", [1])
    assert run._progress.at_work == ["a.warc.gz: record 3, 30 s, reads", "a.warc.gz: record 2, 20 s, reads"]
    monkeypatch.setattr(time, "monotonic", lambda: run._start)
    run._show([])
    assert run._progress.more == "10 records (10000000/s), 4 match"


@pytest.mark.parametrize("ranks", [0, 5])
def test_what_follows_a_lost_process(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(module, "drop_unfinished", dropped.append)
    Path("o").mkdir()
    first = task(ranks=ranks)
    again = module._after_loss(first, Lost(3, "took too long"))
    assert again == [replace(first, losses=Losses(1, {3: "took too long"}))]
    assert dropped == [Path("o/a.warc.jsonl")]
    last = replace(first, losses=Losses(10, {3: "took too long"}))
    done = module._after_loss(last, Lost(4, "crashed"))
    failed = [Failure("a.warc.gz", None, "crashed", "omit this archive, or find the cause")]
    assert done == ScannedArchive(0, 0, False, [] if ranks else failed, [], [])
    assert Path("o/failures.tsv").exists() == (not ranks)
    module._after_loss(replace(first, output=locate("s3://b/o")), Lost(3, "took too long"))
    assert len(dropped) == 2


def test_what_the_options_name_is_compiled_anew() -> None:
    before = compiled(OPTIONS)
    scan(named("b.warc.gz"), "o", OPTIONS, quiet(), run=run_of([]))
    assert compiled(OPTIONS) is not before
