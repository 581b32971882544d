"""The records of a sample: what kind they are, which are held out, and that they are those of the archives."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.capture import Record
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.named import Input
from cdxmill.options.archives import ArchiveInputs
from cdxmill.running.failures import Failures
from cdxmill.tasks import record_sampling
from cdxmill.tasks.record_sampling import (
    MAX_SAMPLE,
    Candidate,
    Candidates,
    Sample,
    _hold_out,
    choose_records,
    kind_of,
    read_chosen,
    start_of,
)

from ..checks.checking import Told
from ..commands.test_recompress_proof import members, record, response

HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n\r\nx"


def of_kind(
    kind: bytes | None, mime: bytes | None, block: bytes = b"", uri: bytes = b"http://a.com/"
) -> Record:
    given = {b"warc-type": kind, b"content-type": mime, b"warc-target-uri": uri}
    headers = {name: value for name, value in given.items() if value is not None}
    return Record(0, 1, headers, block, len(block))


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (of_kind(b"response", b"application/http; msgtype=response", HTTP), "response text/html"),
        (of_kind(b"revisit", b"application/http", HTTP), "revisit text/html"),
        (
            of_kind(b"request", b"application/http; msgtype=request", b"GET / HTTP/1.1\r\n\r\n"),
            "request application/http",
        ),
        (of_kind(b"resource", b"Image/PNG", b"\x89PNG"), "resource image/png"),
        (of_kind(b"response", b"text/dns", b"20200101\n", b"dns:a.com"), "response text/dns"),
        (of_kind(b"response", b"application/http", b"HTTP/1.1 200 OK\r\n\r\n"), "response -"),
        (of_kind(b"metadata", None), "metadata -"),
        (of_kind(b"metadata", b" ; a"), "metadata -"),
        (of_kind(None, b"text/plain"), "arc text/plain"),
        (of_kind(b"resource", b"\xff"), "resource \ufffd"),
        (of_kind(b"resource", b"x" * 51), "resource " + "x" * 51),
        (of_kind(b"resource", b"x" * 52), "resource " + "x" * 51),
    ],
)
def test_the_kind_of_a_record_is_its_type_and_the_media_type_of_its_payload(found: Record, kind: str) -> None:
    assert kind_of(found) == kind


def candidate(archive: int, size: int, priority: float = 0.5, offset: int = 0) -> Candidate:
    return Candidate(priority, archive, offset, 1, size, "x")


def test_those_of_lowest_priority_are_kept_as_the_limit_allows() -> None:
    kept = Candidates(10)
    assert kept.wants(0.99)
    for one in (first := candidate(0, 5, 0.1)), (second := candidate(0, 5, 0.2)):
        kept.add(one)
    assert kept.sorted() == [first, second]
    kept.add(third := candidate(0, 1, 0.15))
    assert kept.sorted() == [first, third]
    assert [kept.wants(one) for one in (0.19, 0.2, 0.21)] == [True, False, False]
    kept.add(candidate(0, 11, 0.05))
    assert kept.sorted() == []
    assert not kept.wants(0.05)


@pytest.mark.parametrize(
    ("sizes", "held"),
    [
        ({0: 100}, None),
        ({0: 100, 1: 100}, {0}),
        ({0: 50, 1: 100}, {0}),
        ({0: 100, 1: 50}, {1}),
        ({0: 1, 1: 2, 2: 200}, {0, 1}),
        ({0: 0, 1: 3}, set()),
    ],
)
def test_whole_archives_are_held_out_but_the_largest(sizes: dict[int, int], held: set[int] | None) -> None:
    chosen = [candidate(archive, size) for archive, size in sizes.items()]
    training, held_out, by_file = _hold_out(chosen, 1)
    assert sorted(training + held_out) == sorted(chosen)
    assert by_file == (held is not None)
    assert {one.archive for one in held_out} == (held or set())


def test_an_eighth_of_the_records_of_one_archive_is_held_out() -> None:
    for number, held in (7, 0), (8, 1), (15, 1), (16, 2):
        chosen = [candidate(0, 1, number / 100) for number in range(number)]
        assert _hold_out(chosen, 1) == (chosen[held:], chosen[:held], False)


def test_about_an_eighth_of_many_archives_is_held_out() -> None:
    chosen = [candidate(archive, 10) for archive in range(80)]
    _, held_out, by_file = _hold_out(chosen, 1)
    assert (len(held_out), by_file) == (10, True)
    assert held_out != _hold_out(chosen, 2)[1], "another seed holds out others"
    assert held_out == _hold_out(chosen, 1)[1]


@pytest.fixture
def archives(tmp_path: Path) -> list[Input]:
    """Of which the third has the records of the first, in another file, and the last is damaged."""
    pages = [response(b"<p>%d" % number * 50) for number in range(4)]
    (tmp_path / "a.warc.gz").write_bytes(members(*pages[:2]))
    (tmp_path / "b.warc.gz").write_bytes(members(pages[2], record("resource", b"x" * 9)))
    (tmp_path / "c.warc").write_bytes(b"".join(pages[:2]))
    (tmp_path / "d.warc.gz").write_bytes(members(pages[3]) + gzip.compress(b"no record"))
    return find_archives(ArchiveInputs(str(tmp_path)), Failures())


def chosen_of(archives: list[Input], limit: int, seed: int = 1) -> tuple[Sample, list[str]]:
    told = Told()
    return choose_records(archives, limit, seed, 1, True, told), told.lines


def test_a_sample_says_what_the_archives_have_and_which_are_the_same(archives: list[Input]) -> None:
    found, told = chosen_of(archives, 1 << 20)
    assert found.same == [(2, 0)]
    assert len(told) == 1
    assert "d.warc.gz@" in told[0]
    assert sorted((one.archive, one.kind) for one in (*found.training, *found.held_out)) == [
        (0, "response -"),
        (0, "response -"),
        (1, "resource -"),
        (1, "response -"),
        (3, "response -"),
    ]
    assert [sorted(one) for one in found.totals] == [
        ["response -"],
        ["resource -", "response -"],
        ["response -"],
    ]
    whole = Path(archives[0].path).stat().st_size, Path(archives[1].path).stat().st_size
    assert tuple(one.total() for one in found.totals[:2]) == whole
    assert chosen_of(archives, 1 << 20)[0] == found
    assert chosen_of(archives, 1 << 20, seed=2)[0] != found


def test_the_limit_is_that_of_all_archives_together(archives: list[Input]) -> None:
    found = chosen_of(archives, 1000)[0]
    sizes = [one.size for one in (*found.training, *found.held_out)]
    assert sizes
    assert sum(sizes) <= 1000
    assert [one.total() for one in found.totals] == [
        one.total() for one in chosen_of(archives, 9999)[0].totals
    ]


def test_chosen_records_are_read_in_order_and_an_archive_that_has_changed_is_reported(
    archives: list[Input], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = chosen_of(archives, 1 << 20)[0]
    chosen = [*found.training, *found.held_out]
    told = Told()
    read = read_chosen(
        archives, chosen, lambda one, whole: (one.archive, one.offset, start_of(one, whole)), told
    )
    assert [one[:2] for one in read] == sorted((one.archive, one.offset) for one in chosen)
    assert read[0][2] == gzip.decompress(Path(archives[0].path).read_bytes())[: len(read[0][2])]
    assert told.lines == []
    monkeypatch.setattr(record_sampling, "MAX_SAMPLE", 7)
    short = read_chosen(archives, chosen, start_of, told)
    assert set(short) == {b"WARC/1."}
    Path(archives[1].path).write_bytes(b"x" * 9999)
    assert len(read_chosen(archives, chosen, start_of, told)) == 3
    (line,) = told.lines
    assert "b.warc.gz: changed while it was read (" in line
    assert line.endswith("; run it again when nothing writes to the file")


def test_no_more_of_a_record_counts_than_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(
        record("resource", b"x" * (MAX_SAMPLE + 9)) + record("resource", b"y" * 9)
    )
    archives = find_archives(ArchiveInputs(str(tmp_path)), Failures())
    found = chosen_of(archives, 1 << 20)[0].training
    assert sorted(one.size for one in found)[1] == MAX_SAMPLE
    assert 9 < sorted(one.size for one in found)[0] < 300
