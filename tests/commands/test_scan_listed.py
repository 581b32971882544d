"""What is listed and noted of the records of one archive, and who is to blame for what fails."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.capture import Damage, Note
from cdxmill.commands.scanning import scan_one as module
from cdxmill.commands.scanning.scan_one import scan_one
from cdxmill.errors import StoppedError
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failure
from cdxmill.stages.pages.full_record import CUT_RECORD
from cdxmill.stages.records.decode_payload import PayloadError
from cdxmill.stages.records.parse_header import RecordError
from cdxmill.stages.records.unexpected import HINT
from cdxmill.stages.scan.fields import CallError
from cdxmill.stages.scan.plan import Measured
from cdxmill.stages.scan.sampling import sample_field
from cdxmill.storage.location import locate

from .test_scan import archive
from .test_scan_one import NAME, offsets, task


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with an archive of four pages."""
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / NAME, [b"<p>page %d" % number for number in range(4)])
    (tmp_path / "o").mkdir()


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (MemoryError(), ("not enough memory for this record", "")),
        (PayloadError("brotli is not installed"), ("brotli is not installed", "")),
        (ValueError("two\n  lines"), ("unexpected ValueError: two lines", HINT)),
        (RecursionError(), ("nested too deeply", HINT)),
        (OSError("disk"), None),
        (StoppedError("stop"), None),
        (ImportError("x"), None),
    ],
)
def test_who_is_to_blame(error: Exception, found: tuple[str, str] | None) -> None:
    scan = module._Scan(task())
    if found is None:
        with pytest.raises(type(error)):
            module._blamed(error)
        with pytest.raises(type(error)), scan._listing(7):
            raise error
        assert scan.failures == []
        return
    assert module._blamed(error) == found
    with scan._listing(7):
        raise error
    assert scan.failures == [Failure(NAME, 7, *found)]


def test_a_row_that_cannot_be_made_is_listed() -> None:
    scan = module._Scan(task())
    with scan._listing(7):
        raise CallError("no row")
    assert scan.failures == [Failure(NAME, 7, "no row")]


@pytest.mark.parametrize(
    "error", [MemoryError(), ValueError("x"), OSError("disk"), RecordError("no header", "omit it")]
)
def test_a_condition_that_fails_costs_the_record(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = module._Scan(task())

    def passes(record: Any) -> bool:
        if record.number == 1:
            raise error
        return True

    scan._passes = passes
    if isinstance(error, OSError):
        with pytest.raises(OSError, match="disk"):
            scan.run(SimpleNamespace(write=lambda _: None))  # type: ignore[arg-type]
    else:
        scan.run(SimpleNamespace(write=lambda _: None))  # type: ignore[arg-type]
        assert (scan.records, scan.matches) == (4, 3)
        is_known = isinstance(error, RecordError)
        expected = ("no header", "omit it") if is_known else module._blamed(error)
        assert scan.failures == [Failure(NAME, offsets()[1], *expected)]


@pytest.mark.parametrize(
    ("answer", "counted", "records"),
    [(True, True, 1), (False, False, 0), (ValueError("x"), False, 0), (OSError("disk"), None, 0)],
)
def test_a_record_that_is_refused_is_counted(answer: Any, counted: bool | None, records: int) -> None:
    scan = module._Scan(task())

    def refuses(_: object) -> bool:
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    asked: Callable[[Any], bool] = scan._counting(refuses)
    if counted is None:
        with pytest.raises(OSError, match="disk"):
            asked(1)
    else:
        assert asked(1) == counted
    assert (scan.records, scan.failures) == (records, [])


@pytest.mark.parametrize("by_head", [False, True])
@pytest.mark.parametrize("by_content", [False, True])
def test_refusals_are_those_of_the_conditions(by_head: bool, by_content: bool) -> None:
    scan = module._Scan(task())
    scan._plan = SimpleNamespace(  # type: ignore[assignment]
        can_refuse=by_head, can_refuse_content=by_content, refuses=len, refuses_content=bool
    )
    found = scan._refusals()
    assert (found.by_head is not None, found.by_content is not None) == (by_head, by_content)
    if found.by_content is not None:
        assert (found.by_content(b""), found.by_content(b"x"), scan.records) == (False, True, 1)


def record(problem: str = "", page_problem: str = "", is_large: bool = False, **parts: Any) -> Any:
    found = SimpleNamespace(offset=7, is_large=is_large)
    if problem or parts.get("has_body"):
        found.body = SimpleNamespace(problem=problem)
    if page_problem or parts.get("has_page"):
        found.page = SimpleNamespace(problem=page_problem)
    if parts.get("no_page"):
        found.page, found.body = None, None
    return found


@pytest.mark.parametrize(
    ("given", "notes", "of_page"),
    [
        (record(), [], []),
        (record(has_body=True, has_page=True), [], []),
        (record(no_page=True), [], []),
        (record("was cut"), ["was cut"], []),
        (record(page_problem="was long"), ["was long"], ["was long"]),
        (record(is_large=True), [CUT_RECORD], []),
        (record("was cut", "was long", True), ["was cut", CUT_RECORD, "was long"], ["was long"]),
    ],
)
def test_what_was_read_in_part_is_noted(given: Any, notes: list[str], of_page: list[str]) -> None:
    for name, expected in (("_note_problems", notes), ("_note_problem_of_page", of_page)):
        scan = module._Scan(task())
        getattr(scan, name)(given)
        assert scan.notes == [Note(7, text) for text in expected]


def test_notes_are_of_records_that_match_and_of_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(module._Scan, "_note_problems", lambda _, one: noted.append(f"match {one.number}"))
    monkeypatch.setattr(
        module._Scan, "_note_problem_of_page", lambda _, one: noted.append(f"page {one.number}")
    )
    scan_one(task(where=("text:'page 1'",)))
    assert "match 1" in noted
    assert not {"match 0", "match 2", "match 3", "page 1"} & {*noted}


def test_a_page_that_does_not_match_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[int] = []
    monkeypatch.setattr(module._Scan, "_note_problem_of_page", lambda _, one: noted.append(one.number))
    scan = module._Scan(task())
    scan._passes = lambda record: False
    scan.run(SimpleNamespace(write=lambda _: None))  # type: ignore[arg-type]
    assert (noted, scan.matches) == ([0, 1, 2, 3], 0)


def test_damage_is_no_record() -> None:
    scan = module._Scan(task())
    items: list[Any] = [Damage(5, "is cut", "fetch it"), ("content", "record")]
    scan._items = lambda _: iter(items)  # type: ignore[assignment, method-assign]
    assert list(scan._chosen(None)) == items[1:]  # type: ignore[arg-type]
    assert scan.failures == [Failure(NAME, 5, "is cut", "fetch it")]


def test_conditions_are_measured_for_each_archive() -> None:
    given = task(where=("status=200", "url:/1"))
    first, second = scan_one(given).measured, scan_one(given).measured
    for found in (first, second):
        tested = {one.text: one.tested for one in found}
        assert tested["status=200"] in range(1, 5) and tested["url:/1"] in range(1, 5)
        assert all(0 <= one.held <= one.tested and one.seconds >= 0 for one in found)
    assert len(first) == len(second) == 2
    scan = module._Scan(given)
    before = [Measured("a", 1, 5, 3, 2.0), Measured("b", 0, 1, 1, 1.0)]
    scan._before = before
    now = [Measured("b", 0, 4, 2, 1.5), Measured("a", 1, 9, 4, 5.0), Measured("a", 0, 1, 1, 1.0)]
    scan._plan = SimpleNamespace(measured=lambda: now)  # type: ignore[assignment]
    assert scan.measured() == [Measured("b", 0, 3, 1, 0.5), Measured("a", 1, 4, 1, 3.0)]


def test_the_name_of_an_archive_is_text() -> None:
    one = replace(task(extract="filename"), archive=Input(locate(NAME), "\udcff.warc.gz", NAME))
    scan_one(one)
    names = {json.loads(line)["filename"] for line in Path("o/a.warc.jsonl").read_bytes().splitlines()}
    assert names == {"\ufffd.warc.gz"}
    assert sample_field(0).read(SimpleNamespace(header=lambda _: None, url="", time="")) < 1  # type: ignore[arg-type]
    assert gzip.decompress(Path(NAME).read_bytes()).count(b"WARC/1.0") == 4
