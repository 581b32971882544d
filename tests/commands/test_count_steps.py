"""The steps of `count`: what is asked, how archives are grouped, what follows a lost process, and what is noted."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cdxmill.capture import Note
from cdxmill.commands import count as counting
from cdxmill.commands.count import (
    CountTask,
    GroupResult,
    _after_loss,
    _counter_asked,
    _grouped,
    _note_without,
    count_asked,
    count_watched,
    report_failure,
)
from cdxmill.commands.own_function import OwnSource, without_mrjob
from cdxmill.commands.own_module import imported
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import Input, named_input
from cdxmill.options.contents import Counting
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.watched import Limits, Losses, Lost
from cdxmill.stages.counting.count_records import Counted
from cdxmill.stages.counting.counters import COUNTERS
from cdxmill.stages.counting.own_counter import BadFunction, OwnCounter
from cdxmill.stages.counting.tally import new_tally
from cdxmill.storage.location import Location
from cdxmill.storage.scratch import Scratch
from tests.commands.test_count import INFO, page, record, text


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with two WET files, a WARC and an archive with only a warcinfo."""
    monkeypatch.chdir(tmp_path)
    Path("a.warc.wet.gz").write_bytes(INFO + text("to be or not to be") + text("be"))
    Path("b.warc.wet.gz").write_bytes(INFO + text("or else"))
    Path("c.warc.gz").write_bytes(INFO + page("<p>"))
    Path("info.warc.gz").write_bytes(INFO)
    return tmp_path


def named(*names: str) -> list[Input]:
    return [named_input(name, name) for name in names]


class Told(Failures):
    """Failures that keep their notes."""

    def __init__(self) -> None:
        super().__init__(printed=False)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def counts(*inputs: str, told: Failures | None = None, what: str = "words", **options: Any) -> bytes:
    out = io.BytesIO()
    asked = Counting(what, [*inputs], output="-", processes=1, **options)
    count_asked(asked, out, told or Told())
    return out.getvalue()


def own(record: Any) -> list[str]:
    return ["item"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"what": "words", "call": own}, "words: give either WHAT or --call"),
        ({"what": "words", "call": "m:f"}, "words: give either WHAT or --call"),
        ({"call": 5}, "invalid --call 5; expected MODULE:FUNCTION, or a function"),
        ({"call": "words"}, "invalid --call 'words'; expected MODULE:FUNCTION"),
        ({}, "invalid WHAT '': expected tags, servers, words, links, or --call"),
    ],
)
def test_exactly_one_thing_is_counted(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        _counter_asked(Counting(options.get("what"), "a", output="-", call=options.get("call")))
    assert str(raised.value) == reason


def test_what_is_counted_is_found_by_its_name_or_is_a_function() -> None:
    for name, counter in COUNTERS.items():
        assert _counter_asked(Counting(name, "a", output="-")) is counter
    found = _counter_asked(Counting(None, "a", call=own, output="-"))
    assert found == OwnCounter(own)
    asked = Counting("words", "a", output="-")
    asked.what = "pages"
    with pytest.raises(UsageError, match="invalid WHAT 'pages': expected tags, "):
        _counter_asked(asked)


@pytest.mark.parametrize(
    ("archives", "processes", "sizes"),
    [
        (0, 1, []),
        (1, 1, [1]),
        (8, 1, [1] * 8),
        (15, 1, [1] * 15),
        (16, 1, [2] * 8),
        (17, 1, [2] * 8 + [1]),
        (16, 2, [1] * 16),
        (32, 2, [2] * 16),
        (799, 1, [99] * 8 + [7]),
        (800, 1, [100] * 8),
        (900, 1, [100] * 9),
        (16, 0, [1] * 16),
    ],
)
def test_archives_are_grouped_so_that_all_processes_are_busy(
    archives: int, processes: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "processes_by_default", lambda: 2)
    given = named(*map(str, range(archives)))
    groups = _grouped(given, processes)
    assert [len(group) for group in groups] == sizes
    assert [one for group in groups for one in group] == given


def test_after_a_lost_process_archives_are_counted_one_by_one(here: Path) -> None:
    scratch = here / "0"
    scratch.mkdir()
    lost = Lost(3, "takes too long")
    found = _after_loss(CountTask(named("a", "b"), scratch), lost)
    assert found == [CountTask(named("a"), here / "0-0"), CountTask(named("b"), here / "0-1")]
    assert not scratch.exists()


def test_after_a_lost_process_a_record_is_skipped_and_in_the_end_the_archive(here: Path) -> None:
    lost = Lost(3, "takes too long")
    task = CountTask(named("a"), here / "0")
    again = _after_loss(task, lost)
    assert again == [task._replace(losses=Losses(1, {3: "takes too long"}))]
    for losses, hint in (
        (Losses(10, {3: "x"}), "omit this archive, or find the cause"),
        (Losses(10), "try fewer processes (-p)"),
    ):
        found = _after_loss(task._replace(losses=losses), lost)
        assert found == GroupResult(failures=[Failure("a", None, "takes too long", hint)])


def test_a_record_that_cost_a_process_is_skipped_and_said(here: Path) -> None:
    task = CountTask(named("a.warc.wet.gz"), here / "0", Losses(1, {2: "takes too long"}))
    [(_, found)] = count_watched([task], OwnCounter(own), 1, lambda: None)
    assert found.counted.counted == 1
    (failure,) = found.failures
    assert "takes too long" in failure.reason
    assert (failure.path, failure.offset) == ("a.warc.wet.gz", len(INFO + text("to be or not to be")))


def test_failures_of_a_function_are_many_of_a_kind(capfd: pytest.CaptureFixture[str]) -> None:
    for hint, lines in ((BadFunction.hint, 10), ("repair the record", 13)):
        failures = Failures()
        for number in range(13):
            report_failure(Failure("a", number, "fails", hint), failures)
        assert failures.count == 13
        assert len(capfd.readouterr().err.splitlines()) == lines


@pytest.mark.parametrize(("number", "more"), [(0, ""), (1, ""), (3, ""), (4, "1"), (5, "2")])
def test_some_archives_without_what_is_counted_are_named(number: int, more: str) -> None:
    told = Told()
    _note_without(list("abcde"[:number]), "words", "WET files", told)
    named = [f"{name}: note: has no words to count; they are counted in WET files" for name in "abc"[:number]]
    assert told.notes == named + ([f"note: {more} more archives without words to count"] if more else [])


def test_archives_without_words_are_noted_unless_all_are() -> None:
    told = Told()
    assert counts("a.warc.wet.gz", "c.warc.gz", told=told) == b"be\t3\nnot\t1\nor\t1\nto\t2\n"
    assert told.notes == ["c.warc.gz: note: has no words to count; they are counted in WET files"]
    told = Told()
    with pytest.raises(UsageError, match=r"c\.warc\.gz: has no words to count; give WET files"):
        counts("c.warc.gz", told=told)
    Path("d.warc.gz").write_bytes(Path("c.warc.gz").read_bytes())
    with pytest.raises(UsageError, match="2 archives have no words to count; give WET files"):
        counts("c.warc.gz", "d.warc.gz", told=told)
    assert told.notes == []
    assert counts("c.warc.gz", "absent.warc.gz", told=told) == b""
    assert (told.count, len(told.notes)) == (1, 1), "the other one may have words"


def test_without_archives_nothing_is_counted() -> None:
    with pytest.raises(UsageError):
        counts()


def test_archives_without_words_are_named_in_order_whichever_ends_first() -> None:
    def run(
        tasks: Sequence[CountTask], what: str | OwnSource, limits: Limits, scratch: Scratch, /
    ) -> Iterator[tuple[CountTask, GroupResult]]:
        for task in reversed(tasks):
            (label,) = [archive.label for archive in task.archives]
            without = [] if label.startswith("a.") else [label]
            yield task, GroupResult(counted=Counted(counted=1), without=without)

    told, names = Told(), ["a.warc.wet.gz", "b.warc.wet.gz", "c.warc.gz"]
    count_asked(Counting("words", names, output="-"), io.BytesIO(), told, run)
    assert [note.partition(":")[0] for note in told.notes] == names[1:]


def test_archives_without_records_have_empty_counts() -> None:
    told = Told()
    assert counts("info.warc.gz", told=told) == b""
    assert told.notes == []


def test_what_is_skipped_for_a_reason_is_no_archive_without_it() -> None:
    Path("d.warc.gz").write_bytes(
        record("response", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")
    )
    told = Told()
    asked = Counting("servers", ["c.warc.gz", "d.warc.gz"], output="-", processes=1)
    found = count_asked(asked, io.BytesIO(), told)
    assert (found.archives, found.lines, found.counted.counted) == (2, 1, 1)
    assert found.counted.skipped == {"responses without a Server field": 1}
    assert told.notes == []


@pytest.mark.parametrize("held", [0, 1, 64 << 20])
def test_counts_are_the_same_however_much_is_held(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "HELD", held)
    assert counts("a.warc.wet.gz", "b.warc.wet.gz") == b"be\t3\nelse\t1\nnot\t1\nor\t2\nto\t2\n"


def test_tallies_are_written_when_they_are_larger_than_what_is_held(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each archive is one run then, and all are one if they fit."""
    archives = named("a.warc.wet.gz", "b.warc.wet.gz")
    for held, runs in ((64 << 20, 1), (0, 2)):
        monkeypatch.setattr(counting, "HELD", held)
        task = CountTask(archives, here / f"runs-{held}")
        [(_, found)] = count_watched([task], COUNTERS["words"], 1, lambda: None)
        assert len(found.runs) >= runs
        assert (len(found.runs) == 1) == (runs == 1)
        names = [f"runs-{held}/runs-{held}.{number}" for number in range(1, len(found.runs) + 1)]
        assert [run.name for run in found.runs] == names


def write(*inputs: str, told: Failures | None = None, output: str = "out.tsv", **options: Any) -> Any:
    asked = Counting("words", [*inputs], output=output, processes=1, **options)
    return count_asked(asked, output, told or Told())


def test_a_file_is_written_whole_or_not_at_all() -> None:
    found = write("a.warc.wet.gz")
    assert (found.what, found.archives, found.lines, found.counted.counted) == ("words", 1, 4, 2)
    whole = Path("out.tsv").read_bytes()
    with pytest.raises(UsageError, match="--replace"):
        write("b.warc.wet.gz")
    with pytest.raises(InputError, match=r"out\.tsv: was not written, because nothing was counted"):
        write("absent.warc.wet.gz", replace=True)
    assert Path("out.tsv").read_bytes() == whole
    told = Told()
    write("absent.warc.wet.gz", "b.warc.wet.gz", told=told, replace=True)
    assert (Path("out.tsv").read_bytes(), told.count) == (b"else\t1\nor\t1\n", 1)
    write("info.warc.gz", replace=True)
    assert Path("out.tsv").read_bytes() == b""
    write("b.warc.wet.gz", output="out.tsv.gz")
    assert gzip.decompress(Path("out.tsv.gz").read_bytes()) == b"else\t1\nor\t1\n"
    with pytest.raises(UsageError):
        write("b.warc.wet.gz", output="b.warc.wet.gz", replace=True)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ImportError(name="selectolax")

    monkeypatch.setattr(counting, "_run", fail)
    with pytest.raises(UsageError, match="selectolax is not installed; pip install "):
        counts("a.warc.wet.gz")


def test_a_library_that_an_archive_needs_is_missed_before_anything_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def require(place: Location) -> None:
        raise UsageError(f"{place}: needs a library")

    monkeypatch.setattr(Location, "require", require)
    monkeypatch.setattr(counting, "_run", lambda *given: pytest.fail("it begins"))
    with pytest.raises(UsageError, match=r"a\.warc\.wet\.gz: needs a library"):
        counts("a.warc.wet.gz")


def test_another_engine_gets_what_is_asked_one_archive_at_a_time(here: Path) -> None:
    """A function of the user is sent as its source."""
    Path("own_engine_test.py").write_text("def items(record):\n    return ['x']\n")
    seen: list[tuple[list[int], str | OwnSource, Limits]] = []

    def run(
        tasks: Sequence[CountTask], what: str | OwnSource, limits: Limits, scratch: Scratch, /
    ) -> Iterator[tuple[CountTask, GroupResult]]:
        seen.append(([len(task.archives) for task in tasks], what, limits))
        for task in tasks:
            yield task, GroupResult(counted=Counted(records=1, counted=1))

    names = [f"{number:02}.warc.wet.gz" for number in range(16)]
    for name in names:
        Path(name).write_bytes(INFO)
    options: dict[str, Any] = {"output": "-", "processes": 1, "timeout": 7, "memory": 3}
    assert count_asked(Counting("words", names, **options), io.BytesIO(), Told(), run).what == "words"
    done = count_asked(
        Counting(None, names, call="own_engine_test:items", **options), io.BytesIO(), Told(), run
    )
    sys.modules.pop("own_engine_test")
    assert (done.what, done.counted.counted) == ("items", 16)
    limits = Limits(7, 3 << 20)
    source = OwnSource("own_engine_test:items", Path("own_engine_test.py").read_bytes())
    assert seen == [([1] * 16, "words", limits), ([1] * 16, source, limits)]


def test_the_working_directory_is_searched_last_and_only_once(here: Path) -> None:
    Path("json.py").write_text("raise ValueError('of the user')\n")
    Path("own_module_test.py").write_text("import sys\nseen = list(sys.path)\n")
    before = list(sys.path)
    json = sys.modules.pop("json")
    try:
        assert imported("json").__file__ == json.__file__
    finally:
        sys.modules["json"] = json
    found = imported("own_module_test")
    sys.modules.pop("own_module_test")
    assert found.seen == [*before, str(here)]
    with pytest.raises(ModuleNotFoundError):
        imported("absent_module_test")
    assert sys.path == before


@pytest.mark.parametrize("is_there", [True, False])
def test_the_module_of_jobs_is_what_it_was(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name, module = "cdxmill.jobs.count_job", ModuleType("cdxmill.jobs.count_job")
    monkeypatch.delitem(sys.modules, name, raising=False)
    if is_there:
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ValueError, match="inside"), without_mrjob():
        assert sys.modules[name].CountJob is object
        raise ValueError("inside")
    assert sys.modules.get(name) is (module if is_there else None)


def test_a_record_is_marked_while_it_is_counted_and_not_while_a_run_is_written(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs is known by its mark. The disk may be slow."""
    seen: list[object] = []
    monkeypatch.setattr(counting, "mark", seen.append)
    monkeypatch.setattr(counting, "unmark", lambda: seen.append("none"))
    (here / "runs").mkdir()
    group = counting._Group(Scratch(here / "runs"), "runs", Losses(1, {5: "takes too long"}))
    assert (group._begin(4), group._begin(5)) == ("", "takes too long")
    tally = new_tally()
    tally.add(b"item", 1)
    assert group._spill(tally).name == "runs/runs.1"
    assert seen == [4, 5, "none"]


def test_many_notes_of_a_kind_are_counted_at_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    def run(
        tasks: Sequence[CountTask], what: str | OwnSource, limits: Limits, scratch: Scratch, /
    ) -> Iterator[tuple[CountTask, GroupResult]]:
        notes = [("a", Note(number, "is odd")) for number in range(13)]
        yield tasks[0], GroupResult(counted=Counted(counted=1), notes=notes)

    asked = Counting("words", "a.warc.wet.gz", output="-")
    asked.quiet = True
    count_asked(asked, io.BytesIO(), Failures(), run)
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "a@0: note: is odd"
    assert (len(said), "3 more notes of this kind" in said[-1]) == (11, True)
