"""One archive that is scanned: what is written, counted, noted and listed, and when it is tried again."""

from __future__ import annotations

import importlib
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.scanning import scan_one as module
from cdxmill.commands.scanning.captures import sort_captures
from cdxmill.commands.scanning.options import ScanOptions, compiled
from cdxmill.commands.scanning.scan_one import ScannedArchive, ScanTask, scan_one
from cdxmill.errors import (
    AbsentError,
    InputError,
    OutageError,
    RefusedError,
    UntriedError,
)
from cdxmill.inputs.joined_ranges import JoinedRanges
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failure, Failures
from cdxmill.running.watched import Losses
from cdxmill.stages.records.unexpected import SKIPPED
from cdxmill.storage.location import Location, locate
from cdxmill.storage.scratch import Scratch

from .test_scan import archive

NAME = "a.warc.gz"
URL = "http://example.com/%d"
MODULE = """
def odd(record):
    return False if record.number % 2 else {"n": record.number}
def fails(record):
    if record.number == 1: raise ValueError("no")
def no_json(record):
    return {"n": object()} if record.number == 1 else None
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working directory with an archive of four pages, and the module own_one."""
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / NAME, [b"<p>page %d" % number for number in range(4)])
    (tmp_path / "own_one.py").write_text(MODULE)
    (tmp_path / "o").mkdir()
    importlib.invalidate_caches()
    compiled.cache_clear()
    yield
    sys.modules.pop("own_one", None)


def task(place: str = NAME, **values: Any) -> ScanTask:
    names = ScanOptions.__dataclass_fields__
    given = {
        "to": "jsonl",
        "extract": "offset,url",
        **{name: values.pop(name) for name in list(values) if name in names},
    }
    options = ScanOptions(**given)
    one = Input(locate(place), NAME, place)
    output = locate("o") / f"a.warc.{options.to.removeprefix('warc.')}"
    known = (one, output, Path("o"), Path("scratch"), options.settings(""), options)
    return ScanTask(*known, **values)  # fmt: skip


def numbers(path: str = "o/a.warc.jsonl") -> list[int]:
    return [int(json.loads(line)["url"][-1]) for line in Path(path).read_bytes().splitlines()]


def offsets() -> list[int]:
    data = Path(NAME).read_bytes()
    return [at for at in range(len(data)) if data[at : at + 4] == b"\x1f\x8b\x08\0"]


def members(path: str) -> list[bytes]:
    found, data = list[bytes](), Path(path).read_bytes()
    while data:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found.append(inflater.decompress(data))
        data = inflater.unused_data
    return found


@pytest.mark.parametrize(
    ("options", "written", "failed"),
    [
        ({}, [0, 1, 2, 3], []),
        ({"where": ("url:/2",)}, [2], []),
        ({"where": ("status=404",)}, [], []),
        ({"where": ("text:'page 1'",)}, [1], []),
        ({"calls": ("own_one:odd",)}, [0, 2], []),
        ({"calls": ("own_one:fails",)}, [0, 2, 3], [(1, "own_one:fails raised ValueError: no")]),
        ({"calls": ("own_one:no_json",)}, [0, 2, 3], [(1, "the row cannot be written as JSON")]),
        ({"where": ("url:/3",), "calls": ("own_one:odd",)}, [], []),
    ],
)
def test_rows_are_written_of_what_passes(
    options: dict[str, Any], written: list[int], failed: list[tuple[int, str]]
) -> None:
    done = scan_one(task(**options))
    assert numbers() == written
    assert (done.records, done.matches, done.is_written) == (4, len(written), True)
    assert (done.notes, done.again, done.smallest) == ([], "", ())
    places = offsets()
    assert [(failure.path, failure.offset) for failure in done.failures] == [
        (NAME, places[number]) for number, _ in failed
    ]
    assert all(failure.reason.startswith(one[1]) for failure, one in zip(done.failures, failed, strict=True))
    assert not Path("scratch").exists()
    listed = Path("o/failures.tsv").read_text() if failed else ""
    assert listed.count("\n") == len(failed)


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ({"to": "warc.gz"}, [0, 1, 2, 3]),
        ({"to": "warc.gz", "where": ("url:/2",)}, [2]),
        ({"to": "warc.gz", "where": ("status=404",)}, []),
        ({"to": "warc.gz", "calls": ("own_one:odd",)}, [0, 2]),
        ({"to": "wet.gz", "extract": "text"}, [0, 1, 2, 3]),
        ({"to": "wet.gz", "extract": "text", "calls": ("own_one:odd",)}, [0, 2]),
    ],
)
def test_an_archive_has_the_records_that_match(options: dict[str, Any], written: list[int]) -> None:
    done = scan_one(task(**options))
    assert (done.records, done.matches, done.failures) == (4, len(written), [])
    path = f"o/a.warc.{options['to'].removeprefix('warc.')}"
    info, *found = members(path)
    assert b"WARC-Filename: a.warc." in info
    if options["to"] == "warc.gz":
        whole = members(NAME)
        assert found == [whole[number] for number in written]
    else:
        texts = [one.partition(b"\r\n\r\n")[2] for one in found]
        assert texts == [b"page %d\r\n\r\n" % number for number in written]


def test_only_what_has_a_text_is_in_a_wet_file() -> None:
    pages = [archive(Path("part"), [b"<p>x"], kind).read_bytes() for kind in ("image/png", "text/html")]
    Path(NAME).write_bytes(b"".join(pages))
    done = scan_one(task(to="wet.gz", extract="text"))
    assert (done.records, done.matches, len(members("o/a.warc.wet.gz"))) == (2, 1, 2)
    assert scan_one(task(to="warc.gz")).matches == 2


def test_damage_is_listed_and_the_rest_is_scanned() -> None:
    data = bytearray(Path(NAME).read_bytes())
    data[offsets()[1] + 40] ^= 255
    Path(NAME).write_bytes(data)
    done = scan_one(task())
    assert (numbers(), done.matches, done.is_written) == ([0, 2, 3], 3, True)
    assert [failure.offset for failure in done.failures] == [offsets()[1]]


def test_a_record_that_cost_a_process_is_skipped() -> None:
    done = scan_one(task(losses=Losses(2, {1: "took too long", 3: "crashed"})))
    assert (numbers(), done.records, done.matches) == ([0, 2], 4, 2)
    places = offsets()
    assert done.failures == [
        Failure(NAME, places[1], "took too long", SKIPPED),
        Failure(NAME, places[3], "crashed", SKIPPED),
    ]


def test_what_is_scanned_now_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    marked: list[Any] = []
    monkeypatch.setattr(module, "mark", lambda *args: marked.append(args))
    scan_one(task(where=("url:/1 or url:/2",)))
    assert marked == [(0, 0), (1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize(
    ("place", "error", "may_pass"),
    [
        (NAME, OutageError(NAME, "no answer"), False),
        ("s3://b/a", OutageError("s3://b/a", "no answer"), True),
        ("s3://b/a", InputError("s3://b/a", "was changed"), True),
        ("s3://b/a", AbsentError("s3://b/a", "is not there"), False),
        ("s3://b/a", RefusedError("s3://b/a", "is refused"), False),
        ("s3://b/a", UntriedError("s3://b/a", "not requested"), False),
    ],
)
def test_an_archive_is_tried_again_if_it_may_help(
    place: str, error: InputError, may_pass: bool, ranks: int, is_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def opened(_: ScanTask) -> Iterator[Any]:
        raise error
        yield

    monkeypatch.setattr(ScanTask, "open_archive", opened)
    monkeypatch.setattr(Location, "status", lambda _: None)
    Path("o/a.warc.jsonl").write_text("of an earlier run")
    Path("scratch").mkdir()
    given = task(place, is_last=is_last, ranks=ranks)
    assert module._may_pass(error, given) == may_pass
    done = scan_one(given)
    again = f"{place}: {error.reason}" if may_pass and not is_last else ""
    failed = [] if again or ranks else [Failure.from_error(error, place)]
    assert done == ScannedArchive(0, 0, False, failed, [], [], again, [] if ranks else ())
    assert Path("o/a.warc.jsonl").read_text() == "of an earlier run"
    assert Path("o/failures.tsv").exists() == bool(failed)
    assert Path("scratch").exists() == bool(ranks)


@pytest.mark.parametrize("is_last", [False, True])
def test_a_remote_archive_is_read_once(is_last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(_: ScanTask) -> Iterator[Any]:
        with locate(NAME).open_ranges() as read_at:
            yield read_at

    monkeypatch.setattr(ScanTask, "open_archive", opened)
    monkeypatch.setattr(Location, "status", lambda _: None)
    done = scan_one(task("s3://b/a", is_last=is_last))
    assert (done.matches, done.again, done.is_written, numbers()) == (4, "", True, [0, 1, 2, 3])


def values_of(seed: int = 0) -> list[float]:
    """The numbers of all records in a sample."""
    scan_one(task(extract="url,sample", seed=seed))
    return [json.loads(line)["sample"] for line in Path("o/a.warc.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, [0, 1, 2, 3]),
        ({"where": ("url:/2 or url:/1",)}, [1, 2]),
        ({"calls": ("own_one:odd",)}, [0, 2]),
        ({"calls": ("own_one:fails",)}, [0, 2, 3]),
        ({"to": "warc.gz"}, [0, 1, 2, 3]),
        ({"to": "wet.gz", "extract": "text"}, [0, 1, 2, 3]),
        ({"seed": 5}, [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2, 9])
def test_the_smallest_numbers_of_an_archive(options: dict[str, Any], chosen: list[int], ranks: int) -> None:
    values = values_of(options.get("seed", 0))
    Path("o/a.warc.jsonl").unlink()
    done = scan_one(task(ranks=ranks, **options))
    assert sorted(done.smallest) == sorted(values[number] for number in chosen)[:ranks]
    assert (done.is_written, done.failures, done.again, done.records) == (False, [], "", 4)
    assert not Path("o/a.warc.jsonl").exists()


def test_what_has_no_text_is_not_in_a_sample_of_texts() -> None:
    pages = [archive(Path("part"), [b"<p>x"], kind).read_bytes() for kind in ("image/png", "text/html")]
    Path(NAME).write_bytes(b"".join(pages))
    assert len(scan_one(task(to="wet.gz", extract="text", ranks=5)).smallest) == 1
    assert len(scan_one(task(ranks=5)).smallest) == 2


def test_rows_are_made_for_a_sample_only_if_a_function_may_reject_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cdxmill.stages.scan.fields import Extractor

    made: list[int] = []
    monkeypatch.setattr(Extractor, "row", lambda *_: made.append(1))
    assert len(scan_one(task(ranks=5)).smallest) == 4
    assert made == []
    assert len(scan_one(task(ranks=5, calls=("own_one:odd",))).smallest) == 0
    assert len(made) == 4
    assert len(scan_one(task(ranks=5, page_calls=("own_one:odd",))).smallest) == 0


def test_rejected_records_do_not_take_places_in_a_sample() -> None:
    values = values_of()
    order = sorted(range(4), key=values.__getitem__)
    Path("own_one.py").write_text(f"def not_first(record): return record.number != {order[0]}")
    sys.modules.pop("own_one", None)
    importlib.invalidate_caches()
    compiled.cache_clear()
    done = scan_one(task(ranks=1, calls=("own_one:not_first",)))
    assert list(done.smallest) == [values[order[1]]]


def captures(places: Sequence[tuple[int, int | None]], url: str = "") -> Any:
    """The records that lines name: the number of the page, and a length or None."""
    lines = [
        f'com,example)/{number} 20200101000000 {{"url": "{url or f"http://example.com/{number}"}", "offset": "{offsets()[number]}", "filename": "{NAME}"'
        + (f', "length": "{length}"' if length else "")
        + "}\n"
        for number, length in places
    ]
    data = "".join(lines).encode()
    inputs = [Input(locate(NAME), NAME, NAME)]
    found = sort_captures(
        "L", lambda at, size: data[at : at + size], inputs, Scratch(Path("lines")), Failures(printed=False)
    )
    return found.records[inputs[0]]


def test_the_records_that_lines_name_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [*offsets(), Path(NAME).stat().st_size]
    size = [end - start for start, end in pairwise(places)]
    done = scan_one(task(named=captures([(2, size[2]), (0, None), (2, None), (0, size[0])])))
    assert (numbers(), done.matches, done.failures) == ([0, 2], 2, [])
    some = scan_one(task(named=captures([(1, size[1]), (3, size[3])]), where=("url:/3",)))
    assert (numbers(), some.records, some.matches) == ([3], 2, 1)
    wrong = scan_one(task(named=captures([(1, size[1] + 1), (1, size[1] - 9), (2, None)])))
    assert (numbers(), wrong.matches) == ([2], 1)
    assert {failure.offset for failure in wrong.failures} == {places[1]}
    assert all(failure.reason.startswith("no record here: ") for failure in wrong.failures)
    assert len(wrong.failures) == 2
    monkeypatch.setattr("cdxmill.commands.scanning.captures._LISTED", 1)
    wrong = scan_one(task(named=captures([(1, size[1] + 1), (1, size[1] - 9), (2, None)])))
    assert wrong.failures[-1].reason == "1 more index line without a record that matches"
    assert wrong.failures[-1].offset is None


def test_a_record_of_another_url_is_not_scanned() -> None:
    named = captures([(1, None), (2, None)], url="http://example.com/1")
    done = scan_one(task(named=named))
    assert (numbers(), done.matches) == ([1], 1)
    (failure,) = done.failures
    assert failure.offset == offsets()[2]
    assert (
        "the record is of http://example.com/2, the index line is of http://example.com/1" in failure.reason
    )


def test_records_that_are_near_are_fetched_with_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    fetch, held = JoinedRanges.fetch, JoinedRanges.held

    def noted_fetch(joined: JoinedRanges, start: int, size: int, directory: Path) -> None:
        asked.append((start, size, directory))
        fetch(joined, start, size, directory)

    def noted_held(joined: JoinedRanges, offset: int, size: int) -> bytes:
        asked.append((offset, size))
        return held(joined, offset, size)

    monkeypatch.setattr(JoinedRanges, "fetch", noted_fetch)
    monkeypatch.setattr(JoinedRanges, "held", noted_held)
    places = [*offsets(), Path(NAME).stat().st_size]
    size = [end - start for start, end in pairwise(places)]
    scan_one(task(named=captures([(1, size[1]), (2, size[2])])))
    assert asked == [
        (places[1], size[1] + size[2], Path("scratch")),
        (places[1], size[1]),
        (places[2], size[2]),
    ]
